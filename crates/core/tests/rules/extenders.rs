//! Extenders: whom they are asked about, in which order, and what their answers
//! do.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use steersman_api::decode::{Decoded, kind_row};
use steersman_api::name::Name;
use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use steersman_core::{Event, Outcome, Place, Scheduler, Setup};
use steersman_framework::extender::{
    Extender, ExtenderError, Filtered, NodeVictims, Pending, Priority, Roles,
};
use steersman_framework::extensions::BoxFuture;
use steersman_framework::observer::Unobserved;
use steersman_framework::verdict::Preemption;
use steersman_testing::{NodeBuilder, PodBuilder, node, pod};

use crate::world::{World, down, seconds, uid};

type Reasons = BTreeMap<&'static str, &'static str>;
type Judge = dyn Fn(&[String]) -> Result<(Vec<String>, Reasons, Reasons), String> + Send + Sync;
type Rank = dyn Fn(&str) -> Option<i64> + Send + Sync;
type Review = dyn Fn(&[Preemption]) -> Result<Vec<NodeVictims>, String> + Send + Sync;

/// With this an extender does not fail but panic.
const BOMB: &str = "bomb";

/// An extender that does what a test says, and tells what it was asked.
#[derive(Default)]
struct Fake {
    name: &'static str,
    ignorable: bool,
    weight: i64,
    /// The label of the pods it is interested in; empty for all.
    only: &'static str,
    filter: Option<Box<Judge>>,
    prioritize: Option<Box<Rank>>,
    preempt: Option<Box<Review>>,
    bind: Option<Result<(), &'static str>>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    fn named(name: &'static str, log: &Arc<Mutex<Vec<String>>>) -> Self {
        Self { name, weight: 1, log: log.clone(), ..Self::default() }
    }

    /// Refuses these nodes.
    fn refusing(self, nodes: &[&'static str], reason: &'static str) -> Self {
        let refused: Reasons = nodes.iter().map(|node| (*node, reason)).collect();
        self.filtering(move |asked| {
            let passed = asked.iter().filter(|node| !refused.contains_key(node.as_str()));
            Ok((passed.cloned().collect(), refused.clone(), Reasons::new()))
        })
    }

    fn filtering(
        mut self,
        judge: impl Fn(&[String]) -> Result<(Vec<String>, Reasons, Reasons), String>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.filter = Some(Box::new(judge));
        self
    }

    fn ranking(mut self, rank: impl Fn(&str) -> Option<i64> + Send + Sync + 'static) -> Self {
        self.prioritize = Some(Box::new(rank));
        self
    }

    fn reviewing(
        mut self,
        review: impl Fn(&[Preemption]) -> Result<Vec<NodeVictims>, String> + Send + Sync + 'static,
    ) -> Self {
        self.preempt = Some(Box::new(review));
        self
    }

    fn tell(&self, what: String) {
        self.log.lock().push(format!("{} {what}", self.name));
    }
}

fn names(nodes: &[&NodeInfo]) -> Vec<String> {
    nodes.iter().map(|node| node.name().to_string()).collect()
}

impl Extender for Fake {
    fn name(&self) -> &str {
        self.name
    }

    fn roles(&self) -> Roles {
        let mut roles = Roles::empty();
        roles.set(Roles::FILTER, self.filter.is_some());
        roles.set(Roles::PRIORITIZE, self.prioritize.is_some());
        roles.set(Roles::PREEMPT, self.preempt.is_some());
        roles.set(Roles::BIND, self.bind.is_some());
        roles
    }

    fn is_interested(&self, pod: &PodInfo) -> bool {
        self.only.is_empty() || pod.labels.get(&self.only.into()).is_some()
    }

    fn is_ignorable(&self) -> bool {
        self.ignorable
    }

    fn weight(&self) -> i64 {
        self.weight
    }

    fn filter(&self, _: &PodInfo, nodes: &[&NodeInfo]) -> Result<Filtered, ExtenderError> {
        let nodes = names(nodes);
        self.tell(format!("filters {}", nodes.join(" ")));
        let judge = self.filter.as_ref().expect("it filters");
        let (passed, failed, for_good) = judge(&nodes).map_err(ExtenderError)?;
        let reasons = |it: Reasons| it.into_iter().map(|(n, why)| (n.into(), why.to_owned()));
        Ok(Filtered {
            passed: passed.iter().map(|name| name.as_str().into()).collect(),
            failed: reasons(failed).collect(),
            failed_for_good: reasons(for_good).collect(),
        })
    }

