//! How fast plain pods are scheduled, and how much memory a bound pod takes in
//! the core: `cargo run --release -p steersman-sim --example footprint`.
//!
//! Arguments: nodes (default 5000) and pods (default 10000).
#![expect(clippy::print_stdout, reason = "it prints what it measured")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use serde_json::json;
use steersman_api::decode::decode;
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::object::ClusterObject;
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;
use steersman_config::Config;
use steersman_core::{Effect, Event, Outcome, Scheduler, Setup};
use steersman_framework::extensions::BoxFuture;
use steersman_framework::observer::Unobserved;
use steersman_framework::world::{ClusterWriter, WriteError};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<usize>());
    let n_nodes = args.next().transpose()?.unwrap_or(5000);
    let n_pods = args.next().transpose()?.unwrap_or(10_000);

    let registry = steersman_plugins::table::in_tree();
    let config = Config::default_for(&registry)?;
    let setup = Setup::new(&config, &registry);
    let (mut scheduler, _) = Scheduler::new(setup)?;
    for n in 0..n_nodes {
        let name = format!("node-{n:06}");
        let labels = json!({"kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": format!("zone-{}", n % 3)});
        let object = decode(json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"}}}))?;
        scheduler.handle(Event::Upsert(object.object), Time::ZERO);
    }
    println!("{n_nodes} nodes: {} KiB resident", resident_kib());

    let before = resident_kib();
    for n in 0..n_pods {
        scheduler.handle(Event::Upsert(ClusterObject::Pod(pod(n)?)), Time::ZERO);
    }
    println!("{n_pods} pending pods: {} bytes each", each(before, n_pods));

    let started = Instant::now();
    let mut bound = 0;
    while let Some((attempt, effects)) = scheduler.schedule_next(Time::ZERO, &mut Unobserved) {
        let Outcome::Assumed(node) = attempt.outcome else { continue };
        for effect in effects {
            if let Effect::StartBinding(cycle) = effect {
                let report = ready(cycle.run(&Paper, &mut Unobserved));
                scheduler.handle(Event::BindingFinished(report), Time::ZERO);
            }
        }
        confirm(&mut scheduler, &attempt.pod, node);
        bound += 1;
    }
    let took = started.elapsed();
    println!(
        "{bound} pods bound in {took:.2?}: {:.0} a second",
        f64::from(bound) / took.as_secs_f64()
    );
    println!("{bound} bound pods: {} bytes each", each(before, n_pods));
    Ok(())
}

/// Every write succeeds at once.
struct Paper;

impl ClusterWriter for Paper {
    fn bind<'a>(
        &'a self,
        _: &'a ObjectKey,
        _: &'a PodUid,
        _: &'a Name,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The output of a future that never waits.
fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("writes on paper are ready at once"),
    }
}

/// The watch shows the pod on its node.
fn confirm(scheduler: &mut Scheduler, pod: &PodInfo, node: Name) {
    let seen = PodInfo { node_name: Some(node), ..pod.clone() };
    scheduler.handle(Event::Upsert(ClusterObject::Pod(Arc::new(seen))), Time::ZERO);
}

/// A plain pod, as an API server has it.
fn pod(n: usize) -> Result<Arc<PodInfo>, Box<dyn std::error::Error>> {
    let object = decode(json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "default", "name": format!("web-7c9f4d8b5-{n:06}"),
            "uid": format!("7d1f3a52-0c1b-4a53-9b1e-{n:012}"),
            "labels": {"app": "web", "pod-template-hash": "7c9f4d8b5"}},
        "spec": {"containers": [{"name": "c", "image": "app",
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}]}}))?;
    match object.object {
        ClusterObject::Pod(pod) => Ok(pod),
        other => Err(format!("not a pod: {other:?}").into()),
    }
}

/// Bytes of memory since `before` for each of `n`.
fn each(before: usize, n: usize) -> usize {
    resident_kib().saturating_sub(before) * 1024 / n.max(1)
}

/// The resident set; 0 where there is no `/proc`.
fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|l| l.trim().split(' ').next()).and_then(|n| n.parse().ok()).unwrap_or(0)
}
