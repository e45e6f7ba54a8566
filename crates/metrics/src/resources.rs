//! `/metrics/resources`: what each pod requests and may use, from the scheduler's
//! state.

use std::sync::Arc;

use prometheus::proto::{Gauge, LabelPair, Metric, MetricFamily, MetricType};
use steersman_api::pod::PodInfo;
use steersman_api::resources::Resources;
use steersman_core::Place;
use steersman_runtime::Moment;

/// The pods that have not ended; sharing them costs a pointer each.
pub(crate) fn pods(moment: Moment<'_>) -> Vec<Arc<PodInfo>> {
    let scheduler = moment.scheduler;
    let nodes = scheduler.cluster().nodes().iter();
    let mut pods: Vec<Arc<PodInfo>> = nodes.flat_map(|node| node.pods().iter().cloned()).collect();
    // Pods in flight are on their node already.
    for place in [Place::Active, Place::Backoff, Place::Unschedulable, Place::Gated] {
        pods.extend(scheduler.queued(place).map(|state| state.pod.clone()));
    }
    pods
}

/// The families of requests and of limits.
pub(crate) fn families(pods: &[Arc<PodInfo>]) -> Vec<MetricFamily> {
    let mut sorted: Vec<&PodInfo> = pods.iter().map(|pod| &**pod).collect();
    sorted.sort_by(|a, b| (&a.key, &a.uid).cmp(&(&b.key, &b.uid)));
    let requests = family(
        "kube_pod_resource_request",
        "[STABLE] What pods request, by resource and its unit. Pods that have ended do not count.",
        &sorted,
        |pod| &pod.resources.requests,
    );
    let limits = family(
        "kube_pod_resource_limit",
        "[STABLE] What pods may use, by resource and its unit. Pods that have ended do not count.",
        &sorted,
        |pod| &pod.spec.limits,
    );
    vec![limits, requests]
}

fn family(
    name: &str,
    help: &str,
    pods: &[&PodInfo],
    of: fn(&PodInfo) -> &Resources,
) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(MetricType::GAUGE);
    family.set_metric(pods.iter().flat_map(|pod| series(pod, of(pod))).collect());
    family
}

/// A series for each resource.
fn series(pod: &PodInfo, resources: &Resources) -> Vec<Metric> {
    let amounts = amounts(resources).into_iter();
    amounts
        .map(|(resource, unit, amount)| {
            let node = pod.node_name.as_ref().map(ToString::to_string).unwrap_or_default();
            let labels = [
                ("namespace", pod.key.namespace.to_string()),
                ("node", node),
                ("pod", pod.key.name.to_string()),
                ("priority", pod.spec.priority.to_string()),
                ("resource", resource),
                ("scheduler", pod.spec.scheduler_name.to_string()),
                ("unit", unit.to_owned()),
            ];
            let label = |(name, value): (&str, String)| {
                let mut label = LabelPair::default();
                label.set_name(name.to_owned());
                label.set_value(value);
                label
            };
            let mut metric = Metric::default();
            metric.set_label(labels.into_iter().map(label).collect());
            let mut gauge = Gauge::default();
            gauge.set_value(amount);
            metric.set_gauge(gauge);
            metric
        })
        .collect()
}

/// Resource, unit and amount of what is not zero.
fn amounts(resources: &Resources) -> Vec<(String, &'static str, f64)> {
    let basic = [
        ("cpu", "cores", resources.milli_cpu as f64 / 1000.0),
        ("memory", "bytes", resources.memory as f64),
        ("ephemeral-storage", "bytes", resources.ephemeral_storage as f64),
    ];
    let basic = basic.into_iter().map(|(name, unit, amount)| (name.to_owned(), unit, amount));
    let scalars = resources.scalars().map(|(name, amount)| {
        let unit = match name {
            name if name.starts_with("hugepages-") => "bytes",
            name if name.starts_with("attachable-volumes-") => "integer",
            _ => "",
        };
        (name.to_string(), unit, amount as f64)
    });
    basic.chain(scalars).filter(|(_, _, amount)| *amount != 0.0).collect()
}
