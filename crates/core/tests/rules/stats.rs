//! Numbers about the state are those that a recount gives, at every step of a
//! pod's way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use steersman_api::node_info::NodeInfo;
use steersman_core::{FailureReason, Place, Record, Scheduler};
use steersman_framework::events::{ClusterEvent, EnqueueExtensions};
use steersman_framework::extensions::{CycleCtx, Extensions, Filter};
use steersman_framework::verdict::{FilterVerdict, PluginError, Rejection};
use steersman_testing::{node, pod};

use super::world::{World, plugin};

const PLACES: [Place; 5] =
    [Place::Active, Place::Backoff, Place::Unschedulable, Place::Gated, Place::InFlight];

/// The queue's numbers, recounted from where each pod stands.
fn recounted(scheduler: &Scheduler) -> Vec<usize> {
    PLACES.map(|place| scheduler.queued(place).count()).into()
}

#[track_caller]
fn check(world: &World, what: &str, counts: [usize; 5]) {
    let stats = world.scheduler.stats();
    let queue = stats.queue;
    let counted = [queue.active, queue.backoff, queue.unschedulable, queue.gated, queue.in_flight];
    assert_eq!(counted, counts, "{what}");
    assert_eq!(recounted(&world.scheduler), counts, "{what}: recounted");
    for place in PLACES {
        for state in world.scheduler.queued(place) {
            assert_eq!(world.scheduler.place_of(&state.pod.uid), Some(place), "{what}");
        }
    }
    let mut rejections = BTreeMap::new();
    for place in &PLACES[..3] {
        for state in world.scheduler.queued(*place) {
            for plugin in &state.rejected_by {
                let key = (state.pod.spec.scheduler_name.clone(), *plugin);
                *rejections.entry(key).or_insert(0) += 1;
            }
        }
    }
    let gates = world.scheduler.queued(Place::Gated).count();
    let gated = stats.rejections.iter().filter(|((_, plugin), _)| *plugin == "SchedulingGates");
    assert_eq!(gated.map(|(_, n)| n).sum::<usize>(), gates, "{what}: gates");
    let others = stats.rejections.iter().filter(|((_, plugin), _)| *plugin != "SchedulingGates");
    let others: BTreeMap<_, _> = others.map(|(key, n)| (key.clone(), *n)).collect();
    assert_eq!(others, rejections, "{what}: rejections");
    assert_eq!(stats.pods, world.scheduler.placed_count(), "{what}");
    assert_eq!(stats.assumed, world.scheduler.assumed().count(), "{what}");
    assert_eq!(stats.binding + stats.waiting, world.scheduler.bindings().count(), "{what}");
    assert_eq!(world.scheduler.broken_invariants(), Vec::<String>::new(), "{what}");
}

fn came(world: &World) -> BTreeMap<String, u64> {
    let incoming = world.scheduler.stats().incoming;
    incoming.into_iter().map(|i| (format!("{} {}", i.queue, i.event), i.count)).collect()
}

#[test]
fn counts_are_right_from_gated_to_unschedulable_to_deleted() {
    let gates = json!({"schedulingGates": [{"name": "wait"}]});
    let mut world = World::new();
    world.see(node("n1"));
    world.see(pod("a").cpu("8").spec(gates));
    check(&world, "gated", [0, 0, 0, 1, 0]);
    world.see(pod("a").cpu("8"));
    check(&world, "the gate is gone", [1, 0, 0, 0, 0]);
    assert_eq!(world.next(), "a: no");
    check(&world, "unschedulable", [0, 0, 1, 0, 0]);
    world.see(node("n2"));
    check(&world, "another node that does not help", [0, 0, 1, 0, 0]);
    world.see(node("n1").allocatable("cpu", "16"));
    check(&world, "woken, and it backs off", [0, 1, 0, 0, 0]);
    world.pass(Duration::from_secs(1));
    check(&world, "its backoff is over", [1, 0, 0, 0, 0]);
    world.delete_pod("a");
    check(&world, "deleted", [0, 0, 0, 0, 0]);
    let expected = [
        ("active BackoffComplete", 1),
        ("active UnscheduledPodUpdate", 1),
        ("backoff NodeUpdateNodeAllocatable", 1),
        ("unschedulable ScheduleAttemptFailure", 1),
        ("unschedulable UnscheduledPodAdd", 1),
    ];
    assert_eq!(came(&world), expected.map(|(key, n)| (key.to_owned(), n)).into());
}

#[test]
fn a_gated_pod_that_stays_gated_does_not_count_as_one_that_came() {
    let gates = |names: &[&str]| {
        let gates: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        pod("a").spec(json!({"schedulingGates": gates}))
    };
    let mut world = World::new();
    world.see(gates(&["one", "two"]));
    world.see(gates(&["one"]));
    check(&world, "still gated", [0, 0, 0, 1, 0]);
    assert_eq!(came(&world), [("unschedulable UnscheduledPodAdd".to_owned(), 1)].into());
}

