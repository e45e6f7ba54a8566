//! Three replicas under leader election, and the one that leads is killed, frozen
//! and cut off again and again while pods arrive.
//!
//! Who bound a pod is known from the proxy that the request came through, and when
//! from the resource version that the pod got by it. Leases have versions from the
//! same sequence. So what the API server did proves by itself that nobody binds
//! who does not lead, whatever clocks and processes did.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use steersman_apiserver::{ApiServer, Config};

use crate::cluster::{Audit, create_nodes, create_pods, within};
use crate::process::Scratch;
use crate::proxy::{LeaseWrite, Random};
use crate::replica::{Replica, TIMING};

const SEED: u64 = 1;
const N_REPLICAS: usize = 3;
/// Of 100 requests, how many something goes wrong with besides.
const PERCENT: u64 = 3;
/// Pods that arrive during one trouble.
const PODS: usize = 60;
/// Pods of a trouble that arrive when it is over.
const LATE_PODS: usize = 10;
/// Of `TIMING`.
const LEASE: Duration = Duration::from_secs(4);
/// One retry of a candidate: the retry period, and up to 1.2 times as much by
/// chance. A candidate's look at the lock may come so much after the renewal that
/// it sees.
const RETRY: Duration = Duration::from_millis(1_100);
/// What a machine that is busy with other tests may add: two processes and the
/// server have to be woken, and a request may be refused by the proxy. How long
/// takeovers take exactly is tested in virtual time, in `leader-election`.
const MARGIN: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_secs(30);

/// What happens to whoever leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// The process is killed and another one started in its place.
    Kill,
    /// The process is stopped until another leads, and goes on.
    Freeze,
    /// All connections break until another leads.
    Cut,
    /// All connections break for less than the renew deadline.
    Blink,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_three_replicas_only_the_leader_binds_whatever_happens_to_it() {
    use Trouble::{Blink, Cut, Freeze, Kill};

    let mut random = Random(SEED);
    let mut troubles = [Kill, Kill, Freeze, Freeze, Cut, Cut, Blink, Blink];
    for n in (1..troubles.len()).rev() {
        troubles.swap(n, random.below(n as u64 + 1) as usize);
    }
    let n_pods = PODS * troubles.len();
    let mut world = World::start(random, n_pods).await;
    let watching = tokio::spawn({
        let audit = Arc::clone(&world.audit);
        async move { audit.watch(n_pods).await }
    });
    let all = async {
        world.next_leader("").await;
        for (n, trouble) in troubles.into_iter().enumerate() {
            world.suffer(trouble, n * PODS..(n + 1) * PODS).await;
        }
        watching.await.expect("the watch goes on");
    };
    let in_time = tokio::time::timeout(Duration::from_secs(150), all).await.is_ok();
    assert!(in_time, "{} of {n_pods} pods were bound in time", world.audit.n_bound());

    world.audit.check(n_pods, 0).await;
    world.check_binders(n_pods);
    let expected = troubles.iter().filter(|trouble| **trouble != Blink).count();
    world.check_takeovers(expected);
}

struct World {
    client: Client,
    audit: Arc<Audit>,
    replicas: Vec<Replica>,
    random: Random,
    /// Dropped last: the replicas write there.
    _scratch: Scratch,
}

impl World {
    async fn start(mut random: Random, n_pods: usize) -> Self {
        let scratch = Scratch::new("ha");
        let resources = steersman_apikinds::resources();
        let server = ApiServer::new(Config { resources, ..Config::default() });
        let client = Client::new(server.service(), "default");
        create_nodes(&client, n_pods).await;
        let mut replicas = Vec::new();
        for n in 0..N_REPLICAS {
            let seed = random.below(u64::MAX);
            let name = format!("replica{n}");
            let faults = (seed, PERCENT);
            replicas.push(Replica::start(&server, &scratch, &name, faults, &TIMING).await);
        }
        let audit = Arc::new(Audit::new(&client));
        Self { client, audit, replicas, random, _scratch: scratch }
    }

    /// Lets the leader suffer while the pods of the range arrive.
    async fn suffer(&mut self, trouble: Trouble, pods: Range<usize>) {
        let (leader, holder) = self.living_leader().await;
        if trouble == Trouble::Freeze {
            // A request that passed the fence before the process was frozen may
            // leave it afterwards: for that there is time between the renew
            // deadline and the lease duration. Here there is none under way.
            within(PATIENCE, "all pods to be bound", async || self.audit.n_bound() == pods.start)
                .await;
            self.replicas[leader].signal("-STOP");
        }
        let late = pods.end - LATE_PODS..pods.end;
        let seed = self.random.below(u64::MAX);
        let arrivals = tokio::spawn(arrive(self.client.clone(), pods.start..late.start, seed));
        // Real time: the trouble begins at some moment of the scheduler's work.
        tokio::time::sleep(Duration::from_millis(self.random.below(1_000))).await;
        match trouble {
            Trouble::Kill => {
                self.replicas[leader].replace();
                self.next_leader(&holder).await;
                create_pods(&self.client, late).await;
            }
            Trouble::Freeze => self.wake(leader, &holder, late).await,
            Trouble::Cut => {
                self.replicas[leader].proxy.cut();
                self.next_leader(&holder).await;
                self.replicas[leader].proxy.heal();
                create_pods(&self.client, late).await;
                self.replicas[leader].gives_up().await;
                self.replicas[leader].replace();
            }
            Trouble::Blink => {
                self.replicas[leader].proxy.cut();
                let time = Duration::from_millis(200 + self.random.below(1_000));
                // Real time: an outage has a length.
                tokio::time::sleep(time).await;
                self.replicas[leader].proxy.heal();
                create_pods(&self.client, late).await;
            }
        }
        arrivals.await.expect("the pods are created");
    }

