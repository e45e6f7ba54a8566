//! Reserve, Permit, and what becomes of a binding.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::node_info::NodeInfo;
use steersman_core::{Event, Place, Record};
use steersman_framework::events::{ActionType, ClusterEvent, EnqueueExtensions, EventResource};
use steersman_framework::extensions::{
    Bind, BindCtx, BoxFuture, CycleCtx, Extensions, Filter, Permit, PreBind, PrepareCtx, Reserve,
};
use steersman_framework::registry::Descriptor;
use steersman_framework::verdict::{
    BindVerdict, FilterVerdict, PermitVerdict, PluginError, PreBindVerdict, Rejection,
    ReserveVerdict,
};
use steersman_framework::world::{ClusterWriter, WriteError};
use steersman_testing::{node, pod};

use crate::world::{World, down, plugin, seconds, taken, uid};

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
        let effects = match gone {
            true => "",
            false => {
                "a: SchedulerError: running Bind plugin \"DefaultBinder\": down \
                 (another client bound it to n2)"
            }
        };
        assert_eq!(world.finish("a", down()), effects);
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

/// Refuses or puts off what comes before the binding.
struct Prepares(Result<PreBindVerdict, PluginError>);

impl PreBind for Prepares {
    fn has_work(&self, _: &CycleCtx<'_>, _: &Name) -> bool {
        true
    }

    fn pre_bind<'a>(
        &'a self,
        _: BindCtx<'a>,
    ) -> BoxFuture<'a, Result<PreBindVerdict, PluginError>> {
        Box::pin(ready(self.0.clone()))
    }
}

#[track_caller]
fn check_bound_by_another(
    prepared: Result<PreBindVerdict, PluginError>,
    answer: Result<(), WriteError>,
    effects: &str,
    result: &str,
) {
    let extensions =
        Extensions { pre_bind: Some(Arc::new(Prepares(prepared))), ..Extensions::default() };
    let gates = "NominatedNodeNameForExpectation=false";
    let mut world = World::with_gates(&[plugin("Prepares", extensions)], gates);
    world.scheduler.keep_records();
    world.see(node("n1"));
    world.see(pod("a").cpu("3"));
    assert_eq!(world.next(), "a: n1");
    world.see(pod("a").cpu("3").on("n1"));
    assert_eq!(world.finish("a", answer), effects);
    let results: Vec<&str> = world
        .scheduler
        .take_records()
        .iter()
        .map(|record| match record {
            Record::Scheduled { .. } => "scheduled",
            Record::Failed { reason, started: Some(_), .. } => reason.name(),
            Record::Failed { .. } | Record::PermitWaited { .. } => "something else",
        })
        .collect();
    assert_eq!(results, [result], "counted once");
    // It has its room and is not tried again.
    world.pass(seconds(60));
    assert_eq!((world.place("a"), world.next()), (None, "nobody".to_owned()));
    assert_eq!(world.scheduler.placed_count(), 1);
    world.see(pod("b").cpu("2"));
    assert_eq!(world.next(), "b: no", "the room is taken once");
}

#[test]
fn a_pod_bound_to_the_chosen_node_by_another_client_is_not_counted_as_ours() {
    let done = || Ok(PreBindVerdict::Done);
    let error = |plugin: &str, what: &str| {
        format!("a: SchedulerError: running {plugin}: {what} (another client bound it to n1)")
    };
    let refused = error("Bind plugin \"DefaultBinder\"", "taken");
    check_bound_by_another(done(), taken(), &refused, "SchedulerError");
    // Without an answer it may have been our own binding.
    check_bound_by_another(done(), down(), "a is on n1", "scheduled");
    let broken = Err(PluginError("broken".to_owned()));
    let unprepared = error("PreBind plugin \"Prepares\"", "broken");
    check_bound_by_another(broken, Ok(()), &unprepared, "SchedulerError");
    let no = Ok(PreBindVerdict::Reject(Rejection::unschedulable("not today")));
    let rejected = "a: Unschedulable: not today (another client bound it to n1)";
    check_bound_by_another(no, Ok(()), rejected, "Unschedulable");
}

