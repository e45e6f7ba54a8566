use std::future::ready;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use serde_json::{Value, json};
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::node::Node;
use steersman_api::object::AnyObject;
use steersman_framework::cluster::Cluster;
use steersman_framework::condition::{Condition, Objects, Progress, WaitError};
use steersman_framework::extensions::{BindCtx, BoxFuture};
use steersman_framework::state::CycleState;
use steersman_framework::verdict::{PreBindVerdict, ReserveVerdict};
use steersman_framework::world::{ClusterWriter, WriteError};

use super::*;
use crate::test_volumes::{
    annotated, bound_claim, local_class, pod_with, stored, volume, waiting_class,
};

const SELECTED: &str = "volume.kubernetes.io/selected-node";

/// A pod's cycle as far as Reserve.
struct Cycle {
    pod: Arc<PodInfo>,
    state: CycleState,
}

impl Cycle {
    /// PreFilter, then Reserve on `node`.
    #[track_caller]
    fn reserve(bench: &Bench, name: &str, claims: &[&str], node: &str) -> Self {
        let pod = pod_with(name, claims).build();
        let mut state = CycleState::new();
        let mut ctx = PrepareCtx { pod: &pod, cluster: &bench.cluster, state: &mut state };
        let pre_filter = bench.plugin.pre_filter.as_ref().expect("PreFilter");
        let _ = pre_filter.pre_filter(&mut ctx).expect("PreFilter");
        let reserve = bench.plugin.reserve.as_ref().expect("Reserve");
        let verdict = reserve.reserve(&mut ctx, &node.into());
        assert_eq!(verdict, Ok(ReserveVerdict::Reserved));
        Self { pod, state }
    }

    fn unreserve(&self, bench: &Bench, node: &str) {
        let Self { pod, state } = self;
        let ctx = CycleCtx { pod, cluster: &bench.cluster, state };
        bench.plugin.reserve.as_ref().expect("Reserve").unreserve(&ctx, &node.into());
    }

    fn has_work(&self, bench: &Bench) -> bool {
        let Self { pod, state } = self;
        let ctx = CycleCtx { pod, cluster: &bench.cluster, state };
        bench.plugin.pre_bind.as_ref().expect("PreBind").has_work(&ctx, &"a".into())
    }

    #[track_caller]
    fn bind(&self, bench: &Bench, world: &World<'_>) -> Result<PreBindVerdict, PluginError> {
        let node = Name::new("a");
        let ctx = BindCtx { pod: &self.pod, node: &node, state: &self.state, world };
        let plugin = bench.plugin.pre_bind.as_ref().expect("PreBind");
        match plugin.pre_bind(ctx).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(verdict) => verdict,
            Poll::Pending => panic!("PreBind waits for something else than the world"),
        }
    }
}

/// The nodes that another pod with a claim fits.
#[track_caller]
fn check_fits(bench: &Bench, claim: &str, expected: &str) {
    let verdicts = bench.filter(&pod_with("other", &[claim]).build());
    let fits: Vec<&str> = verdicts.lines().filter_map(|line| line.strip_suffix(": fit")).collect();
    assert_eq!(fits.join(" "), expected, "{verdicts}");
}

fn local_bench() -> Bench {
    bench([
        of_class("c", "local"),
        of_class("d", "local"),
        local_class("local"),
        versioned(local_volume("pv", "z1"), "7"),
    ])
}

fn versioned(mut object: Value, version: &str) -> Value {
    object["metadata"]["resourceVersion"] = version.into();
    object
}

#[test]
fn volume_that_is_set_aside_is_taken_until_it_is_given_back() {
    let bench = local_bench();
    check_fits(&bench, "d", "a");
    let cycle = Cycle::reserve(&bench, "p", &["c"], "a");
    check_fits(&bench, "d", "");
    // The same claim may have it: it is kept for it.
    check_fits(&bench, "c", "a");
    cycle.unreserve(&bench, "a");
    check_fits(&bench, "d", "a");
    // Giving back again does not take it from whoever has it now.
    let _other = Cycle::reserve(&bench, "q", &["d"], "a");
    cycle.unreserve(&bench, "a");
    check_fits(&bench, "c", "");
}

#[test]
fn claim_that_is_set_aside_holds_to_its_node() {
    let bench = bench([of_class("c", "fast"), waiting_class("fast")]);
    check_fits(&bench, "c", "a b");
    let cycle = Cycle::reserve(&bench, "p", &["c"], "b");
    check_fits(&bench, "c", "b");
    cycle.unreserve(&bench, "b");
    check_fits(&bench, "c", "a b");
}

