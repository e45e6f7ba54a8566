//! `pods/binding`: giving a pod its node.
//!
//! Sources: the API documentation of Binding; KEP-4742 (topology labels of
//! nodes on pods), KEP-5278 (nominated node names).

use serde_json::{Value, json};
use steersman_apimachinery::error::{ApiError, FieldError};
use steersman_apimachinery::rules::Request;

use crate::fields::{at, child, default, entries, field, items, remove, set, text};

/// Labels of nodes that pods take over when they are bound.
const TOPOLOGY_LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Binds `pod` as `binding` says.
pub(super) fn bind(
    pod: &mut Value,
    binding: &Value,
    request: &Request<'_>,
) -> Result<Value, ApiError> {
    check_target(pod, binding, request)?;
    check_preconditions(pod, binding)?;
    let name = text(pod, "/metadata/name").to_owned();
    let conflict = |why: String| Err(binding_conflict(&name, &why));
    if at(pod, "/metadata/deletionTimestamp").is_some() {
        return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = text(pod, "/spec/nodeName");
    if !node.is_empty() {
        return conflict(format!("pod {name} is already assigned to node {node:?}"));
    }
    if !items(pod, "/spec/schedulingGates").is_empty() {
        return conflict(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    let node = text(binding, "/target/name");
    let Some(spec) = child(pod, "spec") else {
        return conflict(format!("pod {name} has no spec"));
    };
    set(spec, "nodeName", node);
    copy(pod, binding, "annotations");
    copy(pod, binding, "labels");
    if let Some(node) = request.view.get("", "nodes", "", node) {
        copy_topology(pod, &node);
    }
    if let Some(status) = child(pod, "status") {
        remove(status, "nominatedNodeName");
        scheduled(status, request);
    }
    Ok(json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    }))
}

fn check_target(pod: &Value, binding: &Value, request: &Request<'_>) -> Result<(), ApiError> {
    let mut errors = Vec::new();
    let kind = text(binding, "/target/kind");
    if !matches!(kind, "" | "Node") {
        errors.push(FieldError::not_supported("target.kind", kind, &["Node", "<empty>"]));
    }
    if text(binding, "/target/name").is_empty() {
        errors.push(FieldError::required("target.name", ""));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid(request.resource, text(pod, "/metadata/name"), &errors))
    }
}

/// The binding may say which pod, and which version of it, it means.
fn check_preconditions(pod: &Value, binding: &Value) -> Result<(), ApiError> {
    for (field, word) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let pointer = format!("/metadata/{field}");
        let (wanted, found) = (text(binding, &pointer), text(pod, &pointer));
        if !wanted.is_empty() && wanted != found {
            let why = format!(
                "Precondition failed: {word} in precondition: {wanted}, {word} in object meta: \
                 {found}"
            );
            return Err(binding_conflict(text(pod, "/metadata/name"), &why));
        }
    }
    Ok(())
}

fn binding_conflict(name: &str, why: &str) -> ApiError {
    let message = format!("Operation cannot be fulfilled on pods/binding {name:?}: {why}");
    let mut error = ApiError::new(409, "Conflict", message);
    error.details = Some(json!({"name": name, "kind": "pods/binding"}));
    error
}

fn copy(pod: &mut Value, binding: &Value, map: &str) {
    let pairs: Vec<_> = entries(binding, &format!("/metadata/{map}"))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if pairs.is_empty() {
        return;
    }
    if let Some(target) = pod.get_mut("metadata").and_then(|metadata| child(metadata, map)) {
        pairs.into_iter().for_each(|(key, value)| set(target, &key, value));
    }
}

fn copy_topology(pod: &mut Value, node: &Value) {
    for key in TOPOLOGY_LABELS {
        let label = node.pointer("/metadata/labels").and_then(|labels| labels.get(key));
        let target = pod.get_mut("metadata").and_then(|metadata| child(metadata, "labels"));
        if let (Some(label), Some(target)) = (label, target) {
            set(target, key, label.clone());
        }
    }
}

fn scheduled(status: &mut Value, request: &Request<'_>) {
    let now = request.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": now});
    default(status, "conditions", json!([]));
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    match conditions.iter_mut().find(|condition| field(condition, "type") == "PodScheduled") {
        Some(found) => *found = condition,
        None => conditions.push(condition),
    }
}
