use serde_json::{Value, json};

use super::{ProtobufError, decode};

/// A message that is being written.
#[derive(Clone, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
            number >>= 7;
        }
        self.0.push(u8::try_from(number).unwrap());
    }

    fn int(mut self, field: u64, value: i64) -> Self {
        self.varint(field << 3);
        self.varint(value.cast_unsigned());
        self
    }

    fn bytes(mut self, field: u64, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    fn message(self, field: u64, message: Self) -> Self {
        self.bytes(field, message.0)
    }

    /// The body of a request.
    fn body(self, api_version: &str, kind: &str) -> Vec<u8> {
        let names = message().bytes(1, api_version).bytes(2, kind);
        let envelope = message().message(1, names).message(2, self).bytes(3, "").bytes(4, "");
        [b"k8s\0", envelope.0.as_slice()].concat()
    }
}

fn message() -> Message {
    Message::default()
}

/// A container with a probe, a port and resources.
fn container() -> Message {
    let port = message().bytes(1, "web").int(2, 0).int(3, 8080).bytes(4, "TCP").bytes(5, "");
    let quantity = message().bytes(1, "500m");
    let requests = message().bytes(1, "cpu").message(2, quantity);
    let target = message().int(1, 1).int(2, 0).bytes(3, "web");
    let handler = message().message(2, message().bytes(1, "/").message(2, target));
    let probe = message().message(1, handler).int(2, 0).int(3, 5);
    message()
        .bytes(1, "c")
        .bytes(2, "image")
        .message(6, port)
        .message(8, message().message(2, requests))
        .message(10, probe)
        .int(16, 0)
}

#[test]
fn a_namespace_as_kubectl_sends_it() {
    let body = b"k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12\x1b\n\x13\n\x03foo\x12\0\x1a\0\"\0*\x002\08\0B\0\x12\0\x1a\x02\n\0\x1a\0\"\0";
    let expected = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": "foo" }, "spec": {}, "status": {},
    });
    assert_eq!(decode(body), Ok(expected));
}

#[test]
fn a_pod_reads_as_its_json() {
    let metadata = message()
        .bytes(1, "p")
        .bytes(3, "")
        .int(7, 0)
        .message(8, message().int(1, 1_704_067_200).int(2, 0))
        .message(11, message().bytes(1, "app").bytes(2, "web"));
    let volume = message().bytes(1, "v").message(2, message().message(2, message().bytes(1, "")));
    let affinity_weight = message().int(1, -1);
    let spec = message()
        .message(1, volume)
        .message(2, container())
        .bytes(3, "")
        .int(4, 0)
        .int(21, 0)
        .int(11, 0)
        // A field that no version has, and one with another type in it.
        .bytes(1_000, "unknown")
        .message(1_001, affinity_weight);
    let pod = message().message(1, metadata).message(2, spec).message(3, message());
    let expected = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "p", "creationTimestamp": "2024-01-01T00:00:00Z", "labels": { "app": "web" },
        },
        "spec": {
            "volumes": [{ "name": "v", "emptyDir": {} }],
            "containers": [{
                "name": "c", "image": "image",
                "ports": [{ "name": "web", "containerPort": 8080, "protocol": "TCP" }],
                "resources": { "requests": { "cpu": "500m" } },
                "livenessProbe": {
                    "httpGet": { "path": "/", "port": "web" }, "timeoutSeconds": 5,
                },
            }],
            // Zeros of pointers say something, others do not.
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false,
        },
        "status": {},
    });
    assert_eq!(decode(&pod.body("v1", "Pod")), Ok(expected));
}

#[test]
fn kinds_with_forms_of_their_own() {
    let cases = [
        (
            message().message(2, message().bytes(1, "k").bytes(2, [0, 255])).body("v1", "Secret"),
            json!({ "apiVersion": "v1", "kind": "Secret", "data": { "k": "AP8=" } }),
        ),
        (
            message().message(2, message().int(1, 0)).body("apps/v1", "Deployment"),
            json!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": { "replicas": 0 } }),
        ),
        (
            message()
                .message(2, message().message(1, message().int(1, 0).int(2, 3).bytes(3, "")))
                .body("policy/v1", "PodDisruptionBudget"),
            json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "spec": { "minAvailable": 3 },
            }),
        ),
        (
            message()
                .message(2, message().message(4, message().int(1, 1_704_067_200).int(2, 5_000)))
                .body("coordination.k8s.io/v1", "Lease"),
            json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "spec": { "acquireTime": null },
            }),
        ),
        (
            message().int(1, 0).bytes(4, "Background").body("apps/v1", "DeleteOptions"),
            json!({
                "apiVersion": "apps/v1", "kind": "DeleteOptions",
                "gracePeriodSeconds": 0, "propagationPolicy": "Background",
            }),
        ),
    ];
    for (body, mut expected) in cases {
        let mut found = decode(&body).unwrap();
        if expected["kind"] == "Lease" {
            let times = found["spec"].as_object().unwrap().values().next().cloned();
            assert_eq!(times, Some(json!("2024-01-01T00:00:00.000005Z")));
            (found["spec"], expected["spec"]) = (Value::Null, Value::Null);
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn ownership_and_extra_information() {
    let entry = message().bytes(1, "m").message(7, message().bytes(1, r#"{"f:data":{}}"#));
    let metadata = message().message(17, entry);
    let found = decode(&message().message(1, metadata).body("v1", "ConfigMap")).unwrap();
    assert_eq!(found["metadata"]["managedFields"][0]["fieldsV1"], json!({ "f:data": {} }));

    let extra = message().bytes(1, "scopes").message(2, message().bytes(1, "a").bytes(1, "b"));
    let spec = message().message(5, extra);
    let review = message().message(2, spec).body("authorization.k8s.io/v1", "SubjectAccessReview");
    assert_eq!(decode(&review).unwrap()["spec"]["extra"], json!({ "scopes": ["a", "b"] }));
}

#[test]
fn broken_bodies_are_errors() {
    let pod = message().message(2, message().message(2, container())).body("v1", "Pod");
    decode(&pod).unwrap();
    for end in 0..pod.len() {
        // Wherever it is cut, it is an error or a smaller object, not a panic.
        drop(decode(&pod[..end]));
    }
    for at in 0..pod.len() {
        for bit in 0..8 {
            let mut flipped = pod.clone();
            flipped[at] ^= 1 << bit;
            drop(decode(&flipped));
        }
    }
    assert_eq!(decode(b"{}"), Err(ProtobufError::Magic));
    let unknown = message().body("example.com/v1", "Thing");
    assert!(matches!(decode(&unknown), Err(ProtobufError::Unknown { .. })));
    let mut deep = message();
    for _ in 0..100 {
        deep = message().message(1, deep);
    }
    // Affinity terms nest as far as they like only in made-up messages.
    drop(decode(&deep.body("v1", "Pod")));
}
