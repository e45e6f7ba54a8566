use serde_json::json;
use steersman_framework::verdict::Preemption;
use steersman_testing::bench::Bench;
use steersman_testing::{PodBuilder, node, pod};

use super::budgets::Budgets;
use super::choice::{best, importance};
use super::*;

fn started(name: &str, second: u8) -> PodBuilder {
    pod(name).status(json!({"startTime": format!("2026-01-01T00:00:{second:02}Z")}))
}

fn candidate(node: &str, victims: Vec<PodBuilder>, budgets_violated: usize) -> Preemption {
    let mut victims: Vec<_> = victims.into_iter().map(PodBuilder::build).collect();
    victims.sort_by_cached_key(importance);
    Preemption { node: node.into(), victims, budgets_violated }
}

/// The first of the two candidates must win, in whatever order they come.
#[track_caller]
fn check_better(better: (Vec<PodBuilder>, usize), worse: (Vec<PodBuilder>, usize)) {
    let better = candidate("better", better.0, better.1);
    let worse = candidate("worse", worse.0, worse.1);
    for candidates in [[&better, &worse], [&worse, &better]] {
        let chosen = best(candidates.into_iter().cloned().collect()).expect("two to choose from");
        assert_eq!(&*chosen.node, "better");
    }
}

fn at(name: &str, priority: i32) -> PodBuilder {
    started(name, 30).priority(priority)
}

#[test]
fn fewer_budgets_violated_outweigh_everything() {
    check_better((vec![at("a", 9), at("b", 9)], 0), (vec![at("c", 1)], 1));
}

#[test]
fn lower_highest_priority_comes_next() {
    check_better((vec![at("a", 5), at("b", 5), at("c", 5)], 0), (vec![at("d", 6)], 0));
}

#[test]
fn smaller_sum_of_priorities_comes_next() {
    check_better((vec![at("a", 5), at("b", 1)], 0), (vec![at("c", 5), at("d", 2)], 0));
    check_better((vec![at("a", -5)], 0), (vec![at("b", -5), at("c", -5)], 0));
}

#[test]
fn fewer_victims_come_next() {
    // One pod more can make the same sum only at the lowest priority.
    let lowest = i32::MIN;
    check_better((vec![at("a", 5)], 0), (vec![at("b", 5), at("c", lowest)], 0));
}

#[test]
fn later_start_of_the_most_important_victims_comes_last() {
    check_better(
        (vec![started("a", 20), started("b", 40)], 0),
        (vec![started("c", 10), started("d", 50)], 0),
    );
    check_better((vec![pod("never-started")], 0), (vec![started("c", 59)], 0));
    let low = |name, second| started(name, second).priority(-1);
    check_better(
        (vec![started("a", 20), low("b", 1)], 0),
        (vec![started("c", 10), low("d", 50)], 0),
    );
}

#[test]
fn first_of_equals_is_taken() {
    let equals = ["n2", "n1", "n3"].map(|node| candidate(node, vec![at("a", 1)], 0));
    assert_eq!(best(equals.into()).map(|chosen| chosen.node), Some("n2".into()));
    assert_eq!(best(Vec::new()), None);
}

#[test]
fn pods_that_run_longer_are_more_important_among_equals() {
    let mut pods = [
        pod("new").build(),
        started("old", 1).build(),
        started("young", 9).build(),
        started("vip", 9).priority(1).build(),
    ];
    pods.sort_by_cached_key(importance);
    let names: Vec<&str> = pods.iter().map(|pod| &*pod.key.name).collect();
    assert_eq!(names, ["vip", "old", "young", "new"]);
}

#[test]
fn budget_protects_those_for_whom_nothing_is_left() {
    let budget = |name: &str, app: &str, allowed: i32| {
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"namespace": "default", "name": name},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1,
                "expectedPods": 1}})
    };
    let bench = Bench::new(&descriptor()).objects([
        budget("db", "db", 1),
        budget("web", "web", 0),
        budget("everybody", "none", 0),
    ]);
    let labelled = |name: &str, app: &str| pod(name).label("app", app).build();
    let pods = [
        labelled("db-0", "db"),
        labelled("db-1", "db"),
        labelled("web-0", "web"),
        labelled("other/web", "web"),
        pod("plain").build(),
    ];
    let split = Budgets::of(&bench.cluster).split(&pods);
    let names = |pods: &[Arc<PodInfo>]| -> Vec<String> {
        pods.iter().map(|pod| pod.key.to_string()).collect()
    };
    assert_eq!(names(&split.violating), ["default/db-1", "default/web-0"]);
    assert_eq!(names(&split.allowed), ["default/db-0", "other/web", "default/plain"]);
}

#[test]
fn pod_is_kept_out_while_its_evictions_are_requested() {
    let mut bench = Bench::new(&descriptor()).nodes([node("n1")]);
    let big = pod("big").build();
    let gate = |bench: &Bench| {
        let plugin = bench.plugin.pre_enqueue.as_ref().expect("PreEnqueue");
        plugin.pre_enqueue(&big, &bench.cluster).expect("a verdict")
    };
    assert_eq!(gate(&bench), PreEnqueueVerdict::Admit);
    let it = steersman_framework::cluster::UnderWay {
        node: "n1".into(),
        victims: ["a".into()].into(),
        requested: ["a".into()].into(),
        ticket: 1,
    };
    bench.cluster.preemptions.begin(&big.uid, it);
    assert_eq!(gate(&bench), PreEnqueueVerdict::Gate(GATE.into()));
    bench.cluster.preemptions.terminates(&"a".into());
    assert_eq!(gate(&bench), PreEnqueueVerdict::Admit);
}