    fn prioritize<'a>(
        &'a self,
        _: &'a PodInfo,
        nodes: &'a [&'a NodeInfo],
    ) -> Pending<'a, Vec<Priority>> {
        self.tell(format!("is asked to rank {}", names(nodes).join(" ")));
        Pending::new(move || {
            self.tell("answers".to_owned());
            let rank = self.prioritize.as_ref().expect("it ranks");
            let ranked = nodes.iter().filter_map(|node| {
                Some(Priority { node: node.name().clone(), priority: rank(node.name())? })
            });
            let ranked: Vec<_> = ranked.collect();
            match ranked.is_empty() {
                true => Err(ExtenderError("no idea".to_owned())),
                false => Ok(ranked),
            }
        })
    }

    fn preempt(
        &self,
        _: &PodInfo,
        candidates: &[Preemption],
    ) -> Result<Vec<NodeVictims>, ExtenderError> {
        let words = candidates.iter().map(|it| {
            let victims: Vec<_> = it.victims.iter().map(|pod| pod.key.name.to_string()).collect();
            format!("{}({})", it.node, victims.join(" "))
        });
        self.tell(format!("reviews {}", words.collect::<Vec<_>>().join(" ")));
        self.preempt.as_ref().expect("it reviews")(candidates).map_err(ExtenderError)
    }

    fn bind<'a>(
        &'a self,
        pod: &'a PodInfo,
        node: &'a Name,
    ) -> BoxFuture<'a, Result<(), ExtenderError>> {
        self.tell(format!("binds {} to {node}", pod.key.name));
        let answer = self.bind.expect("it binds");
        Box::pin(async move {
            assert_ne!(answer, Err(BOMB), "boom");
            answer.map_err(|error| ExtenderError(error.to_owned()))
        })
    }
}

/// What the extenders of a test were asked.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }

    fn fake(&self, name: &'static str) -> Fake {
        Fake::named(name, &self.0)
    }
}

fn world(nodes: impl IntoIterator<Item = NodeBuilder>, extenders: Vec<Fake>) -> World {
    configured("", nodes, extenders)
}

fn configured(
    fields: &str,
    nodes: impl IntoIterator<Item = NodeBuilder>,
    extenders: Vec<Fake>,
) -> World {
    let extenders: Vec<Arc<dyn Extender>> =
        extenders.into_iter().map(|fake| Arc::new(fake) as Arc<dyn Extender>).collect();
    let mut world = World::extended(fields, &extenders);
    for node in nodes {
        world.see(node);
    }
    world
}

/// The watch shows a pod, and the driver keeps the whole of it.
fn see_whole(world: &mut World, pod: PodBuilder) -> String {
    let json = pod.json();
    let read: Decoded = kind_row("v1", "Pod").expect("a kind").decode(&json).expect("a pod");
    world.handle(Event::Upsert(read.with_whole(&json).object))
}

/// The same, and the driver keeps no more than its annotations.
fn see_annotations(world: &mut World, pod: PodBuilder) -> String {
    let json = pod.json();
    let read: Decoded = kind_row("v1", "Pod").expect("a kind").decode(&json).expect("a pod");
    world.handle(Event::Upsert(read.with_annotations(&json).object))
}

fn victims(node: &str, victims: &[&str]) -> NodeVictims {
    let victims = victims.iter().map(|name| uid(name)).collect();
    NodeVictims { node: node.into(), victims, budgets_violated: 0 }
}

#[test]
fn each_filters_what_those_before_it_left_and_ignorable_ones_come_last() {
    let log = Log::default();
    let first = Fake { ignorable: true, ..log.fake("first").refusing(&["n3"], "three") };
    let second = log.fake("second").refusing(&["n1"], "one");
    let third = log.fake("third").refusing(&["n2"], "two");
    let mut world = world(["n1", "n2", "n3", "n4"].map(node), vec![first, second, third]);
    world.see(pod("a"));
    assert_eq!(world.next(), "a: n4");
    assert_eq!(
        log.take(),
        ["second filters n1 n2 n3 n4", "third filters n2 n3 n4", "first filters n3 n4"]
    );
}

