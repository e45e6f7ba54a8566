//! Requests that follow from limits.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core_v1;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use steersman_api::pod::pod_resources;
use steersman_api::quantity::Quantity;

/// What a container may use and does not request, it requests. For the pod as
/// a whole: what its containers request together, else its limit.
///
/// Source: the API documentation of `ResourceRequirements`, and KEP-2837.
pub(super) fn default_requests(pod: &mut core_v1::Pod) {
    let Some(spec) = &mut pod.spec else { return };
    let init = spec.init_containers.iter_mut().flatten();
    for container in init.chain(&mut spec.containers) {
        let Some(resources) = &mut container.resources else { continue };
        let Some(limits) = &resources.limits else { continue };
        let requests = resources.requests.get_or_insert_default();
        for (name, limit) in limits {
            requests.entry(name.clone()).or_insert_with(|| limit.clone());
        }
    }
    let limits = spec.resources.as_ref().and_then(|r| r.limits.clone()).unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    let mut requests = containers_together(pod);
    let Some(resources) = pod.spec.as_mut().and_then(|spec| spec.resources.as_mut()) else {
        return;
    };
    let stated = resources.requests.take().unwrap_or_default();
    for (name, limit) in limits {
        if matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-") {
            requests.entry(name).or_insert(limit);
        }
    }
    requests.extend(stated);
    resources.requests = Some(requests);
}

/// CPU and memory that the containers of the pod request together.
fn containers_together(pod: &core_v1::Pod) -> BTreeMap<String, ApiQuantity> {
    let mut bare = pod.clone();
    bare.status = None;
    if let Some(spec) = &mut bare.spec {
        spec.resources = None;
        spec.overhead = None;
    }
    // Unreadable amounts are reported when the pod itself is read.
    let together = pod_resources(&bare, &mut Vec::new()).requests;
    let stated = |name: &str| {
        let spec = bare.spec.as_ref();
        let init = spec.and_then(|s| s.init_containers.as_deref()).unwrap_or_default();
        let main = spec.map(|s| s.containers.as_slice()).unwrap_or_default();
        init.iter().chain(main).any(|container| {
            let requests = container.resources.as_ref().and_then(|r| r.requests.as_ref());
            requests.is_some_and(|r| r.contains_key(name))
        })
    };
    [("cpu", Quantity::millis(together.milli_cpu)), ("memory", Quantity::units(together.memory))]
        .into_iter()
        .filter(|(name, _)| stated(name))
        .map(|(name, amount)| (name.to_owned(), ApiQuantity(amount.to_string())))
        .collect()
}
