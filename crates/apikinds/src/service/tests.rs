use expect_test::{Expect, expect};
use serde_json::{Value, json};
use steersman_apimachinery::rules::{Part, Rules};

use super::{ENDPOINT_SLICE, ENDPOINTS, SERVICE};
use crate::cluster::{Cluster, lines, now};

fn service(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "ns"},
        "spec": spec,
    })
}

fn others() -> Cluster {
    Cluster::default().with(service(
        "first",
        json!({
            "type": "NodePort",
            "clusterIP": "10.96.0.42",
            "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30041}],
        }),
    ))
}

#[track_caller]
fn check(spec: Value, expected: Expect) {
    let mut service = service("second", spec);
    SERVICE.default(&mut service);
    let cluster = others();
    let created = SERVICE.prepare_create(&mut service, &cluster.request("", "services"));
    let answer = match created {
        Err(error) => error.message,
        Ok(()) => match &SERVICE.validate(&service, None, Part::Main)[..] {
            [] => service["spec"].to_string(),
            errors => lines(errors),
        },
    };
    expected.assert_eq(&answer);
}

#[test]
fn services_get_free_addresses_and_ports() {
    check(
        json!({"ports": [{"port": 80}]}),
        expect![[
            r#"{"clusterIP":"10.96.0.43","clusterIPs":["10.96.0.43"],"internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"port":80,"protocol":"TCP","targetPort":80}],"sessionAffinity":"None","type":"ClusterIP"}"#
        ]],
    );
    check(
        json!({"type": "NodePort", "ports": [{"port": 80, "targetPort": "web"}]}),
        expect![[
            r#"{"clusterIP":"10.96.0.43","clusterIPs":["10.96.0.43"],"externalTrafficPolicy":"Cluster","internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"nodePort":30042,"port":80,"protocol":"TCP","targetPort":"web"}],"sessionAffinity":"None","type":"NodePort"}"#
        ]],
    );
    check(
        json!({"clusterIP": "None", "selector": {"a": "b"}}),
        expect![[
            r#"{"clusterIP":"None","clusterIPs":["None"],"internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","selector":{"a":"b"},"sessionAffinity":"None","type":"ClusterIP"}"#
        ]],
    );
    check(
        json!({"type": "ExternalName", "externalName": "example.com"}),
        expect![[
            r#"{"externalName":"example.com","sessionAffinity":"None","type":"ExternalName"}"#
        ]],
    );
}

#[test]
fn services_do_not_get_what_others_have() {
    check(
        json!({"clusterIP": "10.96.0.42", "ports": [{"port": 80}]}),
        expect![[
            r#"Service "second" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.42"]: failed to allocate IP 10.96.0.42: provided IP is already allocated"#
        ]],
    );
    check(
        json!({"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}),
        expect![[
            r#"Service "second" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.1"]: failed to allocate IP 10.0.0.1: the provided network does not match the current range, the range of valid IPs is 10.96.0.0/12"#
        ]],
    );
    let port = |port: i64| json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]});
    check(
        port(30041),
        expect![[
            r#"Service "second" is invalid: spec.ports[0].nodePort: Invalid value: 30041: provided port is already allocated"#
        ]],
    );
    check(
        port(80),
        expect![[
            r#"Service "second" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767"#
        ]],
    );
}

#[test]
fn ports_of_services_are_named_and_unique() {
    check(json!({}), expect!["spec.ports: Required value"]);
    check(
        json!({"type": "Other", "ports": [{"port": 0}, {"port": 80, "name": "a"}, {"port": 80, "name": "a"}]}),
        expect![[r#"
            spec.type: Unsupported value: "Other": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"
            spec.ports[0].name: Required value
            spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive
            spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive
            spec.ports[2].name: Duplicate value: "a"
            spec.ports[2]: Duplicate value: {"port":80,"protocol":"TCP"}"#]],
    );
}

#[test]
fn a_manifest_that_is_sent_again_changes_no_address() {
    let cluster = others();
    let request = cluster.request("", "services");
    let mut old = service("second", json!({"type": "NodePort", "ports": [{"port": 80}]}));
    SERVICE.default(&mut old);
    SERVICE.prepare_create(&mut old, &request).expect("created");
    let mut new = service("second", json!({"type": "NodePort", "ports": [{"port": 80}]}));
    SERVICE.default(&mut new);
    SERVICE.prepare_update(&mut new, &old, Part::Main, &request).expect("changed");
    assert_eq!(new["spec"], old["spec"]);
    new["spec"]["clusterIP"] = "10.96.0.99".into();
    new["spec"]["clusterIPs"] = json!(["10.96.0.99"]);
    expect![[r#"spec.clusterIPs[0]: Invalid value: ["10.96.0.99"]: may not change once set"#]]
        .assert_eq(&lines(&SERVICE.validate(&new, Some(&old), Part::Main)));
}

#[test]
fn rows_say_how_services_are_reached() {
    let row = |spec: Value| {
        let mut service = service("a", spec);
        service["status"] =
            json!({"loadBalancer": {"ingress": [{"hostname": "balancer.example.com"}]}});
        Value::from(SERVICE.cells(&service, now())).to_string()
    };
    expect![[r#"["a","ClusterIP","10.96.0.1","<none>","80/TCP,53:30000/UDP","<unknown>","a=b"]"#]].assert_eq(&row(json!({
        "type": "ClusterIP", "clusterIP": "10.96.0.1", "selector": {"a": "b"},
        "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP", "nodePort": 30000}],
    })));
    expect![[r#"["a","LoadBalancer","<none>","balancer.example.com,1.2.3.4","<none>","<unknown>","<none>"]"#]]
    .assert_eq(&row(json!({"type": "LoadBalancer", "externalIPs": ["1.2.3.4"]})));
    expect![[r#"["a","ExternalName","<none>","example.com","<none>","<unknown>","<none>"]"#]]
        .assert_eq(&row(json!({"type": "ExternalName", "externalName": "example.com"})));
}

#[test]
fn rows_show_the_first_endpoints() {
    let addresses: Vec<Value> = (1..=5).map(|n| json!({"ip": format!("10.0.0.{n}")})).collect();
    let endpoints = json!({"metadata": {"name": "a"}, "subsets": [
        {"addresses": addresses, "ports": [{"port": 80}]},
    ]});
    expect![[r#"["a","10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 2 more...","<unknown>"]"#]]
        .assert_eq(&Value::from(ENDPOINTS.cells(&endpoints, now())).to_string());
    let slice = json!({
        "metadata": {"name": "a"}, "addressType": "IPv4", "ports": [{"port": 80}],
        "endpoints": [{"addresses": ["10.0.0.1"]}],
    });
    expect![[r#"["a","IPv4","80","10.0.0.1","<unknown>"]"#]]
        .assert_eq(&Value::from(ENDPOINT_SLICE.cells(&slice, now())).to_string());
}