#[test]
fn nodes_that_plugins_refuse_are_not_sent_and_reasons_of_both_are_told() {
    let log = Log::default();
    let gpus = log.fake("gpus").filtering(|asked| {
        assert_eq!(asked, ["n1", "n2", "n3"]);
        let failed = [("n1", "no GPU"), ("n2", "no GPU"), ("strange", "no such node")].into();
        Ok((vec![], failed, [("n2", "no driver")].into()))
    });
    let other = log.fake("other").refusing(&[], "");
    let nodes = ["n1", "n2", "n3"].map(node);
    let tiny = node("tiny").allocatable("cpu", "1m");
    let mut world = world(nodes.into_iter().chain([tiny]), vec![gpus, other]);
    world.see(pod("a").cpu("1"));
    assert_eq!(world.next(), "a: no");
    // The third node is refused without a word.
    let (begins, ends) = (
        "extender \"gpus\" refuses 1 nodes that do not exist, such as \"strange\"; a: Unschedulable: \
         0/4 nodes are available: 1 Insufficient cpu, 1 no GPU, 1 no driver.",
        "preemption: 0/4 nodes are available: 1 No preemption victims found for incoming pod, 3 \
         Preemption is not helpful for scheduling.",
    );
    assert!(world.effects.starts_with(begins), "{}", world.effects);
    assert!(world.effects.ends_with(ends), "{}", world.effects);
    assert_eq!(log.take(), ["gpus filters n1 n2 n3"], "nothing is left for the other one");
    let pending = world.scheduler.pending();
    assert_eq!(pending[0].because, ["Extender", "NodeResourcesFit"]);
}

#[test]
fn the_extender_that_leaves_no_node_is_known_though_the_message_does_not_name_it() {
    let emptied_by = |nodes: [NodeBuilder; 2], extenders: Vec<Fake>| {
        let mut world = world(nodes, extenders);
        world.see(pod("a"));
        match world.try_next().0.outcome {
            Outcome::Unschedulable(diagnosis) => diagnosis.emptied_by,
            outcome => panic!("{outcome:?}"),
        }
    };
    let tainted = |name| node(name).taint("a", "b", "NoSchedule");
    let log = Log::default();
    let one = || log.fake("one").refusing(&["n1"], "no");
    let two = log.fake("two").filtering(|_| Ok((vec![], [].into(), [].into())));
    let three = log.fake("three").refusing(&["n2"], "no");
    let both = ["n1", "n2"].map(node);
    assert_eq!(emptied_by(both, vec![one(), two, three]).as_deref(), Some("two"));
    let with_taint = [node("n1"), tainted("n2")];
    assert_eq!(emptied_by(with_taint, vec![one()]).as_deref(), Some("one"));
    assert_eq!(emptied_by([tainted("n1"), tainted("n2")], vec![one()]), None, "it is not asked");
}

#[test]
fn any_change_brings_back_what_an_extender_refused() {
    type Changes = fn(&mut World) -> String;
    let changes: [(&str, Changes); 8] = [
        ("annotations of a pod on a node", |world| {
            see_annotations(world, pod("old").on("n1").metadata(json!({"annotations": {"a": "b"}})))
        }),
        ("annotations of a node", |world| {
            world.see(node("n1").metadata(json!({"annotations": {"slots": "2"}})))
        }),
        ("a new node", |world| world.see(node("n2"))),
        ("a pod on a node", |world| world.see(pod("b").on("n1"))),
        ("another pending pod", |world| world.see(pod("c").cpu("1"))),
        ("an object that no plugin reads for the pod", |world| {
            world.see(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}))
        }),
        ("annotations of the pod itself", |world| {
            see_whole(world, pod("a").metadata(json!({"annotations": {"gpu": "old"}})))
        }),
        ("a part of its spec that no plugin reads", |world| {
            see_whole(world, pod("a").spec(json!({"activeDeadlineSeconds": 5})))
        }),
    ];
    for (what, change) in changes {
        let log = Log::default();
        let mut world = world([node("n1")], vec![log.fake("gpus").refusing(&["n1"], "no GPU")]);
        see_annotations(&mut world, pod("old").on("n1"));
        see_whole(&mut world, pod("a"));
        assert_eq!(world.next(), "a: no");
        assert_eq!(world.place("a"), Some(Place::Unschedulable), "{what}");
        change(&mut world);
        assert_ne!(world.place("a"), Some(Place::Unschedulable), "{what}");
    }
}

