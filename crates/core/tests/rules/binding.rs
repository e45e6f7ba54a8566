//! Reserve, Permit, and what becomes of a binding.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::json;
use steersman_api::name::Name;
use steersman_api::node_info::NodeInfo;
use steersman_core::{Event, Place};
use steersman_framework::events::{ActionType, ClusterEvent, EnqueueExtensions, EventResource};
use steersman_framework::extensions::{CycleCtx, Extensions, Filter, Permit, PrepareCtx, Reserve};
use steersman_framework::registry::Descriptor;
use steersman_framework::verdict::{
    FilterVerdict, PermitVerdict, PluginError, Rejection, ReserveVerdict,
};
use steersman_testing::{node, pod};

use crate::world::{World, down, plugin, seconds, uid};

struct Holds(Duration);

impl Permit for Holds {
    fn permit(&self, _: &mut PrepareCtx<'_>, _: &Name) -> Result<PermitVerdict, PluginError> {
        Ok(PermitVerdict::Wait(self.0))
    }
}

fn holds(name: &'static str, timeout: Duration) -> Descriptor {
    plugin(name, Extensions { permit: Some(Arc::new(Holds(timeout))), ..Extensions::default() })
}

#[test]
fn a_pod_that_waits_hopes_for_its_node_while_the_feature_is_on() {
    let slow = [holds("slow", Duration::from_secs(60))];
    for (gates, expected) in
        [("", "a hopes for n1; a waits"), ("NominatedNodeNameForExpectation=false", "a waits")]
    {
        let mut world = World::with_gates(&slow, gates);
        world.see(node("n1"));
        world.see(pod("a"));
        world.next();
        assert_eq!(world.effects, expected, "{gates}");
    }
}

/// Tells what it does; says no to pods that are named `no-` and its name.
struct Tells(&'static str, Sender<String>);

impl Reserve for Tells {
    fn reserve(&self, ctx: &mut PrepareCtx<'_>, _: &Name) -> Result<ReserveVerdict, PluginError> {
        if ctx.pod.key.name.strip_prefix("no-") == Some(self.0) {
            return Ok(ReserveVerdict::Reject(Rejection::unschedulable("taken")));
        }
        self.1.send(format!("{} takes", self.0)).expect("the test listens");
        Ok(ReserveVerdict::Reserved)
    }

    fn unreserve(&self, _: &CycleCtx<'_>, _: &Name) {
        self.1.send(format!("{} gives back", self.0)).expect("the test listens");
    }
}

fn with_two_reservations() -> (World, Receiver<String>) {
    let (sender, receiver) = channel();
    let tells = |name| {
        let tells = Tells(name, sender.clone());
        plugin(name, Extensions { reserve: Some(Arc::new(tells)), ..Extensions::default() })
    };
    let mut world = World::with_plugins(&[tells("one"), tells("two")]);
    world.see(node("n1"));
    (world, receiver)
}

#[track_caller]
fn check_told(told: &Receiver<String>, expected: &[&str]) {
    assert_eq!(told.try_iter().collect::<Vec<_>>(), expected);
}

const GIVE_BACK: [&str; 2] = ["two gives back", "one gives back"];

#[test]
fn reservations_are_undone_in_reverse_order() {
    let (mut world, told) = with_two_reservations();
    world.see(pod("a"));
    world.next();
    check_told(&told, &["one takes", "two takes"]);
    world.finish("a", down());
    check_told(&told, &GIVE_BACK);

    world.see(pod("no-two"));
    assert_eq!(world.next(), "no-two: two says no");
    check_told(&told, &["one takes", GIVE_BACK[0], GIVE_BACK[1]]);
}

#[test]
fn reservations_of_a_bound_pod_stay() {
    let (mut world, told) = with_two_reservations();
    world.see(pod("a"));
    world.next();
    assert_eq!(world.finish("a", Ok(())), "a is on n1");
    world.see(pod("a").on("n1"));
    check_told(&told, &["one takes", "two takes"]);
}

#[test]
fn reservations_are_undone_when_the_pod_turns_out_to_be_elsewhere_or_gone() {
    for gone in [false, true] {
        let (mut world, told) = with_two_reservations();
        world.see(pod("a").cpu("4"));
        world.next();
        check_told(&told, &["one takes", "two takes"]);
        if gone {
            world.delete_pod("a");
        } else {
            world.see(pod("a").cpu("4").on("n2"));
        }
        assert_eq!(world.finish("a", down()), "", "nobody needs to know");
        check_told(&told, &GIVE_BACK);
        world.see(pod("b").cpu("4"));
        assert_eq!(world.next(), "b: n1", "the room is free");
    }
}

/// One thing that one pod at a time can have.
struct Scarce(AtomicBool);

impl Filter for Scarce {
    fn filter(&self, _: &CycleCtx<'_>, _: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        if self.0.load(Ordering::Relaxed) {
            return Ok(FilterVerdict::Reject(Rejection::unschedulable("taken")));
        }
        Ok(FilterVerdict::Fit)
    }
}

impl Reserve for Scarce {
    fn reserve(&self, _: &mut PrepareCtx<'_>, _: &Name) -> Result<ReserveVerdict, PluginError> {
        self.0.store(true, Ordering::Relaxed);
        Ok(ReserveVerdict::Reserved)
    }

