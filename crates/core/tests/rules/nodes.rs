//! Nodes: what is counted on them, and the order in which they are looked at.

use steersman_framework::observer::{Call, Observer};
use steersman_framework::point::ExtensionPoint;
use steersman_testing::{node, pod};

use crate::world::World;

#[test]
fn pods_of_a_node_that_went_are_counted_when_it_comes_back() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(pod("old").cpu("3").on("n1"));
    world.delete_node("n1");
    world.see(pod("late").cpu("1").on("n1"));
    world.see(pod("a").cpu("1"));
    assert_eq!(world.next(), "a: no");
    world.see(node("n1"));
    assert_eq!(world.next(), "a: no", "the node is full");
    world.delete_pod("old");
    assert_eq!(world.next(), "a: n1");
}

#[test]
fn room_taken_on_a_node_that_went_is_given_back_there() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(pod("a").cpu("4"));
    assert_eq!(world.next(), "a: n1");
    world.delete_node("n1");
    world.delete_pod("a");
    world.see(node("n1"));
    world.see(pod("b").cpu("4"));
    assert_eq!(world.next(), "b: n1");
}

/// Writes down which nodes are filtered, in order.
#[derive(Default)]
struct Filtered(Vec<String>);

impl Observer for Filtered {
    fn before(&mut self, call: Call<'_>) {
        let first = call.point == ExtensionPoint::Filter && call.plugin == "NodeUnschedulable";
        if let (true, Some(node)) = (first, call.node) {
            self.0.push(node.to_string());
        }
    }

    fn wants_nodes(&self) -> bool {
        true
    }
}

/// The nodes that are looked at for the next pod.
fn looked_at(world: &mut World) -> Vec<String> {
    let mut filtered = Filtered::default();
    world.next_watched(&mut filtered);
    filtered.0
}

#[test]
fn zones_take_turns() {
    let mut world = World::new();
    for (name, zone) in [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("c1", "c")] {
        world.see(node(name).zone(zone));
    }
    world.see(node("none"));
    world.see(pod("p"));
    assert_eq!(looked_at(&mut world), ["a1", "b1", "c1", "none", "a2", "a3"]);
    world.see(node("a2").zone("b"));
    world.see(pod("q"));
    assert_eq!(looked_at(&mut world), ["a1", "b1", "c1", "none", "a3", "a2"]);
}

#[test]
fn search_goes_on_where_the_last_one_ended() {
    let mut world = World::configured("percentageOfNodesToScore: 50");
    let names: Vec<String> = (0..250).map(|i| format!("n{i}")).collect();
    for name in &names {
        world.see(node(name));
    }
    for name in ["p", "q", "r"] {
        world.see(pod(name));
    }
    assert_eq!(looked_at(&mut world), names[..125]);
    assert_eq!(looked_at(&mut world), names[125..]);
    assert_eq!(looked_at(&mut world), names[..125]);
}