#[test]
fn what_the_scheduler_writes_into_a_pod_does_not_bring_it_back() {
    let log = Log::default();
    let mut world = world([node("n1")], vec![log.fake("gpus").refusing(&["n1"], "no GPU")]);
    see_whole(&mut world, pod("a"));
    assert_eq!(world.next(), "a: no");
    let condition = json!({"type": "PodScheduled", "status": "False", "message": "no GPU"});
    see_whole(&mut world, pod("a").status(json!({"conditions": [condition]})));
    assert_eq!(world.place("a"), Some(Place::Unschedulable));
}

#[test]
fn only_pods_of_interest_are_sent() {
    let log = Log::default();
    let gpus = Fake { only: "gpu", ..log.fake("gpus").refusing(&["n1"], "no GPU") };
    let mut world = world([node("n1")], vec![gpus]);
    world.see(pod("plain"));
    assert_eq!(world.next(), "plain: n1");
    assert_eq!(log.take(), [""; 0]);
    world.see(pod("hungry").label("gpu", "1"));
    assert_eq!(world.next(), "hungry: no");
}

#[test]
fn failure_ends_the_attempt_unless_it_may_be_ignored() {
    let log = Log::default();
    let broken = || log.fake("broken").filtering(|_| Err("it rains".to_owned()));
    let mut strict = world([node("n1")], vec![broken()]);
    strict.see(pod("a"));
    assert_eq!(strict.next(), "a: it rains");
    assert_eq!(strict.effects, "a: SchedulerError: it rains");
    assert_eq!(strict.place("a"), Some(Place::Backoff));

    let mut lenient = world([node("n1")], vec![Fake { ignorable: true, ..broken() }]);
    lenient.see(pod("a"));
    assert_eq!(lenient.next(), "a: n1");
    assert_eq!(
        lenient.effects,
        "pod default/a: extender \"broken\" is left out, as it failed: it rains; bind a to n1"
    );
}

#[test]
fn a_node_that_was_not_asked_about_and_a_panic_are_failures() {
    let log = Log::default();
    let lies = log.fake("liar").filtering(|_| Ok((vec!["n2".into()], [].into(), [].into())));
    let mut world1 = world([node("n1"), node("n2").taint("a", "b", "NoSchedule")], vec![lies]);
    world1.see(pod("a"));
    assert_eq!(
        world1.next(),
        "a: extender \"liar\" claims a filtered node \"n2\" which is not found in the input node list"
    );
    let panics = log.fake("bomb").filtering(|_| panic!("boom"));
    let mut world2 = world([node("n1")], vec![panics]);
    world2.see(pod("a"));
    assert_eq!(world2.next(), "a: extender \"bomb\" panicked: boom");
}

#[test]
fn notes_about_what_the_core_finds_name_an_ignorable_extender_once() {
    let log = Log::default();
    let ignorable = |fake: Fake| vec![Fake { ignorable: true, name: "x", ..fake }];
    let plain = || log.fake("x");
    let lies = plain().filtering(|_| Ok((vec!["n9".into()], [].into(), [].into())));
    let cases = [
        (lies, "claims a filtered node \"n9\" which is not found in the input node list"),
        (plain().filtering(|_| panic!("boom")), "panicked: boom"),
        (plain().ranking(|_| panic!("boom")), "panicked: boom"),
    ];
    for (fake, does) in cases {
        let mut world = world(["n1", "n2"].map(node), ignorable(fake));
        world.see(pod("a"));
        let node = world.next().split_off("a: ".len());
        assert_eq!(
            world.effects,
            format!("pod default/a: extender \"x\" is left out, as it {does}; bind a to {node}")
        );
    }

    let mut world = world([node("n1")], ignorable(Fake { bind: Some(Err(BOMB)), ..plain() }));
    world.see(pod("a"));
    assert_eq!(world.next(), "a: n1");
    let words = world.finish("a", Ok(()));
    let begins = "pod default/a: extender \"x\" is left out, as it panicked: ";
    assert!(words.starts_with(begins), "{words}");
    assert!(words.ends_with("; a is on n1"), "{words}");
}

