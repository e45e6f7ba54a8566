//! Volumes: the scheduler and the controllers together.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};

use super::*;

const ZONE: &str = "topology.kubernetes.io/zone";

fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    claim.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Bound"))
}

fn zone_of(volume: &PersistentVolume) -> String {
    let affinity = volume.spec.as_ref().unwrap().node_affinity.as_ref().unwrap();
    let term = &affinity.required.as_ref().unwrap().node_selector_terms[0];
    term.match_expressions.as_ref().unwrap()[0].values.as_ref().unwrap()[0].clone()
}

/// The zones of all pods of the set, each of which has its volume there.
async fn zones(running: &Running) -> BTreeSet<String> {
    let (pods, claims) = (running.api::<Pod>(), running.api::<PersistentVolumeClaim>());
    let nodes: Api<Node> = Api::all(running.client.clone());
    let volumes: Api<PersistentVolume> = Api::all(running.client.clone());
    let mut zones = BTreeSet::new();
    for pod in pods.list(&Default::default()).await.unwrap().items {
        let name = pod.metadata.name.unwrap();
        let node = nodes.get(&pod.spec.unwrap().node_name.unwrap()).await.unwrap();
        let zone = node.metadata.labels.unwrap()[ZONE].clone();
        let claim = claims.get(&format!("data-{name}")).await.unwrap();
        let volume = volumes.get(&claim.spec.unwrap().volume_name.unwrap()).await.unwrap();
        assert_eq!(zone_of(&volume), zone, "{name}");
        zones.insert(zone);
    }
    zones
}

const SET: &str = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: db}}
      containers: [{name: c, image: i}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1Gi}}
";

#[tokio::test(flavor = "multi_thread")]
async fn stateful_set_comes_back_on_its_volumes_in_their_zones() {
    let running = playground(6).await;
    let sets: Api<StatefulSet> = running.api();
    let ready = |s: &StatefulSet| s.status.as_ref().is_some_and(|s| s.ready_replicas == Some(3));
    running.apply(SET);
    until(&sets, "the stateful set", ready).await;
    assert_eq!(zones(&running).await.len(), 3);
    let claims: Api<PersistentVolumeClaim> = running.api();
    let volumes = async || {
        let listed = claims.list(&Default::default()).await.unwrap().items;
        listed.into_iter().map(|claim| claim.spec.unwrap().volume_name.unwrap()).collect::<Vec<_>>()
    };
    let before = volumes().await;
    let pods: Api<Pod> = running.api();
    let last = gone(&pods, "the last pod goes", |pod| pod.metadata.name.as_deref() == Some("db-2"));
    let delete = async { sets.delete("db", &DeleteParams::default()).await.unwrap() };
    let (deleted, ()) = tokio::join!(Box::pin(delete), Box::pin(last));
    assert!(deleted.is_left() || deleted.is_right());
    running.apply(SET);
    until(&sets, "the stateful set", ready).await;
    assert_eq!(volumes().await, before);
    assert_eq!(zones(&running).await.len(), 3);
    Box::pin(running.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn volume_made_by_hand_draws_the_pod_to_its_node() {
    let running = playground(3).await;
    running.apply(
        "
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  storageClassName: local
  local: {path: /disk}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-2]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: c}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: local
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: c, image: i}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]
",
    );
    let pod = until(&running.api::<Pod>(), "the pod", crate::workload::is_ready).await;
    assert_eq!(pod.spec.unwrap().node_name.as_deref(), Some("node-2"));
    let claim = until(&running.api::<PersistentVolumeClaim>(), "the claim", is_bound).await;
    assert_eq!(claim.spec.unwrap().volume_name.as_deref(), Some("disk"));
    Box::pin(running.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn own_storage_classes_give_way_to_those_that_are_loaded() {
    let manifests = parse(
        "f.yaml",
        "
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations: {storageclass.kubernetes.io/is-default-class: 'true'}
provisioner: disk.example.com
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: c}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
",
    )
    .unwrap();
    let running = Box::pin(start(Config { manifests, ..Config::default() })).await.unwrap();
    let dump = running.dump();
    let classes: Vec<_> = dump
        .iter()
        .filter(|object| object["kind"] == "StorageClass")
        .map(|class| (&class["metadata"]["name"], &class["provisioner"]))
        .collect();
    assert_eq!(
        classes,
        [
            (&json!("immediate"), &json!("playground.steersman.dev/disk")),
            (&json!("standard"), &json!("disk.example.com")),
        ]
    );
    let claims: Api<PersistentVolumeClaim> = running.api();
    let claim = until(&claims, "the class", |c| {
        c.spec.as_ref().is_some_and(|spec| spec.storage_class_name.is_some())
    })
    .await;
    assert_eq!(claim.spec.unwrap().storage_class_name.as_deref(), Some("standard"));
    Box::pin(running.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_that_come_together_never_share_a_volume() {
    const N_VOLUMES: usize = 10;
    let running = playground(1).await;
    let mut text = String::new();
    for number in 0..2 * N_VOLUMES {
        let spec = "accessModes: [ReadWriteOnce], storageClassName: manual";
        text.push_str(&format!(
            "---\n{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: c{number:02}}}, \
             spec: {{{spec}, resources: {{requests: {{storage: 1Gi}}}}}}}}\n"
        ));
        if number < N_VOLUMES {
            text.push_str(&format!(
                "---\n{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: v{number:02}}}, \
                 spec: {{{spec}, capacity: {{storage: 1Gi}}, hostPath: {{path: /d}}}}}}\n"
            ));
        }
    }
    running.apply(&text);
    let volumes: Api<PersistentVolume> = Api::all(running.client.clone());
    for number in 0..N_VOLUMES {
        let name = format!("v{number:02}");
        until(&volumes, &name, |volume| {
            volume.metadata.name.as_ref() == Some(&name)
                && volume.status.as_ref().is_some_and(|s| s.phase.as_deref() == Some("Bound"))
        })
        .await;
    }
    let claims: Api<PersistentVolumeClaim> = running.api();
    for volume in volumes.list(&Default::default()).await.unwrap().items {
        let reference = volume.spec.unwrap().claim_ref.unwrap();
        let claim = until(&claims, "its claim", |claim| {
            claim.metadata.uid == reference.uid && is_bound(claim)
        })
        .await;
        assert_eq!(claim.spec.unwrap().volume_name, volume.metadata.name);
    }
    let listed = claims.list(&Default::default()).await.unwrap().items;
    let named = listed.iter().filter_map(|claim| claim.spec.as_ref()?.volume_name.clone());
    assert_eq!(named.clone().count(), N_VOLUMES);
    assert_eq!(named.collect::<BTreeSet<_>>().len(), N_VOLUMES);
    Box::pin(running.shutdown()).await;
}
