//! Making room: who is evicted how, and when the pod that needs the room is
//! tried again.

use std::future::{Future, pending};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use serde_json::json;
use steersman_core::{Event, Place};
use steersman_framework::extensions::{
    BindCtx, BoxFuture, Extensions, Permit, PreBind, PrepareCtx,
};
use steersman_framework::observer::Unobserved;
use steersman_framework::verdict::{PermitVerdict, PluginError, PreBindVerdict};
use steersman_testing::{PodBuilder, decoded, node, pod};

use crate::world::{World, Writer, plugin, seconds, uid};

/// A pod that fills a node and outranks those of [`small`].
fn big() -> PodBuilder {
    pod("big").cpu("4").priority(10)
}

/// Half a node.
fn small(name: &str) -> PodBuilder {
    pod(name).cpu("2")
}

/// How the watch shows a victim on its way out.
pub(crate) fn leaving(victim: PodBuilder) -> PodBuilder {
    let condition = json!({"type": "DisruptionTarget", "status": "True",
        "reason": "PreemptionByScheduler"});
    victim
        .metadata(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}))
        .status(json!({"conditions": [condition]}))
}

/// `big` has had the two pods on `n1` evicted.
fn preempting() -> World {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(small("a").on("n1"));
    world.see(small("b").on("n1"));
    world.see(big());
    assert_eq!(world.next(), "big: no");
    assert_eq!(
        world.effects,
        "big: Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.; big hopes for n1; evict \
         a and b for big"
    );
    world
}

#[test]
fn pod_is_tried_again_when_the_last_victim_is_gone() {
    let mut world = preempting();
    assert_eq!(world.evicted("big", Ok(())), "");
    world.see(leaving(small("a").on("n1")));
    world.see(leaving(small("b").on("n1")));
    world.delete_pod("b");
    assert_eq!(world.next(), "nobody");
    world.delete_pod("a");
    assert_eq!(world.next(), "big: n1");
}

#[test]
fn pod_is_held_while_evictions_are_requested() {
    type Frees = fn(&mut World) -> String;
    let frees: [Frees; 3] = [
        |world| world.evicted("big", Ok(())),
        |world| {
            world.delete_pod("a");
            world.see(leaving(small("b").on("n1")))
        },
        |world| {
            world.see(leaving(small("a").on("n1")));
            world.see(leaving(small("b").on("n1")))
        },
    ];
    for (i, frees) in frees.into_iter().enumerate() {
        let mut world = preempting();
        world.pass(seconds(2));
        world.see(node("n2"));
        assert_eq!(world.place("big"), Some(Place::Gated), "{i}");
        assert_eq!(world.next(), "nobody", "{i}");
        frees(&mut world);
        assert_eq!(world.next(), "big: n2", "{i}");
    }
}

#[test]
fn reason_for_being_held_is_told() {
    let mut world = preempting();
    world.see(node("n2"));
    let pending = world.scheduler.pending();
    assert_eq!(pending[0].because, ["waiting for the preemption for this pod to be finished"]);
}

#[test]
fn pod_looks_for_a_way_again_when_an_eviction_failed() {
    let mut world = preempting();
    let note = world.evicted("big", Err("b: timed out".to_owned()));
    assert_eq!(note, "pod default/big: an eviction that it waits for failed: b: timed out");
    assert_eq!(world.next(), "nobody", "not at once");
    world.pass(seconds(1));
    assert_eq!(world.next(), "big: no");
    assert!(world.effects.ends_with("evict a and b for big"), "{}", world.effects);
}

#[test]
fn late_report_of_an_earlier_preemption_is_not_taken_for_this_one() {
    let mut world = preempting();
    let late = world.eviction("big");
    world.handle(late.finished(Err("timed out".to_owned())));
    world.pass(seconds(1));
    assert_eq!(world.next(), "big: no");
    world.handle(late.finished(Ok(())));
    world.see(node("n2"));
    assert_eq!(world.place("big"), Some(Place::Gated));
}