#[test]
fn priorities_times_weight_are_added_and_all_are_asked_before_one_answers() {
    let log = Log::default();
    let one = log.fake("one").ranking(|node| Some(if node == "n1" { 10 } else { 0 }));
    let two = Fake { weight: 3, ..log.fake("two").ranking(|node| (node == "n2").then_some(4)) };
    let mute = log.fake("mute").ranking(|_| None);
    let mut world = world(["n1", "n2", "n3"].map(node), vec![one, two, mute]);
    let evaluation = world.scheduler.evaluate(&pod("a").build(), &mut Unobserved).expect("scores");
    let said = |node: &str| {
        let it = &evaluation.feasible[&Name::new(node)];
        let outside: i64 = it.extenders.values().sum();
        assert_eq!(it.total, it.scores.values().sum::<i64>() + outside);
        it.extenders.clone()
    };
    assert_eq!(said("n1"), [("one".to_owned(), 100), ("two".to_owned(), 0)].into());
    assert_eq!(said("n2"), [("one".to_owned(), 0), ("two".to_owned(), 120)].into());
    log.take();
    world.see(pod("a"));
    assert_eq!(world.next(), "a: n2");
    assert_eq!(
        log.take(),
        [
            "one is asked to rank n1 n2 n3",
            "two is asked to rank n1 n2 n3",
            "mute is asked to rank n1 n2 n3",
            "one answers",
            "two answers",
            "mute answers",
        ]
    );
    assert_eq!(
        world.effects,
        "pod default/a: extender \"mute\" is left out, as it failed: no idea; bind a to n2"
    );
}

#[test]
fn a_single_feasible_node_is_not_ranked() {
    let log = Log::default();
    let extenders =
        vec![log.fake("picky").refusing(&["n2"], "no"), log.fake("rank").ranking(|_| Some(1))];
    let mut world = world(["n1", "n2"].map(node), extenders);
    world.see(pod("a"));
    assert_eq!(world.next(), "a: n1");
    assert_eq!(log.take(), ["picky filters n1 n2"]);
}

#[test]
fn without_anybody_to_compare_nodes_the_first_one_will_do() {
    let profile = "profiles: [{plugins: {multiPoint: {disabled: [{name: '*'}], enabled: \
                   [{name: PrioritySort}, {name: NodeResourcesFit}, {name: DefaultBinder}]}, \
                   score: {disabled: [{name: '*'}]}}}]";
    let log = Log::default();
    let plain = configured(profile, ["n1", "n2", "n3"].map(node), vec![]);
    let extended = vec![log.fake("any").refusing(&["n1"], "no")];
    let extended = configured(profile, ["n1", "n2", "n3"].map(node), extended);
    for (mut world, n_evaluated) in [(plain, 1), (extended, 3)] {
        world.see(pod("a").cpu("1"));
        let (attempt, _) = world.try_next();
        assert_eq!(attempt.n_evaluated, n_evaluated);
    }
}

#[test]
fn priorities_out_of_range_count_as_they_are_and_are_noted() {
    for (wild, chosen) in [(i64::MAX, "n1"), (i64::MIN, "n2"), (-1, "n2"), (50, "n1")] {
        let log = Log::default();
        let rank = move |node: &str| Some(if node == "n1" { wild } else { 5 });
        let mut world = world(["n1", "n2"].map(node), vec![log.fake("wild").ranking(rank)]);
        world.see(pod("a"));
        assert_eq!(world.next(), format!("a: {chosen}"));
        assert!(world.effects.contains("expected 0 to 10"), "{}", world.effects);
    }
}

/// `big` needs a node to itself; `n1` and `n2` have pods that are in its way.
fn crowded(reviewer: Fake) -> World {
    let mut world = world(["n1", "n2"].map(node), vec![reviewer]);
    world.see(pod("a1").cpu("2").on("n1"));
    world.see(pod("b1").cpu("2").on("n1"));
    world.see(pod("a2").cpu("2").priority(1).on("n2"));
    world.see(pod("vip").cpu("1m").priority(100).on("n2"));
    world.see(pod("big").cpu("3").priority(10));
    assert_eq!(world.next(), "big: no");
    world
}

#[test]
fn preemption_goes_by_what_the_extender_makes_of_it() {
    let log = Log::default();
    let keeps = log.fake("keeps").reviewing(|it| {
        Ok(it.iter().map(|it| victims(&it.node, &[&it.victims[0].key.name])).collect())
    });
    crowded(keeps);
    let asked = log.take();
    assert!(asked[0].contains("n1(a1 b1)") && asked[0].contains("n2(a2)"), "{asked:?}");

    let other_node = log.fake("x").reviewing(|_| Ok(vec![victims("n2", &["a2"])]));
    assert_eq!(crowded(other_node).victims("big"), Some(vec!["a2".to_owned()]));
    let fewer = log.fake("x").reviewing(|_| Ok(vec![victims("n1", &["b1", "b1"])]));
    assert_eq!(crowded(fewer).victims("big"), Some(vec!["b1".to_owned()]));
}

