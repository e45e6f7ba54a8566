//! Node leases.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference};
use serde_json::json;

use super::{Health, health};
use crate::cluster::{Key, Kind, Seen, World, uid};
use crate::engine::plan::{Call, Part, Plan, View};

/// The namespace of the leases of nodes.
pub(crate) const LEASES: &str = "kube-node-lease";
const LEASE_SECONDS: i32 = 40;
const INTERVAL: SignedDuration = SignedDuration::from_secs(10);
const LONGEST_INTERVAL: SignedDuration = SignedDuration::from_secs(30);
/// With more nodes than 500, leases are renewed less often than a kubelet does
/// it, so that there are no more than 50 writes a second, but early enough for
/// the 40 seconds that a lease lasts.
const WRITES_PER_SECOND: usize = 50;

pub(crate) fn wake(_: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    if let Seen::Node(change) = seen {
        let started = change.new.as_ref().is_some_and(|node| health(node) != Health::Silent);
        let before = change.old.as_ref().is_some_and(|node| health(node) != Health::Silent);
        if started && !before {
            wake(Key::of(&change.object().metadata));
        }
    }
}

/// Renews the lease of a node when it is time.
pub(crate) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan::default();
    let Some(node) = view.world.nodes.get(key) else { return plan };
    if health(node) == Health::Silent {
        return plan;
    }
    let every = interval(view.world.nodes.len());
    let lease_key = Key::new(LEASES, key.name.clone());
    let Some(lease) = view.world.leases.get(&lease_key) else {
        plan.call(Call::create(&new_lease(node, view.now)));
        plan.wake_at(next_turn(&key.name, view.now, every));
        return plan;
    };
    let renewed = renewal(lease).unwrap_or(Timestamp::UNIX_EPOCH);
    let due = next_turn(&key.name, renewed, every);
    if due > view.now {
        plan.wake_at(due);
        return plan;
    }
    let patch = json!({ "spec": { "renewTime": MicroTime(view.now) } });
    plan.call(Call::Patch { kind: Kind::Lease, key: lease_key, part: Part::Main, patch });
    plan.wake_at(next_turn(&key.name, view.now, every));
    plan
}

/// When the lease was last renewed.
pub(crate) fn renewal(lease: &Lease) -> Option<Timestamp> {
    Some(lease.spec.as_ref()?.renew_time.as_ref()?.0)
}

fn interval(n_nodes: usize) -> SignedDuration {
    let seconds = i64::try_from(n_nodes / WRITES_PER_SECOND).unwrap_or(i64::MAX);
    SignedDuration::from_secs(seconds).clamp(INTERVAL, LONGEST_INTERVAL)
}

/// When it is the node's turn after `last`. Turns come at equal intervals, those
/// of different nodes at different times: leases that were made at one moment
/// are renewed at many.
fn next_turn(name: &str, last: Timestamp, every: SignedDuration) -> Timestamp {
    let hash = name
        .bytes()
        .fold(0_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let every = i64::try_from(every.as_millis()).unwrap_or(i64::MAX).max(1);
    let offset = i64::try_from(hash % 1_000_003).unwrap_or_default() % every;
    let passed = (last.as_millisecond() - offset).rem_euclid(every);
    last + SignedDuration::from_millis(every - passed)
}

fn new_lease(node: &Node, now: Timestamp) -> Lease {
    let name = node.metadata.name.clone().unwrap_or_default();
    Lease {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(LEASES.to_owned()),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Node".to_owned(),
                name: name.clone(),
                uid: uid(&node.metadata).to_owned(),
                ..Default::default()
            }]),
            ..Default::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(name),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(MicroTime(now)),
            ..Default::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_take_turns() {
        let start = Timestamp::from_second(1_800_000_000).expect("a time");
        let turns: Vec<Timestamp> =
            (0..100).map(|i| next_turn(&format!("node-{i}"), start, INTERVAL)).collect();
        assert!(turns.iter().all(|turn| *turn > start && *turn <= start + INTERVAL));
        let half = start + INTERVAL / 2;
        let n_early = turns.iter().filter(|turn| **turn < half).count();
        assert!((25..75).contains(&n_early), "{n_early} of 100 in the first half");
        let (first, second) = (turns[0], next_turn("node-0", turns[0], INTERVAL));
        assert_eq!(second, first + INTERVAL);
    }

    #[test]
    fn leases_are_renewed_less_often_when_there_are_many_nodes_but_in_time() {
        let cases = [(1, 10), (500, 10), (1000, 20), (5000, 30), (100_000, 30)];
        for (n_nodes, seconds) in cases {
            assert_eq!(interval(n_nodes).as_secs(), seconds, "{n_nodes} nodes");
        }
    }
}
