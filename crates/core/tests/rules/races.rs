//! What happens around a preemption can happen in any order: every order is
//! tried. The pod always ends on a node, or waits because there is none; and
//! never because the last-resort flush came by.

use serde_json::json;
use steersman_core::{Eviction, Place};
use steersman_framework::observer::Unobserved;
use steersman_testing::{PodBuilder, node, pod};

use crate::preemption::leaving;
use crate::world::{World, seconds, uid};

/// What happens once each, in any order but that `a` leaves before it is gone.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// The watch shows that `a` is being deleted.
    ALeaves,
    AIsGone,
    /// The watch shows at once that `b` is gone.
    BIsGone,
    /// The driver reports the end of the evictions.
    Reported,
    /// Something else changes.
    Changed,
    /// The scheduler gets to try pods.
    Tried,
}

const STEPS: [Step; 6] =
    [Step::ALeaves, Step::AIsGone, Step::BIsGone, Step::Reported, Step::Changed, Step::Tried];

/// What else changes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Other {
    Nothing,
    /// `n1` takes no more pods.
    Cordon,
    /// `n1` is gone; its pods follow.
    NodeGone,
    /// `n1` has become too small for the pod.
    Shrink,
    /// Another node comes up.
    NodeAdded,
    /// A more important pod comes.
    Rival,
    /// The pod's nomination is taken away by somebody.
    Cleared,
}

const OTHERS: [Other; 7] = [
    Other::Nothing,
    Other::Cordon,
    Other::NodeGone,
    Other::Shrink,
    Other::NodeAdded,
    Other::Rival,
    Other::Cleared,
];

fn victim(name: &str) -> PodBuilder {
    pod(name).cpu("2").on("n1")
}

fn preemptor() -> PodBuilder {
    pod("p").cpu("4").priority(10)
}

/// Whether the pod could preempt on another node as well.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SecondWay {
    /// It could: less attractive, as the pod there is more important.
    Open,
    Closed,
}

/// What the driver reports of the first evictions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reported {
    Done,
    Failed,
}

struct Race {
    world: World,
    first: Eviction,
    other: Other,
    reported: Reported,
}

impl Race {
    fn new(other: Other, second_way: SecondWay, reported: Reported) -> Self {
        let mut world = World::with_room_only();
        world.see(node("n1"));
        world.see(victim("a"));
        world.see(victim("b"));
        world.see(node("n2"));
        let importance = if second_way == SecondWay::Open { 5 } else { 50 };
        world.see(pod("c").cpu("4").priority(importance).on("n2"));
        world.see(preemptor());
        assert_eq!(world.next(), "p: no");
        assert_eq!(world.victims("p"), Some(vec!["a".to_owned(), "b".to_owned()]));
        let first = world.eviction("p");
        Self { world, first, other, reported }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::ALeaves => self.world.see(leaving(victim("a"))),
            Step::AIsGone => self.world.delete_pod("a"),
            Step::BIsGone => self.world.delete_pod("b"),
            Step::Reported => {
                let result = match self.reported {
                    Reported::Done => Ok(()),
                    Reported::Failed => Err("timed out".to_owned()),
                };
                self.world.handle(self.first.finished(result))
            }
            Step::Changed => self.change(),
            Step::Tried => {
                self.try_all();
                String::new()
            }
        };
    }

    fn change(&mut self) -> String {
        let world = &mut self.world;
        match self.other {
            Other::Nothing => String::new(),
            Other::Cordon => world.see(node("n1").spec(json!({"unschedulable": true}))),
            Other::NodeGone => world.delete_node("n1"),
            Other::Shrink => world.see(node("n1").allocatable("cpu", "3")),
            Other::NodeAdded => world.see(node("n3")),
            Other::Rival => world.see(pod("rival").cpu("4").priority(20)),
            Other::Cleared => {
                // The status had shown the nomination before.
                world.see(preemptor().status(json!({"nominatedNodeName": "n1"})));
                world.see(preemptor())
            }
        }
    }

    /// Tries pods, and binds those that got a node.
    fn try_all(&mut self) {
        for _ in 0..20 {
            let tried = self.world.next();
            if tried == "nobody" {
                return;
            }
            let (name, node) = tried.split_once(": ").expect("a pod and its node");
            if node == "no" {
                continue;
            }
            self.world.finish(name, Ok(()));
            let shown = if name == "rival" { pod("rival").priority(20) } else { preemptor() };
            self.world.see(shown.cpu("4").on(node));
        }
        panic!("pods are tried in vain over and over");
    }

    /// The rest of the world goes on as it should for a minute; whether the pod
    /// got a node.
    fn settle(&mut self) -> bool {
        for _ in 0..12 {
            self.try_all();
            for preemptor in ["p", "rival"] {
                let Some(victims) = self.world.victims(preemptor) else { continue };
                for victim in victims {
                    self.world.delete_pod(&victim);
                }
                self.world.evicted(preemptor, Ok(()));
            }
            self.try_all();
            if self.world.place("p").is_none() {
                return true;
            }
            self.world.pass(seconds(5));
        }
        false
    }
}

