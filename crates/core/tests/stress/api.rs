//! A small API server: the truth, and the watches that tell of it in order.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use steersman_api::key::ObjectKey;
use steersman_framework::world::WriteError;

use crate::storage::{CLAIM, CLASS, CSI_NODE, VOLUME};

/// One event of a watch.
#[derive(Clone, Debug)]
pub(crate) enum Watch {
    Upsert(Value),
    PodGone(String),
    NodeGone(String),
    ObjectGone(&'static str, ObjectKey),
}

/// The watches: each is in order by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Pods,
    Nodes,
    Others,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct Api {
    /// By UID.
    pub(crate) pods: BTreeMap<String, Value>,
    pub(crate) nodes: BTreeMap<String, Value>,
    /// By kind, namespace and name.
    pub(crate) others: BTreeMap<(&'static str, String, String), Value>,
    streams: [VecDeque<Watch>; 3],
    next_pod: u32,
    pub(crate) n_claims: u32,
    version: u64,
}

pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// What cluster events call a kind.
pub(crate) fn kind_name(kind: &str) -> &'static str {
    match kind {
        "Namespace" => "Namespace",
        "Service" => "Service",
        "PodDisruptionBudget" => "policy/PodDisruptionBudget",
        "PersistentVolumeClaim" => CLAIM,
        "PersistentVolume" => VOLUME,
        "StorageClass" => CLASS,
        "CSINode" => CSI_NODE,
        other => panic!("the test has no objects of kind {other}"),
    }
}

pub(crate) fn node_of(pod: &Value) -> Option<&str> {
    pod["spec"]["nodeName"].as_str()
}

pub(crate) fn is_terminating(pod: &Value) -> bool {
    pod["metadata"].get("deletionTimestamp").is_some()
}

pub(crate) fn has_ended(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

impl Api {
    fn tell(&mut self, stream: Stream, event: Watch) {
        self.streams[stream as usize].push_back(event);
    }

    /// The next event of a watch.
    pub(crate) fn next(&mut self, stream: Stream) -> Option<Watch> {
        self.streams[stream as usize].pop_front()
    }

    /// Forgets what was not delivered: a watch broke off.
    pub(crate) fn break_watches(&mut self) {
        self.streams = Default::default();
    }

    /// Creates a pod, under a new name or the one given.
    pub(crate) fn create_pod(&mut self, mut pod: Value, name: Option<&str>) {
        self.next_pod += 1;
        let uid = format!("uid-{}", self.next_pod);
        let name = name.map_or_else(|| format!("pod-{}", self.next_pod), str::to_owned);
        pod["metadata"]["name"] = name.into();
        pod["metadata"]["uid"] = uid.clone().into();
        self.put_pod(&uid, pod);
    }

    /// Stores a pod and tells of it.
    pub(crate) fn put_pod(&mut self, uid: &str, pod: Value) {
        self.tell(Stream::Pods, Watch::Upsert(pod.clone()));
        self.pods.insert(uid.to_owned(), pod);
    }

    /// Changes a pod, if it is there.
    pub(crate) fn change_pod(&mut self, uid: &str, change: impl FnOnce(&mut Value)) {
        let Some(mut pod) = self.pods.get(uid).cloned() else { return };
        change(&mut pod);
        self.put_pod(uid, pod);
    }

    /// Tells of a pod once more.
    pub(crate) fn repeat_pod(&mut self, uid: &str) {
        self.change_pod(uid, |_| ());
    }

    pub(crate) fn delete_pod(&mut self, uid: &str) -> Option<Value> {
        let pod = self.pods.remove(uid)?;
        self.tell(Stream::Pods, Watch::PodGone(uid.to_owned()));
        Some(pod)
    }

    /// Deletes a pod and tells nobody: the watch broke off, and the list after
    /// it has another pod of that name already.
    pub(crate) fn delete_pod_unseen(&mut self, uid: &str) -> Option<Value> {
        self.pods.remove(uid)
    }

    pub(crate) fn put_node(&mut self, node: Value) {
        self.tell(Stream::Nodes, Watch::Upsert(node.clone()));
        self.nodes.insert(text(&node, "/metadata/name").to_owned(), node);
    }

    pub(crate) fn delete_node(&mut self, name: &str) {
        if self.nodes.remove(name).is_some() {
            self.tell(Stream::Nodes, Watch::NodeGone(name.to_owned()));
        }
    }

    pub(crate) fn put_other(&mut self, kind: &'static str, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let namespace = text(&object, "/metadata/namespace").to_owned();
        let name = text(&object, "/metadata/name").to_owned();
        self.tell(Stream::Others, Watch::Upsert(object.clone()));
        self.others.insert((kind, namespace, name), object);
    }

    /// An object that is neither pod nor node.
    pub(crate) fn other(&self, kind: &'static str, namespace: &str, name: &str) -> Option<&Value> {
        self.others.get(&(kind, namespace.to_owned(), name.to_owned()))
    }

    pub(crate) fn of_kind(&self, kind: &'static str) -> impl Iterator<Item = &Value> {
        let of_kind = self.others.iter().filter(move |((of, ..), _)| *of == kind);
        of_kind.map(|(_, object)| object)
    }

    pub(crate) fn new_claim_uid(&mut self) -> String {
        self.n_claims += 1;
        format!("claim-{}", self.n_claims)
    }

    pub(crate) fn delete_other(&mut self, kind: &'static str, namespace: &str, name: &str) {
        if self.others.remove(&(kind, namespace.to_owned(), name.to_owned())).is_some() {
            let key = ObjectKey::namespaced(namespace, name);
            self.tell(Stream::Others, Watch::ObjectGone(kind, key));
        }
    }

    /// What `pods/binding` would answer.
    pub(crate) fn may_bind(&self, uid: &str) -> Result<(), WriteError> {
        let Some(pod) = self.pods.get(uid) else {
            return Err(WriteError::NotFound(format!("pods {uid:?}")));
        };
        if let Some(node) = node_of(pod) {
            return Err(WriteError::Conflict(format!("pod {uid} is on {node:?} already")));
        }
        if is_terminating(pod) || has_ended(pod) {
            return Err(WriteError::Conflict(format!("pod {uid} is being deleted")));
        }
        Ok(())
    }

    /// Binds a pod. [`Api::may_bind`] has said yes.
    pub(crate) fn bind(&mut self, uid: &str, node: &str) {
        let second = self.next_pod % 60;
        self.change_pod(uid, |pod| {
            pod["spec"]["nodeName"] = node.into();
            pod["status"]["startTime"] = format!("2026-01-01T00:00:{second:02}Z").into();
        });
    }

    /// Evicts a pod, as a scheduler does: marked, then deleted, with or without
    /// time to end. Nothing happens when it is gone.
    pub(crate) fn evict(&mut self, uid: &str, gracefully: bool) {
        self.change_pod(uid, |pod| {
            pod["status"]["conditions"] = json!([{"type": "DisruptionTarget", "status": "True",
                "reason": "PreemptionByScheduler"}]);
            if gracefully {
                pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            }
        });
        if !gracefully {
            self.delete_pod(uid);
        }
    }
}