#[test]
fn counts_are_right_while_pods_are_bound() {
    let mut world = World::new();
    world.see(node("n1"));
    for name in ["a", "b", "c"] {
        world.see(pod(name).cpu("1"));
    }
    check(&world, "new", [3, 0, 0, 0, 0]);
    assert_eq!((world.next(), world.next()), ("a: n1".to_owned(), "b: n1".to_owned()));
    check(&world, "two in flight", [1, 0, 0, 0, 2]);
    assert_eq!(world.scheduler.stats().remembered.get("PodPopped"), Some(&2));
    world.finish("a", Ok(()));
    check(&world, "bound, not seen", [1, 0, 0, 0, 1]);
    assert_eq!(world.scheduler.stats().assumed, 2);
    world.see(pod("a").cpu("1").on("n1"));
    check(&world, "seen", [1, 0, 0, 0, 1]);
    assert_eq!(world.scheduler.stats().assumed, 1);
    world.finish("b", Err(steersman_framework::world::WriteError::Other("no".to_owned())));
    check(&world, "failed", [1, 1, 0, 0, 0]);
    world.delete_pod("b");
    world.delete_pod("c");
    world.delete_pod("a");
    check(&world, "all gone", [0, 0, 0, 0, 0]);
}

#[test]
fn records_say_what_ended_and_nothing_is_kept_for_nobody() {
    let mut world = World::new();
    world.see(pod("a"));
    assert_eq!(world.next(), "a: no");
    assert_eq!(world.scheduler.take_records(), []);
    world.scheduler.keep_records();
    world.pass(Duration::from_secs(5));
    world.see(node("n1"));
    assert_eq!(world.next(), "a: n1");
    world.pass(Duration::from_secs(2));
    world.finish("a", Ok(()));
    let records = world.scheduler.take_records();
    let [Record::Scheduled { profile, attempts: 2, started, first_active, after_flush: false }] =
        &records[..]
    else {
        panic!("{records:?}");
    };
    assert_eq!(&**profile, "default-scheduler");
    assert_eq!(started.since(*first_active), Duration::from_secs(5));
    assert_eq!(world.scheduler.take_records(), [], "they are taken once");

    world.see(pod("big").cpu("100"));
    assert_eq!(world.next(), "big: no");
    let records = world.scheduler.take_records();
    let [Record::Failed { reason: FailureReason::Unschedulable, started: Some(_), .. }] =
        &records[..]
    else {
        panic!("{records:?}");
    };
}

#[test]
fn a_pod_that_only_the_flush_brought_back_is_told_from_others() {
    let mut world = World::new();
    world.scheduler.keep_records();
    world.see(node("n1"));
    world.see(pod("big").cpu("4").on("n1"));
    world.see(pod("a").cpu("4"));
    assert_eq!(world.next(), "a: no");
    world.pass(Duration::from_secs(300));
    assert_eq!(world.next(), "a: no", "the flush did not help");
    world.delete_pod("big");
    world.pass(Duration::from_secs(300));
    assert_eq!(world.next(), "a: n1", "an event did");
    world.finish("a", Ok(()));
    let flushed = |record: &Record| matches!(record, Record::Scheduled { after_flush: true, .. });
    let records = world.scheduler.take_records();
    assert_eq!(records.iter().filter(|record| flushed(record)).count(), 0, "{records:?}");
    assert_eq!(world.scheduler.stats().flushed, 1);
}

/// Lets nothing through until told to, and no event lifts that.
struct Shut(Arc<AtomicBool>);

impl Filter for Shut {
    fn filter(&self, _: &CycleCtx<'_>, _: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        Ok(match self.0.load(Ordering::Relaxed) {
            true => FilterVerdict::Fit,
            false => FilterVerdict::Reject(Rejection::unschedulable("shut")),
        })
    }
}

impl EnqueueExtensions for Shut {
    fn events(&self) -> Vec<ClusterEvent> {
        Vec::new()
    }
}

#[test]
fn a_pod_that_the_flush_alone_brought_to_a_node_is_recorded_so() {
    let open = Arc::new(AtomicBool::new(false));
    let shut = Extensions {
        filter: Some(Arc::new(Shut(open.clone()))),
        events: Some(Arc::new(Shut(open.clone()))),
        ..Extensions::default()
    };
    let mut world = World::with_plugins(&[plugin("Shut", shut)]);
    world.scheduler.keep_records();
    world.see(node("n1"));
    world.see(pod("a"));
    assert_eq!(world.next(), "a: no");
    open.store(true, Ordering::Relaxed);
    world.pass(Duration::from_secs(300));
    assert_eq!(world.next(), "a: n1");
    world.finish("a", Ok(()));
    let records = world.scheduler.take_records();
    let last = records.last();
    assert!(matches!(last, Some(Record::Scheduled { after_flush: true, .. })), "{records:?}");
}
