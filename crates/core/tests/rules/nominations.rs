//! Nominated pods: what room is kept, for whom, and until when.

use std::sync::Arc;

use serde_json::json;
use steersman_core::Place;
use steersman_framework::extensions::{Extensions, PostFilter, PostFilterCtx};
use steersman_framework::verdict::{PluginError, PostFilterVerdict};
use steersman_testing::{PodBuilder, node, pod};

use crate::world::{World, plugin, seconds, uid};

/// A pod that takes a whole node, hopes for `n1`, and cannot go yet.
fn hopeful(node: &str) -> PodBuilder {
    let spec = json!({"nodeSelector": {"ready": "yes"}, "preemptionPolicy": "Never"});
    let pod = pod("hopeful").cpu("4").priority(5).spec(spec);
    if node.is_empty() { pod } else { pod.status(json!({"nominatedNodeName": node})) }
}

#[test]
fn room_is_kept_from_pods_of_no_higher_priority() {
    for (priority, expected) in [(4, "a: no"), (5, "a: no"), (6, "a: n1")] {
        let mut world = World::new();
        world.see(node("n1"));
        world.see(hopeful("n1"));
        assert_eq!(world.next(), "hopeful: no");
        world.see(pod("a").cpu("1").priority(priority));
        assert_eq!(world.next(), expected, "of priority {priority}");
    }
}

#[test]
fn those_who_gave_way_hear_when_the_nomination_ends() {
    type Ends = fn(&mut World) -> String;
    let cases: [(&str, Ends); 5] = [
        ("cleared", |world| world.see(hopeful(""))),
        ("moved", |world| world.see(hopeful("n2"))),
        ("deleted", |world| world.delete_pod("hopeful")),
        ("bound elsewhere", |world| world.see(hopeful("n1").on("elsewhere"))),
        ("asks for less", |world| world.see(hopeful("n1").cpu("1"))),
    ];
    for (what, ends) in cases {
        let mut world = World::new();
        world.see(node("n1"));
        world.see(hopeful("n1"));
        assert_eq!(world.next(), "hopeful: no");
        world.see(pod("a").cpu("3").priority(5));
        assert_eq!(world.next(), "a: no");
        assert_eq!(world.place("a"), Some(Place::Unschedulable));
        ends(&mut world);
        assert_eq!(world.place("a"), Some(Place::Backoff), "{what}");
        let tried = [world.next(), world.next()];
        assert!(tried.contains(&"a: n1".to_owned()), "{what}: {tried:?}");
    }
}

#[test]
fn going_elsewhere_ends_the_nomination() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(hopeful("n1"));
    assert_eq!(world.next(), "hopeful: no");
    world.see(pod("a").cpu("3"));
    assert_eq!(world.next(), "a: no");
    world.see(node("n2").label("ready", "yes"));
    assert_eq!(world.next(), "hopeful: n2");
    assert_eq!(world.next(), "a: n1");
}

#[test]
fn nominated_node_is_tried_first() {
    let mut world = World::new();
    for name in ["n1", "n2", "n3"] {
        world.see(node(name));
    }
    world.see(pod("other").cpu("3").on("n2"));
    world.see(pod("a").status(json!({"nominatedNodeName": "n2"})));
    assert_eq!(world.next(), "a: n2", "though others are emptier");
}

#[test]
fn pod_on_its_way_is_not_counted_a_second_time_as_nominated() {
    let mut world = World::new();
    world.see(node("n1"));
    let a = || pod("a").cpu("2");
    world.see(a());
    assert_eq!(world.next(), "a: n1");
    world.see(a().status(json!({"nominatedNodeName": "n1"})));
    world.see(pod("b").cpu("2"));
    assert_eq!(world.next(), "b: n1");
}

/// Nominates every pod to a node, or to none and ends what was.
struct Nominates(Option<&'static str>);

impl PostFilter for Nominates {
    fn post_filter(&self, _: &PostFilterCtx<'_>) -> Result<PostFilterVerdict, PluginError> {
        Ok(match self.0 {
            Some(node) => PostFilterVerdict::Nominate(node.into()),
            None => PostFilterVerdict::Unhelpful { reasons: vec![], clear_nomination: true },
        })
    }
}

#[test]
fn post_filter_decides_over_an_older_nomination() {
    for (decision, free) in [(Some("n2"), "n1"), (None, "n1"), (Some("n1"), "n2")] {
        let nominates = Extensions {
            post_filter: Some(Arc::new(Nominates(decision))),
            ..Extensions::default()
        };
        let mut world = World::with_plugins(&[plugin("Nominates", nominates)]);
        world.see(node("n1"));
        world.see(node("n2"));
        world.see(hopeful("n1"));
        assert_eq!(world.next(), "hopeful: no");
        if decision.is_none() {
            world.see(pod("filler").cpu("4").on("n2"));
        }
        let a = pod("a").cpu("3").build();
        let evaluation = world
            .scheduler
            .evaluate(&a, &mut steersman_framework::observer::Unobserved)
            .expect("no plugin fails");
        let feasible: Vec<&str> = evaluation.feasible.keys().map(|name| &**name).collect();
        assert_eq!(feasible, [free], "nominated to {decision:?}");
        assert!(world.scheduler.pending_pod(&uid("hopeful")).is_some());
        world.pass(seconds(1));
    }
}