#[test]
fn preemption_that_no_extender_wants_is_none_and_any_change_tries_again() {
    let log = Log::default();
    let mut world = crowded(log.fake("never").reviewing(|_| Ok(vec![])));
    let ends = "preemption: no candidate node for preemption";
    assert!(world.effects.ends_with(ends), "{}", world.effects);
    assert_eq!(world.place("big"), Some(Place::Unschedulable));
    world.see(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}));
    assert_ne!(world.place("big"), Some(Place::Unschedulable));
}

type Bad = fn() -> Result<Vec<NodeVictims>, String>;

/// A review that is a fault: what the pod is told, and the reasons in the notes when the
/// extender may not be ignored and when it may.
#[track_caller]
fn check_bad_review(bad: Bad, message: &str, when_strict: &str, when_ignorable: &str) {
    let log = Log::default();
    let strict = crowded(log.fake("x").reviewing(move |_| bad()));
    let begins = format!(
        "pod default/big: nobody is evicted, as {when_strict}; big: Unschedulable: 0/2 nodes are \
         available: 2 Insufficient cpu."
    );
    assert!(strict.effects.starts_with(&begins), "{}", strict.effects);
    assert!(strict.effects.ends_with(&format!("preemption: {message}")), "{}", strict.effects);

    let ignorable = Fake { ignorable: true, ..log.fake("x").reviewing(move |_| bad()) };
    let lenient = crowded(ignorable);
    let begins = format!(
        "pod default/big: extender \"x\" is left out, as it {when_ignorable}; big: Unschedulable: "
    );
    assert!(lenient.effects.starts_with(&begins), "{}", lenient.effects);
    assert_eq!(lenient.victims("big"), Some(vec!["a1".to_owned(), "b1".to_owned()]));
}

#[test]
fn bad_reviews_are_errors_or_passed_over_and_noted_either_way() {
    check_bad_review(
        || Err("no way".to_owned()),
        "no way",
        "an extender failed: no way",
        "failed: no way",
    );
    let cases: [(Bad, &str, &str); 4] = [
        (
            || Ok(vec![victims("n9", &["a1"])]),
            "extender \"x\"",
            "wants to preempt on node \"n9\", which does not exist",
        ),
        (
            || Ok(vec![victims("n1", &["a2"])]),
            "extender: x",
            "claims to preempt pod (UID: uid-default-a2) on node: n1, but the pod is not found on \
             that node",
        ),
        (
            || Ok(vec![victims("n2", &["a2", "vip"])]),
            "extender \"x\"",
            "wants to evict pod default/vip of priority 100, allowed: below 10",
        ),
        (|| panic!("boom"), "extender \"x\"", "panicked: boom"),
    ];
    for (bad, who, does) in cases {
        check_bad_review(bad, &format!("{who} {does}"), &format!("extender \"x\" {does}"), does);
    }
}

#[test]
fn a_review_without_victims_is_an_error_or_only_passed_over_on_that_node() {
    let log = Log::default();
    let empty = || log.fake("x").reviewing(|_| Ok(vec![victims("n1", &[])]));
    let strict = crowded(empty());
    let begins =
        "pod default/big: nobody is evicted, as extender \"x\" names no victim on node n1; ";
    assert!(strict.effects.starts_with(begins), "{}", strict.effects);
    let ends = "preemption: expected at least one victim pod on node \"n1\"";
    assert!(strict.effects.ends_with(ends), "{}", strict.effects);

    let lenient = crowded(Fake { ignorable: true, ..empty() });
    assert_eq!(lenient.victims("big"), None);
    let begins = "pod default/big: extender \"x\" names no victim on node n1, left out; ";
    assert!(lenient.effects.starts_with(begins), "{}", lenient.effects);
}

#[test]
fn the_first_interested_binder_binds_and_the_plugins_do_not() {
    let log = Log::default();
    let mute = log.fake("mute").refusing(&[], "");
    let other = Fake { bind: Some(Ok(())), only: "special", ..log.fake("other") };
    let binds = Fake { bind: Some(Ok(())), ..log.fake("binds") };
    let mut world = world([node("n1")], vec![mute, other, binds]);
    world.see(pod("a"));
    assert_eq!(world.next(), "a: n1");
    log.take();
    assert_eq!(world.finish("a", down()), "a is on n1");
    assert_eq!(log.take(), ["binds binds a to n1"]);
}

