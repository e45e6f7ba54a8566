//! What happens when the connection, the process or the lock is disturbed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::{Method, Request};
use kube::client::{Body, ClientBuilder};
use serde_json::{Value, json};
use steersman_leader_election::{FencedOut, LockKind, Lost};
use tokio::time::{sleep, timeout};
use tower::ServiceExt as _;

use crate::world::{Diary, Link, Weather, World};
use steersman_leader_election::Clock as _;

const SECOND: Duration = Duration::from_secs(1);

/// Work that never ends and counts how often it was dropped.
async fn endless(dropped: Arc<AtomicU32>) {
    struct Count(Arc<AtomicU32>);
    impl Drop for Count {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let _count = Count(dropped);
    std::future::pending().await
}

/// Lets a leader's connection change, and checks that its work is dropped before
/// another leads.
async fn check_lost(weather: Weather) {
    let world = World::new();
    let link = Link::default();
    let diary = Arc::new(Diary::default());
    let mut term = world.election_for(LockKind::Leases, "a", &link, diary.clone()).acquire().await;
    let other = tokio::spawn(world.election("b", &Link::default()).acquire());
    sleep(20 * SECOND + SECOND / 2).await;
    link.set(weather);
    let cut = world.clock.elapsed();

    let dropped = Arc::new(AtomicU32::new(0));
    let lost = term.hold(endless(dropped.clone())).await;
    let after = world.clock.elapsed() - cut;
    assert_eq!(lost, Err(Lost::Expired), "{weather:?}");
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    // The last renewal was half a second before.
    assert_eq!(after, Duration::from_millis(9500), "{weather:?}");
    assert!(!term.leadership().still_valid());
    assert_eq!(diary.entries().last().map(String::as_str), Some("stopped"));
    assert!(!other.is_finished(), "nobody leads before the first one stopped");
    let next = timeout(10 * SECOND, other).await.expect("another takes over").expect("it succeeds");
    assert!(next.leadership().still_valid());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_another_leads() {
    check_lost(Weather::Cut).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_server_refuses_stops_before_another_leads() {
    check_lost(Weather::Refuses).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_too_slow_stops_before_another_leads() {
    check_lost(Weather::Slow(6 * SECOND)).await;
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_changes_nothing() {
    for weather in [Weather::Cut, Weather::Refuses, Weather::LosesAnswers] {
        let world = World::new();
        let link = Link::default();
        let election = world.election("a", &link);
        let monitor = election.monitor();
        let mut term = election.acquire().await;
        sleep(SECOND).await;
        link.set(weather);
        sleep(6 * SECOND).await;
        link.set(Weather::Fine);
        let rest = term.hold(sleep(100 * SECOND)).await;
        assert_eq!(rest, Ok(()), "{weather:?}");
        assert_eq!(world.lease().await["leaseTransitions"], 0);
        assert_eq!(monitor.metrics().slowpath, 1, "{weather:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_candidate_whose_answer_was_lost_finds_out_that_it_leads() {
    let world = World::new();
    let link = Link::default();
    link.set(Weather::LosesAnswers);
    let term = tokio::spawn(world.election("a", &link).acquire());
    sleep(SECOND).await;
    assert_eq!(world.lease().await["holderIdentity"], "a");
    assert!(!term.is_finished());
    link.set(Weather::Fine);
    let term = timeout(10 * SECOND, term).await.expect("it is quick").unwrap();
    assert!(term.leadership().still_valid());
    assert_eq!(world.lease().await["leaseTransitions"], 0);
}

/// The names of the `ConfigMap`s, without those that every namespace has.
async fn maps(world: &World) -> Vec<String> {
    let maps = world.get("/api/v1/namespaces/default/configmaps").await;
    let name = |map: &Value| map["metadata"]["name"].as_str().expect("text").to_owned();
    let names = maps["items"].as_array().expect("a list").iter().map(name);
    names.filter(|name| name != "kube-root-ca.crt").collect()
}

fn write(name: &str) -> Request<Vec<u8>> {
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
    Request::post("/api/v1/namespaces/default/configmaps")
        .header("content-type", "application/json")
        .body(map.to_string().into_bytes())
        .expect("a request")
}

#[tokio::test(start_paused = true)]
async fn a_write_that_waits_for_its_way_longer_than_the_term_is_not_sent() {
    let world = World::new();
    let link = Link::default();
    let term = world.election("a", &link).acquire().await;
    let server = world.server.service();
    // As when a token has to be fetched first, or a connection opened.
    let late = tower::service_fn(move |request: Request<Body>| {
        let server = server.clone();
        async move {
            sleep(9 * SECOND).await;
            server.oneshot(request).await
        }
    });
    let fence = term.leadership().fence();
    let client = ClientBuilder::new(late, "default").with_layer(&fence).build();
    client.request::<Value>(write("in-time")).await.unwrap();

    link.set(Weather::Cut);
    sleep(6 * SECOND).await;
    assert!(term.leadership().still_valid());
    let refused = client.request::<Value>(write("too-late")).await.unwrap_err();
    let kube::Error::Service(refused) = refused else { panic!("{refused}") };
    assert_eq!(refused.downcast_ref(), Some(&FencedOut::Unanswered));
    assert_eq!(maps(&world).await, ["in-time"]);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_frozen_does_not_write_any_more() {
    let world = World::new();
    let link = Link::default();
    let election = world.election("a", &link);
    let monitor = election.monitor();
    let mut term = election.acquire().await;
    let leadership = term.leadership();
    let server = world.server.service();
    let client = ClientBuilder::new(server, "default").with_layer(&leadership.fence()).build();
    client.request::<Value>(write("before")).await.unwrap();

    // Nothing in the process runs between the jump and the questions.
    world.clock.jump(60 * SECOND);
    assert!(!leadership.still_valid());
    assert_eq!(leadership.remaining(), Duration::ZERO);
    assert!(monitor.check(46 * SECOND).is_ok());
    assert_eq!(
        monitor.check(44 * SECOND).unwrap_err().to_string(),
        "failed election to renew leadership on lease worker"
    );
    let refused = client.request::<Value>(write("after")).await.unwrap_err();
    let kube::Error::Service(refused) = refused else { panic!("{refused}") };
    assert_eq!(refused.downcast_ref(), Some(&FencedOut::Unsent));
    client
        .request::<Value>(Request::get("/api/v1/namespaces").body(Vec::new()).unwrap())
        .await
        .expect("reads pass");
    assert_eq!(maps(&world).await, ["before"]);

    let renewals = link.sent(&Method::PUT);
    assert_eq!(timeout(3 * SECOND, term.lost()).await, Ok(Lost::Expired));
    assert_eq!(link.sent(&Method::PUT), renewals, "it does not even try to renew");
    monitor.check(Duration::ZERO).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_else_took_is_lost_at_the_next_renewal() {
    let world = World::new();
    let mut term = world.election("a", &Link::default()).acquire().await;
    let patch = json!({ "spec": { "holderIdentity": "thief" } });
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/worker";
    let request = Request::patch(path)
        .header("content-type", "application/merge-patch+json")
        .body(patch.to_string().into_bytes())
        .unwrap();
    world.client(&Link::default()).request::<Value>(request).await.unwrap();
    let lost = timeout(3 * SECOND, term.lost()).await;
    assert_eq!(lost, Ok(Lost::Taken("thief".to_owned())));
    assert_eq!(world.lease().await["holderIdentity"], "thief");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_deleted_is_put_back_by_its_leader() {
    let world = World::new();
    let mut term = world.election("a", &Link::default()).acquire().await;
    let other = tokio::spawn(world.election("b", &Link::default()).acquire());
    sleep(5 * SECOND).await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/worker";
    let request = Request::delete(path).body(Vec::new()).unwrap();
    world.client(&Link::default()).request::<Value>(request).await.unwrap();
    assert_eq!(term.hold(sleep(60 * SECOND)).await, Ok(()));
    assert_eq!(world.lease().await["holderIdentity"], "a");
    assert!(!other.is_finished());
    other.abort();
}
