//! A playground that asks for roles.

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use steersman_apiserver::{AuditLog, Record};

use super::*;

async fn with_roles(n_nodes: usize) -> (Running, Arc<AuditLog>) {
    let log = Arc::new(AuditLog::default());
    let audit: Arc<dyn Audit> = log.clone();
    let config =
        Config { authorization: Authorization::Rbac, audit: Some(audit), ..config(n_nodes) };
    (Box::pin(start(config)).await.unwrap(), log)
}

/// A client with what a kubeconfig holds.
async fn client(kubeconfig: &str) -> Client {
    let config = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await.unwrap();
    Client::try_from(config).unwrap()
}

fn code<T>(answer: Result<T, kube::Error>) -> u16 {
    match answer {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn the_scheduler_needs_no_more_than_its_role() {
    let (running, log) = with_roles(1).await;
    running.apply(
        "
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: v1
kind: Pod
metadata: {name: low}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: '3'}}}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: standard
  resources: {requests: {storage: 1Gi}}
",
    );
    let pods: Api<Pod> = running.api();
    let node = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    until(&pods, "the pod on a node", node).await;
    running.apply(
        "
apiVersion: v1
kind: Pod
metadata: {name: high}
spec:
  priorityClassName: high
  containers: [{name: c, image: i, resources: {requests: {cpu: '3'}}}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: claim}}]
",
    );
    until(&pods, "the preemptor on a node", |pod| {
        pod.metadata.name.as_deref() == Some("high") && node(pod)
    })
    .await;
    let denied: Vec<String> =
        log.denied("system:kube-scheduler").iter().map(Record::line).collect();
    assert_eq!(denied, [""; 0]);
    let allowed: Vec<String> =
        log.allowed("system:kube-scheduler").iter().map(Record::line).collect();
    for needed in [
        "create pods/binding in default named high",
        "delete pods in default named low",
        "watch pods",
    ] {
        assert!(allowed.iter().any(|line| line == needed), "{needed}: {allowed:#?}");
    }
    running.shutdown().await;
}

#[tokio::test]
async fn service_accounts_and_users_of_certificates_may_do_what_their_roles_say() {
    let (running, _log) = with_roles(0).await;
    running.apply(
        "
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects:
- {kind: ServiceAccount, name: reader, namespace: default}
- {kind: Group, name: readers, apiGroup: rbac.authorization.k8s.io}
",
    );
    let missing = running.service_account_kubeconfig("default", "none", 600).unwrap_err();
    assert_eq!(missing.code, 404);
    let account = running.service_account_kubeconfig("default", "reader", 600).unwrap();
    let account = client(&account).await;
    let jane = client(&running.user_kubeconfig("jane", Some("readers")).unwrap()).await;
    let bob = client(&running.user_kubeconfig("bob", None).unwrap()).await;
    for (client, expected) in [(&account, [200, 403]), (&jane, [200, 403]), (&bob, [403, 403])] {
        let pods: Api<Pod> = Api::all(client.clone());
        let nodes: Api<Node> = Api::all(client.clone());
        let found = [
            code(pods.list(&Default::default()).await),
            code(nodes.list(&Default::default()).await),
        ];
        assert_eq!(found, expected);
    }
    let uri = "/api/v1/namespaces/default/serviceaccounts/reader";
    let request = http::Request::delete(uri).body(Vec::new()).unwrap();
    running.client.request::<Value>(request).await.unwrap();
    let pods: Api<Pod> = Api::all(account);
    assert_eq!(code(pods.list(&Default::default()).await), 401);
    running.shutdown().await;
}

#[tokio::test]
async fn other_servers_are_told_whose_certificates_to_trust() {
    let first = playground(0).await;
    let dump = first.dump();
    let told = |objects: &[Value]| {
        let mut maps = objects
            .iter()
            .filter(|object| object["metadata"]["name"] == "extension-apiserver-authentication");
        maps.next().unwrap()["data"]["client-ca-file"].as_str().unwrap().to_owned()
    };
    assert_eq!(told(&dump), first.identity.ca_pem);
    first.shutdown().await;
    // Saved and loaded again, it is that of the new authority.
    let manifests =
        dump.into_iter().map(|object| Manifest { origin: "saved".to_owned(), object }).collect();
    let again = Box::pin(start(Config { manifests, ..config(0) })).await.unwrap();
    assert_eq!(told(&again.dump()), again.identity.ca_pem);
    again.shutdown().await;
}