#[test]
fn pod_waits_for_victims_of_an_earlier_run() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(leaving(small("a").on("n1")));
    world.see(big().status(json!({"nominatedNodeName": "n1"})));
    assert_eq!(world.next(), "big: no");
    assert_eq!(
        world.effects,
        "big: Unschedulable: 0/1 nodes are available: 1 Insufficient cpu. no new claims to \
         deallocate, preemption: not eligible due to a terminating pod on the nominated node."
    );
    // Somebody more important takes the room: the pod must not wait for that
    // to end, there is other room to make.
    world.see(pod("vip").cpu("4").priority(20).on("n1"));
    world.see(node("n2"));
    world.see(small("c").on("n2"));
    assert_eq!(world.next(), "big: no");
    world.delete_pod("a");
    world.pass(seconds(10));
    assert_eq!(world.next(), "big: no");
    assert!(world.effects.ends_with("big hopes for n2; evict c for big"), "{}", world.effects);
}

#[test]
fn node_that_became_impossible_frees_the_pod() {
    for deleted in [false, true] {
        let mut world = preempting();
        world.evicted("big", Ok(()));
        world.see(leaving(small("a").on("n1")));
        world.see(leaving(small("b").on("n1")));
        world.see(small("c").on("n2"));
        world.see(node("n2"));
        assert_eq!(world.next(), "big: no");
        match deleted {
            true => world.delete_node("n1"),
            false => world.see(node("n1").spec(json!({"unschedulable": true}))),
        };
        world.pass(seconds(10));
        assert_eq!(world.next(), "big: no");
        assert!(world.effects.ends_with("big hopes for n2; evict c for big"), "{}", world.effects);
    }
}

#[test]
fn pod_that_must_not_preempt_says_so() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(small("a").cpu("3").on("n1"));
    world.see(big().spec(json!({"preemptionPolicy": "Never"})));
    assert_eq!(world.next(), "big: no");
    assert_eq!(
        world.effects,
        "big: Unschedulable: 0/1 nodes are available: 1 Insufficient cpu. no new claims to \
         deallocate, preemption: not eligible due to preemptionPolicy=Never."
    );
}

#[test]
fn lower_pods_that_hoped_for_the_node_look_elsewhere_at_once() {
    let mut world = preempting();
    world.see(pod("vip").cpu("4").priority(20));
    assert_eq!(world.next(), "vip: no");
    let mut wanted: Vec<&str> = world.effects.split("; ").skip(1).collect();
    wanted.sort_unstable();
    assert_eq!(wanted, ["big hopes for nothing", "evict a and b for vip", "vip hopes for n1"]);
    world.see(node("n2"));
    assert_eq!(world.next(), "big: n2", "though its own evictions were never reported");
    world.evicted("big", Ok(()));
    world.evicted("vip", Ok(()));
    world.delete_pod("a");
    world.delete_pod("b");
    assert_eq!(world.next(), "vip: n1");
}

struct Holds;

impl Permit for Holds {
    fn permit(
        &self,
        _: &mut PrepareCtx<'_>,
        _: &steersman_api::name::Name,
    ) -> Result<PermitVerdict, PluginError> {
        Ok(PermitVerdict::Wait(seconds(60)))
    }
}

#[test]
fn victim_that_waits_at_permit_gives_way_at_once() {
    let holds = Extensions { permit: Some(Arc::new(Holds)), ..Extensions::default() };
    let mut world = World::with_plugins(&[plugin("Holds", holds)]);
    world.see(node("n1"));
    world.see(small("a"));
    assert_eq!(world.next(), "a: waits on n1");
    world.see(big());
    assert_eq!(world.next(), "big: no");
    assert_eq!(
        world.effects,
        "big: Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.; big hopes for n1; a \
         gives n1 up for big; a: Unschedulable: preempted"
    );
    assert_eq!(world.next(), "big: waits on n1");
    world.pass(seconds(1));
    assert_eq!(world.next(), "a: no");
}

