//! `/metrics/resources`: what each pod requests, from the scheduler's state.

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

/// The family of requests.
pub(crate) fn family(pods: &[Arc<PodInfo>]) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name("kube_pod_resource_request".to_owned());
    family.set_help(
        "[STABLE] What pods request, by resource and its unit. Pods that have ended do not count."
            .to_owned(),
    );
    family.set_field_type(MetricType::GAUGE);
    let mut sorted: Vec<&Arc<PodInfo>> = pods.iter().collect();
    sorted.sort_by(|a, b| (&a.key, &a.uid).cmp(&(&b.key, &b.uid)));
    family.set_metric(sorted.into_iter().flat_map(|pod| requests(pod)).collect());
    family
}

fn requests(pod: &PodInfo) -> Vec<Metric> {
    let amounts = amounts(&pod.resources.requests).into_iter();
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