    /// Lets a frozen replica go on when another leads. It finds pods that wait
    /// for a node, those that it missed and those that come just then, and must
    /// not touch them.
    async fn wake(&mut self, frozen: usize, holder: &str, late: Range<usize>) {
        self.next_leader(holder).await;
        let asked = self.replicas[frozen].proxy.counts().bindings_asked;
        let wake = async { self.replicas[frozen].signal("-CONT") };
        tokio::join!(create_pods(&self.client, late), wake);
        self.replicas[frozen].gives_up().await;
        let asked = self.replicas[frozen].proxy.counts().bindings_asked - asked;
        assert_eq!(asked, 0, "{} wakes up and binds", self.replicas[frozen].name);
        self.replicas[frozen].replace();
    }

    /// The replica that leads, and as whom. What ended is started anew before.
    async fn living_leader(&mut self) -> (usize, String) {
        loop {
            let (leader, holder) = self.leader().expect("somebody led already");
            if !self.revive().contains(&leader) {
                return (leader, holder);
            }
            // The lock still names the process that ended, and the one in its
            // place leads no more than the others.
            self.next_leader(&holder).await;
        }
    }

    /// On a machine that stands still for seconds a replica may lose its lease
    /// without our doing, and ends, as it should. Returns those.
    fn revive(&mut self) -> Vec<usize> {
        let mut revived = Vec::new();
        for (n, replica) in self.replicas.iter_mut().enumerate() {
            if let Some(with_success) = replica.ended() {
                assert!(!with_success, "{} ended without a reason", replica.name);
                replica.replace();
                revived.push(n);
            }
        }
        revived
    }

    /// All writes of the lock in order, with the replica that each one is of.
    fn writes(&self) -> Vec<(usize, LeaseWrite)> {
        let of = |(n, replica): (usize, &Replica)| {
            replica.proxy.counts().leases.into_iter().map(move |write| (n, write))
        };
        let mut writes: Vec<_> = self.replicas.iter().enumerate().flat_map(of).collect();
        writes.sort_by_key(|(_, write)| write.revision);
        writes
    }

    /// The replica that wrote the lock last, and as whom.
    fn leader(&self) -> Option<(usize, String)> {
        self.writes().pop().map(|(replica, write)| (replica, write.holder))
    }

    /// Waits until somebody else holds the lock.
    async fn next_leader(&self, old: &str) {
        within(PATIENCE, "another leader", async || {
            self.leader().is_some_and(|(_, holder)| holder != old)
        })
        .await;
    }

    /// Checks that each pod was bound once, by the replica that had written the
    /// lock last before.
    fn check_binders(&self, n_pods: usize) {
        let writes = self.writes();
        assert!(writes.iter().all(|(_, write)| !write.holder.is_empty()), "nobody resigned");
        let mut binders: BTreeMap<String, usize> = BTreeMap::new();
        for (n, replica) in self.replicas.iter().enumerate() {
            for (path, times) in replica.proxy.counts().bound {
                let pod = path.trim_end_matches("/binding").rsplit('/').next().unwrap_or_default();
                assert_eq!(times, 1, "{pod} was bound {times} times by {}", replica.name);
                let before = binders.insert(pod.to_owned(), n);
                assert_eq!(before, None, "{pod} was bound again by {}", replica.name);
            }
        }
        assert_eq!(binders.len(), n_pods);
        let mut leaders = BTreeSet::new();
        for (pod, placement) in self.audit.placements() {
            let lock = writes.iter().rev().find(|(_, w)| w.revision < placement.revision);
            let (leader, write) = lock.expect("nobody binds before somebody leads");
            assert_eq!(
                binders.get(&pod),
                Some(leader),
                "{pod} was bound at {} while {} led since {}",
                placement.revision,
                write.holder,
                write.revision
            );
            leaders.insert(&write.holder);
        }
        assert!(leaders.len() > 2, "only {leaders:?} ever bound anything");
    }

    /// Checks how long nobody renewed the lock before another took it: long enough
    /// for the old leader to know that it is none, and not much longer.
    fn check_takeovers(&self, expected: usize) {
        let mut takeovers = Vec::new();
        for pair in self.writes().windows(2) {
            let ((_, old), (_, new)) = (&pair[0], &pair[1]);
            if old.holder != new.holder {
                // From before the last renewal to after the takeover, and what
                // is surely within: an answer may be late.
                takeovers.push((new.answered - old.asked, new.asked - old.answered));
            }
        }
        assert!(takeovers.len() >= expected, "{} takeovers", takeovers.len());
        for (most, least) in &takeovers {
            assert!(*most >= LEASE, "the lease was taken after {most:?}: {takeovers:?}");
            let limit = LEASE + RETRY + MARGIN;
            assert!(*least < limit, "a takeover took {least:?}: {takeovers:?}");
        }
    }
}

/// Creates pods over some seconds, a few at a time.
async fn arrive(client: Client, pods: Range<usize>, seed: u64) {
    let mut random = Random(seed);
    for start in pods.clone().step_by(5) {
        create_pods(&client, start..(start + 5).min(pods.end)).await;
        // Real time: pods arrive while things happen to processes.
        tokio::time::sleep(Duration::from_millis(random.below(400))).await;
    }
}
