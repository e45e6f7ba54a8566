//! The controllers: for each, which changes concern it and what it plans.
//!
//! A plan is a pure function of the cluster as last seen and the time. The
//! engine carries plans out, one at a time for one object.

mod budget;
mod daemon_set;
mod deployment;
mod history;
mod job;
mod node_lifecycle;
mod pod_gc;
mod replica_set;
mod service_account;
mod stateful_set;
pub(crate) mod storage;
mod taint_eviction;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;

use crate::cluster::{Change, Key, Seen, World, controller_of};
use crate::engine::Task;
use crate::engine::plan::{Plan, View};
use crate::node;

/// Who looks at an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controller {
    /// Runs the pods of a node.
    Kubelet,
    /// Posts a node's status.
    NodeStatus,
    /// Renews a node's lease.
    Heartbeat,
    /// Watches nodes and taints them.
    NodeLifecycle,
    /// Evicts pods from tainted nodes.
    TaintEviction,
    /// Removes pods of nodes that are gone.
    PodGc,
    /// Rolls deployments out.
    Deployment,
    /// Keeps the number of pods.
    ReplicaSet,
    /// Keeps a pod on each node.
    DaemonSet,
    /// Keeps numbered pods.
    StatefulSet,
    /// Runs pods to their end.
    Job,
    /// Counts what may be disrupted.
    Budget,
    /// Gives each namespace its default account.
    ServiceAccount,
    /// Finds volumes for claims.
    Claim,
    /// Keeps the phases of volumes, and reclaims them.
    Volume,
    /// Makes volumes.
    Provisioner,
    /// Keeps claims that are used.
    ClaimProtection,
    /// Keeps volumes that are used.
    VolumeProtection,
    /// Makes the claims of ephemeral volumes.
    EphemeralVolume,
}

type PlanFn = fn(View<'_>, &Key) -> Plan;
type WakeFn = fn(&World, &Seen, &mut dyn FnMut(Key));

const ROWS: [(Controller, PlanFn, WakeFn); 19] = [
    (Controller::Kubelet, node::kubelet::plan, node::kubelet::wake),
    (Controller::NodeStatus, node::status::plan, node::status::wake),
    (Controller::Heartbeat, node::heartbeat::plan, node::heartbeat::wake),
    (Controller::NodeLifecycle, node_lifecycle::plan, node_lifecycle::wake),
    (Controller::TaintEviction, taint_eviction::plan, taint_eviction::wake),
    (Controller::PodGc, pod_gc::plan, pod_gc::wake),
    (Controller::Deployment, deployment::plan, deployment::wake),
    (Controller::ReplicaSet, replica_set::plan, replica_set::wake),
    (Controller::DaemonSet, daemon_set::plan, daemon_set::wake),
    (Controller::StatefulSet, stateful_set::plan, stateful_set::wake),
    (Controller::Job, job::plan, job::wake),
    (Controller::Budget, budget::plan, budget::wake),
    (Controller::ServiceAccount, service_account::plan, service_account::wake),
    (Controller::Claim, storage::claim::plan, storage::claim::wake),
    (Controller::Volume, storage::volume::plan, storage::volume::wake),
    (Controller::Provisioner, storage::provisioner::plan, storage::provisioner::wake),
    (Controller::ClaimProtection, storage::protection::plan_claim, storage::protection::wake_claim),
    (
        Controller::VolumeProtection,
        storage::protection::plan_volume,
        storage::protection::wake_volume,
    ),
    (Controller::EphemeralVolume, storage::ephemeral::plan, storage::ephemeral::wake),
];

impl Controller {
    /// What it plans for an object.
    pub(crate) fn plan(self, view: View<'_>, key: &Key) -> Plan {
        let row = ROWS.iter().find(|(controller, ..)| *controller == self);
        let (_, plan, _) = row.expect("every controller has a row");
        plan(view, key)
    }

    /// The program that it is part of in a real cluster.
    pub(crate) fn agent(self) -> &'static str {
        match self {
            Self::Kubelet | Self::NodeStatus | Self::Heartbeat => "kubelet",
            _ => "kube-controller-manager",
        }
    }

    /// How long it waits between two plans for one object: those that count
    /// many pods do not count again for each of them.
    pub(crate) fn pause(self) -> Option<SignedDuration> {
        match self {
            Self::Deployment
            | Self::ReplicaSet
            | Self::DaemonSet
            | Self::StatefulSet
            | Self::Job
            | Self::Budget => Some(SignedDuration::from_millis(50)),
            Self::Kubelet
            | Self::NodeStatus
            | Self::Heartbeat
            | Self::NodeLifecycle
            | Self::TaintEviction
            | Self::PodGc
            | Self::ServiceAccount
            | Self::Claim
            | Self::Volume
            | Self::Provisioner
            | Self::ClaimProtection
            | Self::VolumeProtection
            | Self::EphemeralVolume => None,
        }
    }
}

/// Finds out whom a change concerns.
pub(crate) fn wake(world: &World, seen: &Seen, wake: &mut dyn FnMut(Task)) {
    for (controller, _, concerns) in ROWS {
        concerns(world, seen, &mut |key| wake(Task { controller, key }));
    }
}

/// The keys of the controllers of that kind which a pod has or had.
fn pod_owners<'a>(change: &'a Change<Pod>, kind: &'a str) -> impl Iterator<Item = Key> + 'a {
    change.both().filter_map(move |pod| {
        let owner = controller_of(&pod.metadata).filter(|owner| owner.kind == kind)?;
        Some(Key::new(pod.metadata.namespace.clone().unwrap_or_default(), owner.name.clone()))
    })
}

/// Whether nobody controls the pod now: somebody may want to adopt it.
fn is_orphan(change: &Change<Pod>) -> bool {
    change.new.as_ref().is_some_and(|pod| controller_of(&pod.metadata).is_none())
}

#[cfg(test)]
pub(crate) mod bench;
