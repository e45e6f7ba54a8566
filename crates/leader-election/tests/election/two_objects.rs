//! Older kinds of locks, and the way from one kind to another.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use steersman_leader_election::LockKind;
use tokio::time::{sleep, timeout};

use crate::world::{Link, World};

const SECOND: Duration = Duration::from_secs(1);
const ANNOTATION: &str = "control-plane.alpha.kubernetes.io/leader";

async fn annotation(world: &World, plural: &str) -> Value {
    let path = format!("/api/v1/namespaces/kube-system/{plural}/worker");
    let object = world.get(&path).await;
    serde_json::from_str(object["metadata"]["annotations"][ANNOTATION].as_str().expect("text"))
        .expect("it succeeds")
}

/// While a program with the first kind leads, one with the second must wait, and
/// it takes over when the first has gone.
async fn check_excludes(first: LockKind, second: LockKind) {
    let world = World::new();
    let election = |kind, name| world.election_for(kind, name, &Link::default(), Arc::new(()));
    let leader = election(first, "a").acquire().await;
    let candidate = tokio::spawn(election(second, "b").acquire());
    sleep(120 * SECOND).await;
    assert!(!candidate.is_finished(), "{first} and {second} both lead");
    assert!(leader.leadership().still_valid(), "{first} was disturbed by {second}");
    drop(leader);
    let term = timeout(60 * SECOND, candidate).await;
    let term = term.unwrap_or_else(|_| panic!("{second} does not take over from {first}"));
    let mut term = term.expect("it succeeds");
    assert_eq!(term.hold(sleep(60 * SECOND)).await, Ok(()), "{second} cannot renew");
}

#[tokio::test(start_paused = true)]
async fn programs_with_the_same_kind_exclude_each_other() {
    for kind in ["leases", "endpoints", "configmaps", "endpointsleases", "configmapsleases"] {
        let kind = kind.parse().unwrap();
        check_excludes(kind, kind).await;
    }
}

#[tokio::test(start_paused = true)]
async fn programs_that_share_an_object_exclude_each_other() {
    use LockKind::{ConfigMaps, ConfigMapsLeases, Endpoints, EndpointsLeases, Leases};

    check_excludes(Endpoints, EndpointsLeases).await;
    check_excludes(EndpointsLeases, Endpoints).await;
    check_excludes(EndpointsLeases, Leases).await;
    check_excludes(Leases, EndpointsLeases).await;
    check_excludes(ConfigMaps, ConfigMapsLeases).await;
    check_excludes(ConfigMapsLeases, Leases).await;
    check_excludes(Leases, ConfigMapsLeases).await;
}

#[tokio::test(start_paused = true)]
async fn both_objects_are_kept_up_to_date_and_given_back() {
    let world = World::new();
    let link = Link::default();
    let kind = LockKind::EndpointsLeases;
    let term = world.election_for(kind, "a", &link, Arc::new(())).acquire().await;
    sleep(10 * SECOND).await;
    let (old, new) = (annotation(&world, "endpoints").await, world.lease().await);
    assert_eq!((&old["holderIdentity"], &new["holderIdentity"]), (&"a".into(), &"a".into()));
    assert_eq!(old["renewTime"], "2026-01-01T00:00:10Z");
    assert_eq!(new["renewTime"], "2026-01-01T00:00:10.000000Z");
    term.release().await;
    let (old, new) = (annotation(&world, "endpoints").await, world.lease().await);
    assert_eq!((&old["holderIdentity"], &new["holderIdentity"]), (&"".into(), &"".into()));
    assert_eq!(
        world.events().await,
        [
            "LeaderElection Endpoints worker: a became leader",
            "LeaderElection Endpoints worker: a stopped leading",
            "LeaderElection Lease worker: a became leader",
            "LeaderElection Lease worker: a stopped leading",
        ]
    );
}
