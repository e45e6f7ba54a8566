//! What the API fills in for what a pod's author leaves out.
//!
//! Source: the API documentation of the fields.

use serde_json::{Value, json};
use steersman_api::quantity::Quantity;

use crate::fields::{
    child, default, entries, field, flag, items, items_mut, object_at, quantities, set,
};

/// Fills in a pod.
pub(super) fn pod(pod: &mut Value) {
    let Some(spec) = object_at(pod, "/spec") else { return };
    default(spec, "enableServiceLinks", true);
    for list in ["/containers", "/initContainers"] {
        for container in items_mut(spec, list) {
            resource_texts(container);
            requests_from_limits(container);
        }
    }
    resource_texts(spec);
    pod_level_requests(spec);
    pod_spec(spec);
    if flag(spec, "/hostNetwork") {
        for list in ["/containers", "/initContainers"] {
            for port in items_mut(spec, list).iter_mut().flat_map(|c| items_mut(c, "/ports")) {
                host_port(port);
            }
        }
    }
}

/// Fills in a pod template: as a pod, but what depends on the pod as a whole is
/// left to the pods that are made of it.
pub(crate) fn template(template: &mut Value) {
    if let Some(spec) = object_at(template, "/spec") {
        pod_spec(spec);
    }
}

fn pod_spec(spec: &mut Value) {
    quantities(spec, "/overhead");
    default(spec, "restartPolicy", "Always");
    default(spec, "dnsPolicy", "ClusterFirst");
    default(spec, "terminationGracePeriodSeconds", 30);
    default(spec, "schedulerName", "default-scheduler");
    default(spec, "securityContext", json!({}));
    // The older name of the same field.
    let account = match field(spec, "serviceAccountName") {
        "" => field(spec, "serviceAccount").to_owned(),
        account => account.to_owned(),
    };
    if !account.is_empty() {
        default(spec, "serviceAccountName", account.clone());
        if let Some(spec) = spec.as_object_mut() {
            spec.insert("serviceAccount".to_owned(), account.into());
        }
    }
    for list in ["/containers", "/initContainers", "/ephemeralContainers"] {
        items_mut(spec, list).iter_mut().for_each(container);
    }
    items_mut(spec, "/volumes").iter_mut().for_each(volume);
}

fn container(container: &mut Value) {
    if !container.is_object() {
        return;
    }
    let policy = if is_moving(field(container, "image")) { "Always" } else { "IfNotPresent" };
    default(container, "imagePullPolicy", policy);
    default(container, "terminationMessagePath", "/dev/termination-log");
    default(container, "terminationMessagePolicy", "File");
    default(container, "resources", json!({}));
    resource_texts(container);
    for port in items_mut(container, "/ports") {
        default(port, "protocol", "TCP");
    }
    for variable in items_mut(container, "/env") {
        if let Some(source) = object_at(variable, "/valueFrom/fieldRef") {
            default(source, "apiVersion", "v1");
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name).filter(|probe| probe.is_object()) {
            default(probe, "timeoutSeconds", 1);
            default(probe, "periodSeconds", 10);
            default(probe, "successThreshold", 1);
            default(probe, "failureThreshold", 3);
            http_get(probe);
            if let Some(grpc) = object_at(probe, "/grpc") {
                default(grpc, "service", "");
            }
        }
    }
    for hook in ["/lifecycle/postStart", "/lifecycle/preStop"] {
        if let Some(hook) = object_at(container, hook) {
            http_get(hook);
        }
    }
}

fn resource_texts(of: &mut Value) {
    quantities(of, "/resources/limits");
    quantities(of, "/resources/requests");
}

/// Whether an image's name says `latest`, or no version at all.
fn is_moving(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or_default();
    match last.split_once('@') {
        Some(_) => false,
        None => last.split_once(':').is_none_or(|(_, tag)| tag == "latest"),
    }
}

fn http_get(of: &mut Value) {
    if let Some(get) = object_at(of, "/httpGet") {
        default(get, "path", "/");
        default(get, "scheme", "HTTP");
    }
}

/// A limit without a request is the request too.
fn requests_from_limits(container: &mut Value) {
    let limits: Vec<(String, Value)> = entries(container, "/resources/limits")
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    if limits.is_empty() {
        return;
    }
    let resources = container.get_mut("resources").and_then(|r| child(r, "requests"));
    let Some(requests) = resources else { return };
    for (name, amount) in limits {
        default(requests, &name, amount);
    }
}