#[test]
fn a_refused_binding_of_a_pod_not_seen_bound_yet_waits_for_the_watch() {
    let mut world = World::new();
    world.see(node("n1"));
    world.see(pod("a"));
    assert_eq!(world.next(), "a: n1");
    let refused = "a: SchedulerError: running Bind plugin \"DefaultBinder\": taken";
    assert_eq!(world.finish("a", taken()), refused);
    assert_eq!(world.place("a"), Some(Place::Backoff), "not forgotten");
    world.see(pod("a").on("n1"));
    world.pass(seconds(60));
    assert_eq!((world.place("a"), world.next()), (None, "nobody".to_owned()));
    assert_eq!(world.scheduler.placed_count(), 1);
}

#[test]
fn a_late_report_of_a_pod_bound_elsewhere_does_not_tell_its_preemptor_that_it_left() {
    let mut world = World::with_room_only();
    world.see(node("n1"));
    world.see(pod("a").cpu("4"));
    assert_eq!(world.next(), "a: n1");
    world.see(node("n2"));
    world.see(pod("a").cpu("4").on("n2"));
    world.see(pod("c").cpu("4").priority(50).on("n1"));
    world.see(pod("p").cpu("4").priority(10));
    assert_eq!(world.next(), "p: no");
    assert_eq!(world.victims("p"), Some(vec!["a".to_owned()]));
    world.evicted("p", Ok(()));
    let waiting = |world: &World| world.scheduler.cluster().preemptions.iter().count();
    assert_eq!(waiting(&world), 1);
    world.finish("a", taken());
    assert_eq!(waiting(&world), 1, "it is still there");
    world.delete_pod("a");
    assert_eq!(waiting(&world), 0);
    assert_eq!(world.next(), "p: n2");
}

/// Asks for the binding until the answer is clear, or gives up at once.
struct AsksTwice;

impl Bind for AsksTwice {
    fn bind<'a>(&'a self, ctx: BindCtx<'a>) -> BoxFuture<'a, Result<BindVerdict, PluginError>> {
        Box::pin(async move {
            for _ in 0..2 {
                let (pod, world) = (ctx.pod, ctx.world);
                if world.bind(&pod.key, &pod.uid, ctx.node).await.is_ok() {
                    return Ok(BindVerdict::Bound);
                }
            }
            Err(PluginError("in vain".to_owned()))
        })
    }
}

/// The answers of the API server, one after the other.
struct Answers(Mutex<Vec<Result<(), WriteError>>>);

impl ClusterWriter for Answers {
    fn bind<'a>(
        &'a self,
        _: &'a ObjectKey,
        _: &'a PodUid,
        _: &'a Name,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        Box::pin(ready(self.0.lock().remove(0)))
    }
}

#[test]
fn a_conflict_after_a_lost_answer_may_be_our_own_binding() {
    let vain = "a: SchedulerError: running Bind plugin \"AsksTwice\": in vain \
                (another client bound it to n1)";
    for (answers, effects) in
        [(vec![down(), taken()], "a is on n1"), (vec![taken(), taken()], vain)]
    {
        let extensions = Extensions { bind: Some(Arc::new(AsksTwice)), ..Extensions::default() };
        let fields = "profiles: [{plugins: {bind: {disabled: [{name: DefaultBinder}], \
                      enabled: [{name: AsksTwice}]}}}]";
        let mut world = World::of(&[plugin("AsksTwice", extensions)], fields, None);
        world.see(node("n1"));
        world.see(pod("a"));
        assert_eq!(world.next(), "a: n1");
        world.see(pod("a").on("n1"));
        let answers = Answers(Mutex::new(answers));
        let report = world.bind_through("a", &answers);
        assert_eq!(world.handle(Event::BindingFinished(report)), effects);
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