/// What the pod has to end with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    OnANode,
    /// Or as unschedulable, if it really is.
    OnANodeIfThereIsOne,
}

fn check(order: &[Step], other: Other, second_way: SecondWay, reported: Reported) {
    let case = || format!("{other:?}, {second_way:?}, {reported:?}, {order:?}");
    let mut race = Race::new(other, second_way, reported);
    for step in order {
        race.step(*step);
    }
    let is_bound = race.settle();
    let scheduler = &mut race.world.scheduler;
    assert_eq!(scheduler.flushed_count(), 0, "{}", case());
    assert_eq!(scheduler.cluster().preemptions.iter().count(), 0, "{}", case());
    if is_bound {
        return;
    }
    let closed = [Other::Cordon, Other::NodeGone, Other::Shrink, Other::Rival];
    let end = match second_way {
        SecondWay::Closed if closed.contains(&other) => End::OnANodeIfThereIsOne,
        SecondWay::Open | SecondWay::Closed => End::OnANode,
    };
    let place = scheduler.place_of(&uid("p"));
    assert_eq!(end, End::OnANodeIfThereIsOne, "{}: the pod is {place:?}", case());
    assert_eq!(place, Some(Place::Unschedulable), "{}", case());
    let pod = scheduler.pending_pod(&uid("p")).expect("it waits").clone();
    let evaluation = scheduler.evaluate(&pod, &mut Unobserved).expect("no plugin fails");
    let feasible: Vec<_> = evaluation.feasible.keys().collect();
    assert!(feasible.is_empty(), "{}: the pod would fit on {feasible:?}", case());
    assert_eq!(evaluation.preemption, None, "{}: the pod could preempt", case());
}

fn check_all(second_way: SecondWay, reported: Reported) {
    let orders = orders();
    assert_eq!(orders.len(), 360);
    for order in orders {
        for other in OTHERS {
            // When nothing changes, it does not matter when.
            if other == Other::Nothing && order.last() != Some(&Step::Changed) {
                continue;
            }
            check(&order, other, second_way, reported);
        }
    }
}

#[test]
fn preemptor_ends_on_a_node_whatever_the_order() {
    check_all(SecondWay::Open, Reported::Done);
}

#[test]
fn preemptor_ends_on_a_node_though_evictions_fail() {
    check_all(SecondWay::Open, Reported::Failed);
}

#[test]
fn preemptor_without_a_second_way_ends_on_a_node_or_waits_for_good_reason() {
    check_all(SecondWay::Closed, Reported::Done);
}

/// Every order of [`STEPS`] in which `a` leaves before it is gone.
fn orders() -> Vec<Vec<Step>> {
    let mut orders = vec![Vec::new()];
    for _ in STEPS {
        let longer = orders.iter().flat_map(|order: &Vec<Step>| {
            let open = STEPS.iter().filter(|step| !order.contains(step));
            open.map(|step| [order.as_slice(), &[*step]].concat()).collect::<Vec<_>>()
        });
        orders = longer.collect();
    }
    let place = |order: &[Step], step| order.iter().position(|other| *other == step);
    orders.retain(|order| place(order, Step::ALeaves) < place(order, Step::AIsGone));
    orders
}