    fn unreserve(&self, _: &CycleCtx<'_>, _: &Name) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl EnqueueExtensions for Scarce {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::new(EventResource::ASSIGNED_POD, ActionType::DELETE)]
    }
}

#[test]
fn what_a_deleted_pod_had_reserved_wakes_others_when_it_is_given_back() {
    let scarce = Arc::new(Scarce(AtomicBool::new(false)));
    let extensions = Extensions {
        filter: Some(scarce.clone()),
        reserve: Some(scarce.clone()),
        events: Some(scarce),
        ..Extensions::default()
    };
    let mut world = World::with_plugins(&[plugin("Scarce", extensions)]);
    world.see(node("n1"));
    world.see(pod("a"));
    assert_eq!(world.next(), "a: n1");
    world.see(pod("b"));
    assert_eq!(world.next(), "b: no");
    // The deletion alone does not help: the binding still runs.
    world.delete_pod("a");
    world.pass(seconds(20));
    assert_eq!(world.next(), "b: no");
    world.finish("a", down());
    world.pass(seconds(20));
    assert_eq!(world.next(), "b: n1");
}

#[test]
fn pod_is_bound_when_all_plugins_let_it_go() {
    let mut world = World::with_plugins(&[holds("one", seconds(9)), holds("two", seconds(9))]);
    world.see(node("n1"));
    world.see(pod("a"));
    assert_eq!(world.next(), "a: waits on n1");
    assert_eq!(world.allow("a", "one"), "");
    assert_eq!(world.allow("a", "two"), "bind a to n1");
}

#[test]
fn pod_that_waits_too_long_is_rejected() {
    let longest = seconds(15 * 60);
    for (asked, waits, text) in [
        (seconds(5), seconds(5), "5s"),
        (seconds(90), seconds(90), "1m30s"),
        (seconds(3600), longest, "15m0s"),
    ] {
        let mut world = World::with_plugins(&[holds("slow", asked)]);
        world.see(node("n1"));
        world.see(pod("a"));
        assert_eq!(world.next(), "a: waits on n1");
        assert_eq!(world.until_timer(), Some(waits));
        assert_eq!(world.pass(waits - Duration::from_nanos(1)), "");
        assert_eq!(
            world.pass(Duration::from_nanos(1)),
            format!(
                "a: Unschedulable: 0/1 nodes are available: 1 rejected due to timeout after \
                 waiting {text} at plugin slow."
            )
        );
        assert_eq!(world.place("a"), Some(Place::Unschedulable));
    }
}

#[test]
fn rejected_pod_gives_its_room_to_others() {
    let mut world = World::with_plugins(&[holds("slow", seconds(9))]);
    world.see(node("n1"));
    world.see(pod("a").cpu("4"));
    assert_eq!(world.next(), "a: waits on n1");
    world.see(pod("b").cpu("4").priority(1).spec(json!({"preemptionPolicy": "Never"})));
    assert_eq!(world.next(), "b: no");
    let rejected =
        Event::PermitRejected { pod: uid("a"), plugin: "slow", reason: "not today".into() };
    assert_eq!(world.handle(rejected), "a: Unschedulable: 0/1 nodes are available: 1 not today.");
    assert_eq!(world.next(), "b: waits on n1");
}

#[test]
fn binding_that_went_through_counts_whatever_the_report_says() {
    for (watch_first, effects) in [
        (true, "a is on n1"),
        (false, "a: SchedulerError: running Bind plugin \"DefaultBinder\": down"),
    ] {
        let mut world = World::new();
        world.see(node("n1"));
        world.see(pod("a"));
        assert_eq!(world.next(), "a: n1");
        if watch_first {
            world.see(pod("a").on("n1"));
        }
        assert_eq!(world.finish("a", down()), effects);
        world.see(pod("a").on("n1"));
        world.pass(seconds(60));
        assert_eq!((world.place("a"), world.next()), (None, "nobody".to_owned()));
        assert_eq!(world.scheduler.placed_count(), 1);
    }
}

#[test]
fn pod_seen_bound_is_not_unbound_by_old_news() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(pod("a").on("n1"));
    world.see(pod("a"));
    assert_eq!((world.place("a"), world.next()), (None, "nobody".to_owned()));
}

#[test]
fn binding_that_never_shows_is_given_up_if_asked_for() {
    let mut world = World::with_ttl(seconds(30));
    world.see(node("n1"));
    world.see(pod("a").cpu("4"));
    assert_eq!(world.next(), "a: n1");
    assert_eq!(world.finish("a", Ok(())), "a is on n1");
    world.see(pod("a").cpu("3"));
    assert_eq!(world.until_timer(), Some(seconds(30)));
    assert_eq!(
        world.pass(seconds(30)),
        "pod default/a: its binding to n1 was accepted and never seen; trying again"
    );
    world.see(pod("b").cpu("1"));
    assert_eq!(world.next(), "a: n1");
    assert_eq!(world.next(), "b: n1", "the later version of the first counts");
}

#[test]
fn binding_that_never_shows_is_waited_for_by_default() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(pod("a").cpu("4"));
    world.next();
    world.finish("a", Ok(()));
    world.pass(seconds(100_000));
    assert_eq!((world.place("a"), world.scheduler.placed_count()), (None, 1));
}
