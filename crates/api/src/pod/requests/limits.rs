//! What a pod may use at the most.

use std::borrow::Cow;

use k8s_openapi::api::core::v1 as core_v1;

use super::amounts::{Amounts, read_list};
use super::containers::together;
use super::pod_level::is_pod_level_resource;
use super::to_resources;
use crate::pod::convert::is_sidecar;
use crate::problem::{FieldPath, Problem};
use crate::resources::Resources;

/// Computes what a pod of this spec may use at the most: what its containers may
/// use together, in its place what is set for the pod as a whole, and the
/// overhead where there is a limit at all. Where a container has no limit, it
/// adds nothing.
pub(crate) fn pod_limits(spec: &core_v1::PodSpec, problems: &mut Vec<Problem>) -> Resources {
    let main = read(&spec.containers, "containers", problems);
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let init_limits = read(init, "initContainers", problems);
    let is_sidecar = init.iter().map(is_sidecar);
    let mut limits = together(
        main.iter().map(Cow::Borrowed),
        is_sidecar.zip(init_limits.iter().map(Cow::Borrowed)),
    );
    let whole = spec.resources.as_ref().and_then(|r| r.limits.as_ref());
    let mut whole = read_list(whole, problems, || "spec.resources.limits".into());
    whole.retain(|name, _| is_pod_level_resource(name));
    limits.extend(whole);
    // What cannot be read of it is reported where requests are read.
    let overhead = read_list(spec.overhead.as_ref(), &mut Vec::new(), FieldPath::root);
    for (name, amount) in overhead {
        if let Some(limit) = limits.get_mut(name).filter(|limit| **limit != Default::default()) {
            *limit = limit.plus(amount);
        }
    }
    to_resources(&limits)
}

fn read<'a>(
    containers: &'a [core_v1::Container],
    field: &str,
    problems: &mut Vec<Problem>,
) -> Vec<Amounts<'a>> {
    let containers = containers.iter().enumerate();
    containers
        .map(|(i, container)| {
            let limits = container.resources.as_ref().and_then(|r| r.limits.as_ref());
            let at = || FieldPath::from("spec").field(field).index(i).field("resources");
            read_list(limits, problems, || at().field("limits"))
        })
        .collect()
}