#[test]
fn failed_binding_fails_the_pod_unless_the_extender_may_be_ignored() {
    let log = Log::default();
    let broken = || Fake { bind: Some(Err("no ink")), ..log.fake("broken") };
    let mut strict = world([node("n1")], vec![broken()]);
    strict.see(pod("a"));
    assert_eq!(strict.next(), "a: n1");
    assert_eq!(strict.finish("a", Ok(())), "a: SchedulerError: no ink");
    strict.pass(seconds(1));
    assert_eq!(strict.next(), "a: n1", "its room is free again");

    let mut lenient = world([node("n1")], vec![Fake { ignorable: true, ..broken() }]);
    lenient.see(pod("a"));
    assert_eq!(lenient.next(), "a: n1");
    assert_eq!(
        lenient.finish("a", Ok(())),
        "pod default/a: extender \"broken\" is left out, as it failed: no ink; a is on n1"
    );
}

#[test]
fn an_extender_that_panics_when_it_binds_is_named() {
    let log = Log::default();
    let bomb = Fake { bind: Some(Err(BOMB)), ..log.fake("bomb") };
    let mut world = world([node("n1")], vec![bomb]);
    world.see(pod("a"));
    assert_eq!(world.next(), "a: n1");
    let words = world.finish("a", Ok(()));
    assert!(words.starts_with("a: SchedulerError: extender \"bomb\" panicked: "), "{words}");
}

#[test]
fn nominated_node_that_an_extender_refuses_is_no_better_than_others() {
    let log = Log::default();
    let mut world = world(["n1", "n2"].map(node), vec![log.fake("picky").refusing(&["n1"], "no")]);
    world.see(pod("a").status(json!({"nominatedNodeName": "n1"})));
    assert_eq!(world.next(), "a: n2");
    assert_eq!(log.take(), ["picky filters n1", "picky filters n1 n2"]);
    world.see(pod("b").status(json!({"nominatedNodeName": "n2"})));
    assert_eq!(world.next(), "b: n2");
    assert_eq!(log.take(), ["picky filters n2"]);
}

const GPUS: &str = "extenders: [{urlPrefix: 'http://gpus', filterVerb: f, managedResources: \
                    [{name: example.com/gpu, ignoredByScheduler: true}, {name: example.com/nic}]}]";

#[test]
fn resources_that_the_scheduler_ignores_are_left_to_the_extender() {
    for extenders in [vec![], vec![Log::default().fake("gpus").refusing(&[], "")]] {
        let mut world = configured(GPUS, [node("n1")], extenders);
        world.see(pod("a").request("example.com/gpu", "1"));
        assert_eq!(world.next(), "a: n1");
        world.see(pod("b").request("example.com/nic", "1"));
        assert_eq!(world.next(), "b: no");
    }
    // They take the place of what the plugin's own arguments ignore.
    let profiles = "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: \
                    [example.com/nic], ignoredResourceGroups: [example.org]}}]}]";
    let mut world = configured(&format!("{GPUS}\n{profiles}"), [node("n1")], vec![]);
    world.see(pod("b").request("example.com/nic", "1"));
    assert_eq!(world.next(), "b: no");
    world.see(pod("c").request("example.org/any", "1"));
    assert_eq!(world.next(), "c: n1");
}

#[test]
fn extenders_that_are_configured_and_not_called_are_told_of() {
    let registry = steersman_plugins::table::in_tree();
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{GPUS}"
    );
    let config = steersman_config::load(&text, &registry).expect("a configuration").config;
    let notices = |extenders: &[Arc<dyn Extender>]| {
        let setup = Setup { extenders, ..Setup::new(&config, &registry) };
        let (scheduler, notices) = Scheduler::new(setup).expect("a scheduler");
        let told = notices.iter().any(|it| it.starts_with("extenders are not called here"));
        (told, scheduler.needs().is_none())
    };
    assert_eq!(notices(&[]), (true, false));
    let filters: Arc<dyn Extender> = Arc::new(Log::default().fake("x").refusing(&[], ""));
    assert_eq!(notices(&[filters]), (false, true), "it may look at anything");
}