#[test]
fn what_was_written_shows_and_what_came_in_between_counts() {
    let mut bench = local_bench();
    let _cycle = Cycle::reserve(&bench, "p", &["c"], "a");
    bench.cluster.stores.set(stored(versioned(local_volume("pv", "z1"), "7")));
    check_fits(&bench, "d", "");
    // Somebody changed the volume: the write will be refused.
    bench.cluster.stores.set(stored(versioned(local_volume("pv", "z1"), "8")));
    check_fits(&bench, "d", "a");
}

#[test]
fn pod_with_bound_claims_needs_no_work() {
    let bench = bench([bound_claim("c", "pv"), volume("pv", json!({}))]);
    let cycle = Cycle::reserve(&bench, "p", &["c"], "a");
    assert!(!cycle.has_work(&bench));
    let world = World::new(&bench.cluster);
    assert_eq!(cycle.bind(&bench, &world), Ok(PreBindVerdict::Done));
    assert_eq!(world.written(), [""; 0]);
    let plain = Cycle::reserve(&bench, "plain", &[], "a");
    assert!(!plain.has_work(&bench));
}

#[test]
fn writes_the_volume_and_waits_for_its_claim() {
    let mut bench = local_bench();
    let cycle = Cycle::reserve(&bench, "p", &["c"], "a");
    assert!(cycle.has_work(&bench));
    let waiting = |bench: &Bench| {
        let world = World::new(&bench.cluster);
        let verdict = cycle.bind(bench, &world);
        (world.written(), verdict)
    };
    let timeout = Err(PluginError("binding volumes: context deadline exceeded".to_owned()));
    let (written, verdict) = waiting(&bench);
    assert_eq!(
        written,
        [
            "PersistentVolume pv: {\"metadata\":{\"annotations\":{\"pv.kubernetes.io/bound-by-controller\
          \":\"yes\"},\"resourceVersion\":\"7\"},\"spec\":{\"claimRef\":{\"apiVersion\":\"v1\",\"kind\":\
          \"PersistentVolumeClaim\",\"name\":\"c\",\"namespace\":\"default\",\"uid\":\"uid-c\"}}}"
        ]
    );
    // The write has not been seen yet.
    assert_eq!(verdict, timeout);
    let mut pv = versioned(local_volume("pv", "z1"), "8");
    pv["spec"]["claimRef"] = json!({"namespace": "default", "name": "c", "uid": "uid-c"});
    bench.cluster.stores.set(stored(pv));
    assert_eq!(waiting(&bench).1, timeout);
    bench.cluster.stores.set(stored(bound_claim("c", "pv")));
    assert_eq!(waiting(&bench).1, Ok(PreBindVerdict::Done));
}

#[test]
fn selects_the_node_and_waits_for_the_volume() {
    let claim = || versioned(of_class("c", "fast"), "3");
    let mut bench = bench([claim(), waiting_class("fast")]);
    let cycle = Cycle::reserve(&bench, "p", &["c"], "a");
    let bind = |bench: &Bench| cycle.bind(bench, &World::new(&bench.cluster));
    let world = World::new(&bench.cluster);
    let timeout = Err(PluginError("binding volumes: context deadline exceeded".to_owned()));
    assert_eq!(cycle.bind(&bench, &world), timeout);
    assert_eq!(
        world.written(),
        ["PersistentVolumeClaim default/c: {\"metadata\":{\"annotations\":\
          {\"volume.kubernetes.io/selected-node\":\"a\"},\"resourceVersion\":\"3\"}}"]
    );
    let selected = || annotated(versioned(of_class("c", "fast"), "4"), SELECTED, "a");
    bench.cluster.stores.set(stored(selected()));
    assert_eq!(bind(&bench), timeout);
    let mut bound = annotated(selected(), "pv.kubernetes.io/bind-completed", "yes");
    bound["spec"]["volumeName"] = "made".into();
    bench.cluster.stores.set(stored(bound));
    // The volume has not been seen yet.
    assert_eq!(bind(&bench), timeout);
    bench.cluster.stores.set(stored(local_volume("made", "z1")));
    assert_eq!(bind(&bench), Ok(PreBindVerdict::Done));
}

#[track_caller]
fn check_fails(bench: &Bench, cycle: &Cycle, expected: &str) {
    let error = PluginError(format!("binding volumes: {expected}"));
    assert_eq!(cycle.bind(bench, &World::new(&bench.cluster)), Err(error));
}

