//! How terms begin and end when nothing is broken.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use steersman_leader_election::{Config, ConfigError, Election, LockKind, Metrics};
use tokio::time::{sleep, timeout};

use crate::world::{Diary, Link, World};
use steersman_leader_election::Clock as _;

const SECOND: Duration = Duration::from_secs(1);
/// Two seconds, and the most that chance adds.
const RETRY: Duration = Duration::from_millis(4400);
const LEASE: Duration = Duration::from_secs(15);

#[tokio::test(start_paused = true)]
async fn one_leads_and_says_so() {
    let world = World::new();
    let diary = Arc::new(Diary::default());
    let link = Link::default();
    let election = world.election_for(LockKind::Leases, "a", &link, diary.clone());
    let monitor = election.monitor();
    assert_eq!((monitor.leader(), monitor.metrics()), (None, Metrics::default()));
    let term = election.acquire().await;
    sleep(30 * SECOND).await;

    assert!(term.leadership().still_valid());
    let lease = world.lease().await;
    assert_eq!(lease["holderIdentity"], "a");
    assert_eq!(lease["leaseDurationSeconds"], 15);
    assert_eq!(lease["leaseTransitions"], 0);
    assert_eq!(lease["acquireTime"], "2026-01-01T00:00:00.000000Z");
    assert_eq!(lease["renewTime"], "2026-01-01T00:00:30.000000Z");
    assert_eq!(monitor.leader().as_deref(), Some("a"));
    assert_eq!(monitor.metrics(), Metrics { is_leader: true, slowpath: 0, transitions: 0 });
    monitor.check(Duration::ZERO).unwrap();
    // One read and one create; the rest are renewals without reading.
    assert_eq!(link.sent(&http::Method::GET), 1);

    term.release().await;
    let lease = world.lease().await;
    assert_eq!((&lease["holderIdentity"], &lease["leaseDurationSeconds"]), (&"".into(), &1.into()));
    assert!(!monitor.metrics().is_leader);
    assert_eq!(diary.entries(), ["leader a", "started", "stopped"]);
    let events = ["became leader", "stopped leading"];
    let events = events.map(|did| format!("LeaderElection Lease worker: a {did}"));
    assert_eq!(world.events().await, events);
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_the_next_try() {
    let world = World::new();
    let first = world.election("a", &Link::default()).acquire().await;
    let diary = Arc::new(Diary::default());
    let second = world.election_for(LockKind::Leases, "b", &Link::default(), diary.clone());
    let second = tokio::spawn(second.acquire());
    sleep(20 * SECOND).await;
    assert!(!second.is_finished());

    first.release().await;
    let second = timeout(RETRY, second).await.expect("it is quick").unwrap();
    assert!(second.leadership().still_valid());
    let lease = world.lease().await;
    assert_eq!((&lease["holderIdentity"], &lease["leaseTransitions"]), (&"b".into(), &1.into()));
    assert_eq!(diary.entries(), ["leader a", "leader b", "started"]);
}

#[tokio::test(start_paused = true)]
async fn who_stands_by_knows_who_leads_and_is_healthy() {
    let world = World::new();
    let first = world.election("a", &Link::default()).acquire().await;
    let election = world.election("b", &Link::default());
    let monitor = election.monitor();
    monitor.check(Duration::ZERO).unwrap();
    let second = tokio::spawn(election.acquire());
    sleep(SECOND).await;
    assert_eq!((monitor.name(), monitor.leader().as_deref()), ("worker", Some("a")));
    assert_eq!(monitor.metrics(), Metrics::default());

    // Nobody renews any more and nobody notices: that is no fault of this one.
    second.abort();
    drop(first);
    world.clock.jump(3600 * SECOND);
    monitor.check(Duration::ZERO).unwrap();
    assert!(!monitor.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_dies_is_replaced_within_the_lease_and_one_retry() {
    let world = World::new();
    let first = world.election("a", &Link::default()).acquire().await;
    let second = tokio::spawn(world.election("b", &Link::default()).acquire());
    sleep(31 * SECOND).await;
    let guard = first.leadership();
    drop(first);
    assert!(!guard.still_valid(), "a term that is dropped is over");

    let before = world.clock.elapsed();
    let second = timeout(LEASE + RETRY, second).await.expect("it takes over").unwrap();
    assert!(second.leadership().still_valid());
    let took = world.clock.elapsed() - before;
    assert!(took > LEASE - 2 * SECOND, "it waited for the lease to run out: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_gives_the_lease_back() {
    let world = World::new();
    let output = world.election("a", &Link::default()).run(|leadership| async move {
        sleep(60 * SECOND).await;
        assert!(leadership.still_valid());
        17
    });
    assert_eq!(output.await, Ok(17));
    assert_eq!(world.lease().await["holderIdentity"], "");
}

#[tokio::test]
async fn wrong_configurations_are_refused() {
    let client = || -> Client { World::new().client(&Link::default()) };
    let refused = |config| Election::new(client(), config).map(drop).unwrap_err();
    assert_eq!(refused(Config::lease("default", "x", "")), ConfigError::Identity);
    for name in ["", "a/b", "a?b", "-a", "a-", "A", "ä", "..", &"a".repeat(254)] {
        let error = refused(Config::lease("default", name, "me"));
        assert_eq!(error, ConfigError::Name("name", name.to_owned()));
    }
    let error = refused(Config::lease("kube system", "x", "me"));
    assert_eq!(
        error.to_string(),
        "the lock's namespace \"kube system\" is not a name that Kubernetes allows"
    );
}
