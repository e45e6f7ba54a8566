//! The queue.

use std::sync::Arc;

use serde_json::json;
use steersman_api::name::Name;
use steersman_core::Place;
use steersman_framework::events::{ActionType, ClusterEvent, EnqueueExtensions, EventResource};
use steersman_framework::extensions::{BindCtx, BoxFuture, CycleCtx, Extensions, PreBind};
use steersman_framework::verdict::{PluginError, PreBindVerdict, Rejection};
use steersman_testing::{PodBuilder, node, pod};

use crate::world::{World, down, plugin, seconds};

/// A pod for which no node of these tests is large enough.
fn giant(name: &str) -> PodBuilder {
    pod(name).cpu("100")
}

#[test]
fn pods_are_tried_by_priority_and_then_by_arrival() {
    let mut world = World::new();
    world.see(node("n1"));
    for (name, priority) in [("low", 0), ("first", 5), ("second", 5), ("high", 9)] {
        world.see(pod(name).priority(priority));
    }
    let tried: Vec<String> = (0..5).map(|_| world.next()).collect();
    assert_eq!(tried, ["high: n1", "first: n1", "second: n1", "low: n1", "nobody"]);
}

#[test]
fn wait_after_errors_doubles_up_to_the_longest() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(pod("a"));
    for wait in [1, 2, 4, 8, 10, 10] {
        assert_eq!(world.next(), "a: n1");
        world.finish("a", down());
        assert_eq!(world.place("a"), Some(Place::Backoff));
        assert_eq!(world.until_timer(), Some(seconds(wait)));
        world.pass(seconds(wait));
    }
}

#[test]
fn pod_that_backs_off_is_tried_when_nobody_else_is_there() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(giant("a"));
    assert_eq!(world.next(), "a: no");
    world.see(node("n2").allocatable("cpu", "200"));
    assert_eq!(world.place("a"), Some(Place::Backoff));
    world.see(pod("b"));
    let next = world.next();
    assert!(next.starts_with("b: "), "{next}");
    assert_eq!(world.next(), "a: n2");
}

#[test]
fn pod_that_backs_off_waits_when_the_feature_is_off() {
    let mut world = World::with_gates(&[], "SchedulerPopFromBackoffQ=false");
    world.see(node("n1"));
    world.see(giant("a"));
    assert_eq!(world.next(), "a: no");
    world.see(node("n2").allocatable("cpu", "200"));
    assert_eq!(world.place("a"), Some(Place::Backoff));
    assert_eq!(world.next(), "nobody");
    world.pass(seconds(1));
    assert_eq!(world.next(), "a: n2");
}

#[test]
fn pod_that_met_an_error_waits_its_full_time() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(pod("a"));
    assert_eq!(world.next(), "a: n1");
    assert_eq!(
        world.finish("a", down()),
        "a: SchedulerError: running Bind plugin \"DefaultBinder\": down"
    );
    assert_eq!(world.next(), "nobody");
    world.pass(seconds(1));
    assert_eq!(world.next(), "a: n1");
}

#[test]
fn gated_pod_is_tried_once_its_last_gate_is_gone() {
    let gated = |gates: &[&str]| {
        let gates: Vec<_> = gates.iter().map(|name| json!({"name": name})).collect();
        pod("a").spec(json!({"schedulingGates": gates}))
    };
    let mut world = World::new();
    world.see(node("n1"));
    for gates in [&["one", "two"][..], &["one"]] {
        world.see(gated(gates));
        assert_eq!(world.place("a"), Some(Place::Gated), "{gates:?}");
        assert_eq!(world.next(), "nobody");
    }
    world.see(gated(&[]));
    assert_eq!(world.next(), "a: n1");
}

#[test]
fn pod_of_another_scheduler_is_nobodys_until_it_takes_room() {
    let foreign = || pod("a").cpu("4").spec(json!({"schedulerName": "other"}));
    let mut world = World::new();
    world.see(node("n1"));
    world.see(foreign());
    assert_eq!((world.place("a"), world.next()), (None, "nobody".to_owned()));
    world.see(foreign().on("n1"));
    world.see(pod("b").cpu("1"));
    assert_eq!(world.next(), "b: no");
}

#[test]
fn pod_bound_by_someone_else_leaves_wherever_it_stood() {
    let gate = json!({"schedulingGates": [{"name": "g"}]});
    let cases = [
        ("active", pod("a"), false, Place::Active),
        ("unschedulable", giant("a"), true, Place::Unschedulable),
        ("gated", pod("a").spec(gate), false, Place::Gated),
        ("in flight", pod("a"), true, Place::InFlight),
    ];
    for (what, pending, tried, place) in cases {
        let mut world = World::new();
        world.see(node("n1"));
        world.see(pending.clone());
        if tried {
            world.next();
        }
        assert_eq!(world.place("a"), Some(place), "{what}");
        world.see(pending.on("n1"));
        assert_eq!(world.place("a"), None, "{what}");
        assert_eq!(world.next(), "nobody", "{what}");
        assert_eq!(world.scheduler.placed_count(), 1, "{what}");
    }
}