#[test]
fn victim_whose_binding_has_not_begun_is_called_back() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(small("a"));
    assert_eq!(world.next(), "a: n1");
    world.see(big());
    assert_eq!(world.next(), "big: no");
    assert!(world.effects.ends_with("; a gives n1 up for big"), "{}", world.effects);
    assert_eq!(world.finish("a", Ok(())), "a: Unschedulable: preempted");
    assert_eq!(world.next(), "big: n1");
    assert_eq!(world.finish("big", Ok(())), "big is on n1");
}

#[test]
fn victim_that_is_bound_already_is_deleted() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(small("a"));
    assert_eq!(world.next(), "a: n1");
    let report = world.bind("a", Ok(()));
    world.see(big());
    assert_eq!(world.next(), "big: no");
    assert!(world.effects.ends_with("; evict a for big"), "{}", world.effects);
    world.evicted("big", Ok(()));
    assert_eq!(world.handle(Event::BindingFinished(report)), "a is on n1");
    world.see(leaving(small("a").on("n1")));
    world.delete_pod("a");
    assert_eq!(world.next(), "big: n1");
}

#[test]
fn victim_that_others_bound_after_it_was_called_back_is_evicted_in_the_end() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(small("a"));
    assert_eq!(world.next(), "a: n1");
    world.see(big());
    assert_eq!(world.next(), "big: no");
    world.see(small("a").on("n1"));
    world.finish("a", Ok(()));
    world.pass(seconds(1));
    assert_eq!(world.next(), "big: no");
    assert!(world.effects.ends_with("evict a for big"), "{}", world.effects);
}

struct NeverReady;

impl PreBind for NeverReady {
    fn pre_bind<'a>(
        &'a self,
        _: BindCtx<'a>,
    ) -> BoxFuture<'a, Result<PreBindVerdict, PluginError>> {
        Box::pin(pending())
    }
}

#[test]
fn calling_back_ends_a_binding_that_prepares() {
    let slow = Extensions { pre_bind: Some(Arc::new(NeverReady)), ..Extensions::default() };
    let mut world = World::with_plugins(&[plugin("Slow", slow)]);
    world.see(node("n1"));
    world.see(small("a"));
    assert_eq!(world.next(), "a: n1");
    let cycle = world.cycle("a");
    let writer = Writer(Ok(()));
    let mut observer = Unobserved;
    let mut running = Box::pin(cycle.run(&writer, &mut observer));
    let mut poll = || running.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll().is_pending());
    world.see(big());
    assert_eq!(world.next(), "big: no");
    let Poll::Ready(report) = poll() else { panic!("it was called back") };
    assert_eq!(world.handle(Event::BindingFinished(report)), "a: Unschedulable: preempted");
    assert_eq!(world.next(), "big: n1");
}

#[test]
fn budgets_are_respected_where_there_is_a_choice() {
    let mut world = World::new();
    for name in ["n1", "n2"] {
        world.see(node(name));
        world.see(pod(&format!("on-{name}")).cpu("4").label("app", name).on(name));
    }
    for protected in ["n1", "n2"] {
        let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"namespace": "default", "name": "budget"},
            "spec": {"selector": {"matchLabels": {"app": protected}}},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1,
                "expectedPods": 1}});
        world.handle(Event::Upsert(decoded(budget)));
        let evaluation = world.scheduler.evaluate(&big().build(), &mut Unobserved);
        let preemption = evaluation.expect("no plugin fails").preemption.expect("there is a way");
        assert_ne!(&*preemption.node, protected);
        assert_eq!(preemption.budgets_violated, 0);
    }
    world.delete_node("n1");
    let evaluation = world.scheduler.evaluate(&big().build(), &mut Unobserved);
    let preemption = evaluation.expect("no plugin fails").preemption.expect("there is a way");
    assert_eq!(preemption.budgets_violated, 1, "it has to go all the same");
}

#[test]
fn preemptor_that_goes_leaves_nothing_behind() {
    let mut world = preempting();
    world.delete_pod("big");
    assert_eq!(world.scheduler.cluster().preemptions.iter().count(), 0);
    assert_eq!(world.evicted("big", Ok(())), "");
    assert_eq!(world.place("big"), None);
    assert!(world.scheduler.nominated_node(&uid("big")).is_none());
}
