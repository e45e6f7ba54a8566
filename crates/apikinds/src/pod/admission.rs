//! What a new pod gets from other objects of the cluster, and what it may not
//! decide itself: the admission plugins that are on by default.
//!
//! Sources: the documentation of ServiceAccount, Priority,
//! DefaultTolerationSeconds, RuntimeClass; KEP-3521 (gates), KEP-688 (overhead).

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::rules::{Request, View};

use super::{label_keys, qos};
use crate::fields::{
    child, default, entries, field, flag, items, name, number, object_at, same, set, text,
};
use crate::limit_range;

/// How long a pod stays on a node that fails, in seconds.
const TOLERATION_SECONDS: i64 = 300;
/// The taints of such nodes.
const FAILURES: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// Admits a new pod.
pub(super) fn create(pod: &mut Value, request: &Request<'_>) -> Result<(), ApiError> {
    limit_range::apply(pod, request)?;
    if let Some(spec) = object_at(pod, "/spec") {
        default(spec, "serviceAccountName", "default");
        let account = spec["serviceAccountName"].clone();
        set(spec, "serviceAccount", account);
    }
    priority(pod, request)?;
    if let Some(spec) = object_at(pod, "/spec") {
        tolerations(spec);
    }
    runtime_class(pod, request)?;
    label_keys::merge(pod);
    status(pod);
    Ok(())
}

/// Admits a change of a pod.
pub(super) fn update(new: &mut Value, old: &Value) {
    let Some(spec) = object_at(new, "/spec") else { return };
    tolerations(spec);
    // A manifest that is sent again does not state what admission found.
    for path in ["priority", "preemptionPolicy", "priorityClassName"] {
        if let Some(value) = old.pointer(&format!("/spec/{path}")) {
            default(spec, path, value.clone());
        }
    }
}

/// The status that every new pod begins with, whatever its author says.
fn status(pod: &mut Value) {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let mut status = json!({"phase": "Pending", "qosClass": qos::class(spec)});
    if !items(spec, "/schedulingGates").is_empty() {
        status["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    set(pod, "status", status);
}

/// A pod leaves a node that fails after five minutes, unless it says else.
fn tolerations(spec: &mut Value) {
    for key in FAILURES {
        let says_so = items(spec, "/tolerations").iter().any(|toleration| {
            let fits = |name, wanted| matches!(field(toleration, name), found if found.is_empty() || found == wanted);
            fits("key", key) && fits("effect", "NoExecute")
        });
        if says_so {
            continue;
        }
        default(spec, "tolerations", json!([]));
        if let Some(list) = spec["tolerations"].as_array_mut() {
            list.push(json!({
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
}

/// Looks up the pod's priority class.
fn priority(pod: &mut Value, request: &Request<'_>) -> Result<(), ApiError> {
    let refuse =
        |pod: &Value, why: &str| Err(ApiError::forbidden(request.resource, name(pod), why));
    let wanted = text(pod, "/spec/priorityClassName");
    let class = if wanted.is_empty() {
        global_default(request.view)
    } else {
        let class = request.view.get("scheduling.k8s.io", "priorityclasses", "", wanted);
        if class.is_none() {
            return refuse(pod, &format!("no PriorityClass with name {wanted} was found"));
        }
        class
    };
    let value = class.as_ref().and_then(|class| number(class, "/value")).unwrap_or(0);
    let policy = match class.as_ref().map(|class| field(class, "preemptionPolicy")) {
        None | Some("") => "PreemptLowerPriority",
        Some(policy) => policy,
    };
    if let Some(given) = number(pod, "/spec/priority").filter(|given| *given != value) {
        return refuse(
            pod,
            &format!(
                "the integer value of priority ({given}) must not be provided in pod spec; \
                 priority admission controller computed {value} from the given PriorityClass name"
            ),
        );
    }
    let given = text(pod, "/spec/preemptionPolicy");
    if !given.is_empty() && given != policy {
        return refuse(
            pod,
            &format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
                 priority admission controller computed {policy} from the given PriorityClass name"
            ),
        );
    }
    let class_name = class.as_ref().map(|class| name(class).to_owned());
    if let Some(spec) = object_at(pod, "/spec") {
        if let Some(class_name) = class_name {
            default(spec, "priorityClassName", class_name);
        }
        set(spec, "priority", value);
        set(spec, "preemptionPolicy", policy);
    }
    Ok(())
}

/// The class of pods that name none; of several the lowest, should there be.
fn global_default(view: &dyn View) -> Option<Arc<Value>> {
    let classes = view.list("scheduling.k8s.io", "priorityclasses", None);
    classes
        .into_iter()
        .filter(|class| flag(class, "/globalDefault"))
        .min_by_key(|class| number(class, "/value"))
}

/// Takes over what the pod's runtime class says of overhead and of nodes.
fn runtime_class(pod: &mut Value, request: &Request<'_>) -> Result<(), ApiError> {
    let refuse = |pod: &Value, why: &str| {
        Err(ApiError::forbidden(request.resource, name(pod), &format!("pod rejected: {why}")))
    };
    let wanted = text(pod, "/spec/runtimeClassName");
    let given = pod.pointer("/spec/overhead").filter(|overhead| !same(Some(overhead), None));
    let class = if wanted.is_empty() {
        None
    } else {
        match request.view.get("node.k8s.io", "runtimeclasses", "", wanted) {
            Some(class) => Some(class),
            None => return refuse(pod, &format!("RuntimeClass {wanted:?} not found")),
        }
    };
    let overhead = class.as_ref().and_then(|class| class.pointer("/overhead/podFixed"));
    match (given, overhead) {
        (Some(_), None) => {
            let why = "Pod Overhead set without corresponding RuntimeClass defined Overhead";
            return refuse(pod, why);
        }
        (Some(given), Some(overhead)) if !same(Some(given), Some(overhead)) => {
            let why = "Pod's Overhead doesn't match RuntimeClass's defined Overhead";
            return refuse(pod, why);
        }
        _ => {}
    }
    let Some(class) = class.as_ref() else { return Ok(()) };
    for (key, value) in entries(class, "/scheduling/nodeSelector") {
        let own = pod.pointer("/spec/nodeSelector").and_then(|selector| selector.get(key));
        if let Some(own) = own.filter(|own| *own != value) {
            let [own, value] = [own, value].map(|value| value.as_str().unwrap_or_default());
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; \
                 pod.spec.nodeSelector[{key}] = {own}"
            );
            return refuse(pod, &why);
        }
    }
    let Some(spec) = object_at(pod, "/spec") else { return Ok(()) };
    if let Some(overhead) = overhead {
        set(spec, "overhead", overhead.clone());
    }
    for (key, value) in entries(class, "/scheduling/nodeSelector") {
        if let Some(selector) = child(spec, "nodeSelector") {
            set(selector, key, value.clone());
        }
    }
    for toleration in items(class, "/scheduling/tolerations") {
        default(spec, "tolerations", json!([]));
        let list = spec["tolerations"].as_array_mut();
        if let Some(list) = list.filter(|list| !list.contains(toleration)) {
            list.push(toleration.clone());
        }
    }
    Ok(())
}