#[test]
fn first_node_wakes_pods_that_found_none() {
    let mut world = World::new();
    world.see(pod("a"));
    assert_eq!(world.next(), "a: no");
    assert_eq!(world.place("a"), Some(Place::Unschedulable));
    world.see(node("n1"));
    assert_eq!(world.next(), "a: n1");
}

#[test]
fn only_what_may_help_wakes_an_unschedulable_pod() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(pod("other").on("n1"));
    world.see(giant("a"));
    assert_eq!(world.next(), "a: no");
    world.see(node("n1").label("disk", "ssd"));
    world.see(pod("other").label("app", "web").on("n1"));
    world.see(node("n2"));
    assert_eq!(world.place("a"), Some(Place::Unschedulable), "nothing helped so far");
    world.see(pod("a").cpu("1"));
    assert_eq!(world.place("a"), Some(Place::Backoff), "it asks for less");
}

#[test]
fn pod_is_tried_again_after_five_minutes_whatever_happens() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(giant("a"));
    assert_eq!(world.next(), "a: no");
    world.pass(seconds(299));
    assert_eq!(
        (world.place("a"), world.scheduler.flushed_count()),
        (Some(Place::Unschedulable), 0)
    );
    world.pass(seconds(1));
    assert_eq!((world.place("a"), world.scheduler.flushed_count()), (Some(Place::Active), 1));
}

#[test]
fn how_long_that_takes_can_be_set() {
    let mut world = World::flushing_after(seconds(60));
    world.see(node("n1"));
    world.see(giant("a"));
    assert_eq!(world.next(), "a: no");
    world.pass(seconds(59));
    assert_eq!(world.place("a"), Some(Place::Unschedulable));
    world.pass(seconds(1));
    assert_eq!((world.place("a"), world.scheduler.flushed_count()), (Some(Place::Active), 1));
}

/// Rejects every pod before it is bound, until a node's labels change.
struct NotReady;

impl PreBind for NotReady {
    fn has_work(&self, _: &CycleCtx<'_>, _: &Name) -> bool {
        false
    }

    fn pre_bind<'a>(
        &'a self,
        _: BindCtx<'a>,
    ) -> BoxFuture<'a, Result<PreBindVerdict, PluginError>> {
        Box::pin(async { Ok(PreBindVerdict::Reject(Rejection::unschedulable("not ready"))) })
    }
}

impl EnqueueExtensions for NotReady {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::new(EventResource::NODE, ActionType::UPDATE_NODE_LABEL)]
    }
}

#[test]
fn event_during_the_binding_is_not_lost_when_the_binding_fails() {
    for (happens, place) in [(false, Place::Unschedulable), (true, Place::Backoff)] {
        let not_ready = Extensions {
            pre_bind: Some(Arc::new(NotReady)),
            events: Some(Arc::new(NotReady)),
            ..Extensions::default()
        };
        let mut world = World::with_plugins(&[plugin("NotReady", not_ready)]);
        world.see(node("n1"));
        world.see(pod("a"));
        assert_eq!(world.next(), "a: n1");
        if happens {
            world.see(node("n1").label("ready", "yes"));
        }
        assert_eq!(
            world.finish("a", Ok(())),
            "a: Unschedulable: 0/1 nodes are available: 1 not ready."
        );
        assert_eq!(world.place("a"), Some(place), "the event happens: {happens}");
    }
}

#[test]
fn pod_being_deleted_is_not_tried_again() {
    let deleted = || pod("a").metadata(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
    let mut world = World::new();
    world.see(node("n1"));
    world.see(pod("a"));
    assert_eq!(world.next(), "a: n1");
    world.see(deleted());
    assert_eq!(world.place("a"), Some(Place::InFlight), "its binding runs");
    world.finish("a", down());
    assert_eq!((world.place("a"), world.scheduler.placed_count()), (None, 0));
    world.see(deleted());
    assert_eq!(world.place("a"), None);
}

#[test]
fn later_pod_of_a_name_takes_the_place_of_the_earlier_one() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(pod("a").cpu("4").on("n1"));
    world.see(pod("a").metadata(json!({"uid": "later"})).cpu("4"));
    assert_eq!(world.next(), "a: n1", "the earlier one is gone");
    assert_eq!(world.scheduler.placed_count(), 1);
}

#[test]
fn each_pod_is_judged_by_the_profile_that_it_names() {
    let mut world = World::configured(
        "profiles: [{schedulerName: strict}, {schedulerName: lax, plugins: {multiPoint: \
         {disabled: [{name: NodeUnschedulable}]}}}]",
    );
    world.see(node("n1").spec(json!({"unschedulable": true})));
    for (profile, expected) in [("strict", "a: no"), ("lax", "a: n1")] {
        world.see(pod("a").spec(json!({"schedulerName": profile})));
        assert_eq!(world.next(), expected);
        world.delete_pod("a");
    }
}