#[test]
fn fails_when_the_volume_will_not_come() {
    let mut bench = bench([of_class("c", "fast"), waiting_class("fast")]);
    let cycle = Cycle::reserve(&bench, "p", &["c"], "a");
    let selected = || annotated(of_class("c", "fast"), SELECTED, "a");
    // The provisioner gave up.
    check_fails(&bench, &cycle, "provisioning failed for PVC \"c\"");
    let mut elsewhere = selected();
    elsewhere["spec"]["volumeName"] = "made".into();
    bench.cluster.stores.set(stored(elsewhere));
    bench.cluster.stores.set(stored(local_volume("made", "z2")));
    check_fails(&bench, &cycle, "pv \"made\" node affinity doesn't match node \"a\"");
    bench.cluster.stores.remove("PersistentVolumeClaim", &ObjectKey::namespaced("default", "c"));
    check_fails(&bench, &cycle, "pvc default/c does not exist any more");
    let gone = World { gone: true, ..World::new(&bench.cluster) };
    let error = PluginError("binding volumes: pod does not exist any more".to_owned());
    assert_eq!(cycle.bind(&bench, &gone), Err(error));
}

#[test]
fn fails_when_the_volume_is_taken_away() {
    let mut bench = local_bench();
    let cycle = Cycle::reserve(&bench, "p", &["c"], "a");
    bench.cluster.stores.set(stored(versioned(local_volume("pv", "z1"), "9")));
    check_fails(&bench, &cycle, "ClaimRef got reset for pv \"pv\"");
    bench.cluster.stores.remove("PersistentVolume", &ObjectKey::cluster("pv"));
    check_fails(&bench, &cycle, "pv pv does not exist any more");
}

#[test]
fn refused_write_ends_the_binding() {
    let bench = local_bench();
    let cycle = Cycle::reserve(&bench, "p", &["c"], "a");
    let world = World {
        refuses: Some(WriteError::Conflict("changed".to_owned())),
        ..World::new(&bench.cluster)
    };
    let error = "binding volumes: writing persistentvolume pv: changed";
    assert_eq!(cycle.bind(&bench, &world), Err(PluginError(error.to_owned())));
}

#[test]
fn volume_that_the_user_bound_in_full_is_not_written() {
    let mut kept = local_volume("pv", "z1");
    kept["spec"]["claimRef"] = json!({"namespace": "default", "name": "c", "uid": "uid-c"});
    let bench = bench([of_class("c", "local"), local_class("local"), kept]);
    let cycle = Cycle::reserve(&bench, "p", &["c"], "a");
    assert!(cycle.has_work(&bench));
    let world = World::new(&bench.cluster);
    let timeout = PluginError("binding volumes: context deadline exceeded".to_owned());
    assert_eq!(cycle.bind(&bench, &world), Err(timeout));
    assert_eq!(world.written(), [""; 0]);
}

/// A world that shows a cluster, takes notes of patches, and has no time to
/// wait.
struct World<'a> {
    cluster: &'a Cluster,
    patches: Mutex<Vec<String>>,
    refuses: Option<WriteError>,
    gone: bool,
}

impl<'a> World<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, patches: Mutex::default(), refuses: None, gone: false }
    }

    fn written(&self) -> Vec<String> {
        self.patches.lock().clone()
    }
}

impl ClusterWriter for World<'_> {
    fn bind<'a>(
        &'a self,
        _: &'a ObjectKey,
        _: &'a PodUid,
        _: &'a Name,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        panic!("this plugin binds no pods")
    }

    fn patch<'a>(
        &'a self,
        resource: &'static str,
        key: &'a ObjectKey,
        patch: &'a Value,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        self.patches.lock().push(format!("{resource} {key}: {patch}"));
        Box::pin(ready(self.refuses.clone().map_or(Ok(()), Err)))
    }

    fn wait<'a>(
        &'a self,
        condition: &'a dyn Condition,
        _: Duration,
    ) -> BoxFuture<'a, Result<(), WaitError>> {
        Box::pin(ready(match condition.check(self) {
            Progress::Done => Ok(()),
            Progress::Waiting => Err(WaitError::TimedOut),
            Progress::Failed(why) => Err(WaitError::Failed(why)),
        }))
    }
}

impl Objects for World<'_> {
    fn object(&self, resource: &'static str, key: &ObjectKey) -> Option<AnyObject> {
        let stores = &self.cluster.stores;
        match resource {
            "PersistentVolume" => stores.get::<PersistentVolume>(key).cloned().map(AnyObject::new),
            "PersistentVolumeClaim" => {
                stores.get::<PersistentVolumeClaim>(key).cloned().map(AnyObject::new)
            }
            _ => None,
        }
    }

    fn node(&self, name: &Name) -> Option<Arc<Node>> {
        Some(self.cluster.nodes().by_name(name)?.node().clone())
    }

    fn is_gone(&self, _: &PodUid) -> bool {
        self.gone
    }
}