/// Requests of the pod as a whole, if it states resources: what its containers
/// request together, or else its limits.
fn pod_level_requests(spec: &mut Value) {
    if !spec.get("resources").is_some_and(Value::is_object) {
        return;
    }
    let names = ["cpu", "memory"];
    let mut wanted: Vec<(&str, Value)> = Vec::new();
    for name in names {
        if let Some(total) = containers_request(spec, name) {
            wanted.push((name, Value::from(total.to_string())));
        } else if let Some(limit) = spec.pointer(&format!("/resources/limits/{name}")) {
            wanted.push((name, limit.clone()));
        }
    }
    let huge: Vec<(String, Value)> = entries(spec, "/resources/limits")
        .filter(|(name, _)| name.starts_with("hugepages-"))
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    if wanted.is_empty() && huge.is_empty() {
        return;
    }
    let Some(requests) = spec.get_mut("resources").and_then(|r| child(r, "requests")) else {
        return;
    };
    for (name, amount) in wanted {
        default(requests, name, amount);
    }
    for (name, amount) in huge {
        default(requests, &name, amount);
    }
}

/// What all containers of a pod request of a resource at the worst moment: the
/// main ones together with sidecars, or an init container with the sidecars
/// started before it.
fn containers_request(spec: &Value, name: &str) -> Option<Quantity> {
    let pointer = format!("/resources/requests/{name}");
    let request = |container: &Value| {
        let amount = container.pointer(&pointer)?.as_str()?;
        Quantity::parse(amount).ok()
    };
    let mut stated = false;
    let mut sidecars = Quantity::ZERO;
    let mut worst_init = Quantity::ZERO;
    for container in items(spec, "/initContainers") {
        let amount = request(container);
        stated |= amount.is_some();
        let amount = amount.unwrap_or_default();
        if field(container, "restartPolicy") == "Always" {
            sidecars = sidecars.plus(amount);
            worst_init = worst_init.max(sidecars);
        } else {
            worst_init = worst_init.max(sidecars.plus(amount));
        }
    }
    let mut main = sidecars;
    for container in items(spec, "/containers") {
        let amount = request(container);
        stated |= amount.is_some();
        main = main.plus(amount.unwrap_or_default());
    }
    stated.then(|| main.max(worst_init))
}

/// On the host's network a container's port is the host's.
fn host_port(port: &mut Value) {
    let unset = port.get("hostPort").and_then(Value::as_i64).unwrap_or(0) == 0;
    if let Some(number) = port.get("containerPort").cloned().filter(|_| unset) {
        set(port, "hostPort", number);
    }
}

/// The permissions of files in volumes, `0644`.
const FILE_MODE: i64 = 0o644;

fn volume(volume: &mut Value) {
    let Some(map) = volume.as_object() else { return };
    let has_source = map.iter().any(|(key, value)| key != "name" && !value.is_null());
    if !has_source {
        default(volume, "emptyDir", json!({}));
    }
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source).filter(|source| source.is_object()) {
            default(source, "defaultMode", FILE_MODE);
        }
    }
    if let Some(path) = object_at(volume, "/hostPath") {
        default(path, "type", "");
    }
    if let Some(spec) = object_at(volume, "/ephemeral/volumeClaimTemplate/spec") {
        default(spec, "volumeMode", "Filesystem");
    }
    if let Some(image) = object_at(volume, "/image") {
        let policy = if is_moving(field(image, "reference")) { "Always" } else { "IfNotPresent" };
        default(image, "pullPolicy", policy);
    }
    items_mut(volume, "/downwardAPI/items").iter_mut().for_each(file_of_field);
    for source in items_mut(volume, "/projected/sources") {
        items_mut(source, "/downwardAPI/items").iter_mut().for_each(file_of_field);
        if let Some(token) = object_at(source, "/serviceAccountToken") {
            default(token, "expirationSeconds", 3600);
        }
    }
    network_disk(volume);
}

fn network_disk(volume: &mut Value) {
    if let Some(disk) = object_at(volume, "/iscsi") {
        default(disk, "iscsiInterface", "default");
    }
    if let Some(disk) = object_at(volume, "/rbd") {
        default(disk, "pool", "rbd");
        default(disk, "user", "admin");
        default(disk, "keyring", "/etc/ceph/keyring");
    }
}

fn file_of_field(file: &mut Value) {
    if let Some(source) = object_at(file, "/fieldRef") {
        default(source, "apiVersion", "v1");
    }
}
