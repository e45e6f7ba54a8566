//! VolumeRestrictions keeps pods apart that cannot use a volume together.
//!
//! # What it does
//! A claim with the access mode `ReadWriteOncePod` is for one pod in the whole
//! cluster. A disk that pods name outright (GCE, EBS, iSCSI, RBD) is used by
//! several pods of a node only as long as all of them read it; an EBS volume
//! never is.
//!
//! # Rejects or scores when
//! - A claim does not exist: `persistentvolumeclaim "NAME" not found`, on every
//!   node, and evictions do not help.
//! - A pod of the node uses one of the pod's disks: `node(s) had no available
//!   disk`.
//! - A pod anywhere uses one of the pod's `ReadWriteOncePod` claims: `node(s)
//!   unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode
//!   already in-use by another pod`, on every node; evicting that pod helps.
//!
//! Left out for pods with neither such a disk nor such a claim in use.
//!
//! # Args
//! None.
//!
//! # Requeue events
//! A pod goes that uses one of the pod's claims or a disk in conflict with its
//! disks. A node comes, for pods with disks, or goes, for pods with claims: with
//! it go the users of a claim. A claim of the pod comes, or another
//! one of its name is seen in its place.
//!
//! # Parity
//! As kube-scheduler v1.36, but for these. A pod of another namespace that is
//! evicted in thought, or is gone, does not free a claim because it uses one of
//! the same name. A disk is freed by pods of other namespaces too, a new node
//! does not bring back pods that wait for a claim, and one that goes does.

use std::collections::BTreeSet;
use std::sync::Arc;

use steersman_api::key::ObjectKey;
use steersman_api::name::Name;
use steersman_api::node_info::NodeInfo;
use steersman_api::object::{AnyObject, StoredObject};
use steersman_api::persistent_volume_claim::PersistentVolumeClaim;
use steersman_api::pod::PodInfo;
use steersman_framework::cluster::Cluster;
use steersman_framework::events::{
    ActionType, Change, ClusterEvent, EnqueueExtensions, EventResource, Hint, HintCtx,
};
use steersman_framework::extensions::{
    CycleCtx, Extensions, Filter, PreFilter, PreFilterExtensions, PrepareCtx,
};
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;
use steersman_framework::signature::{Sign, Signable, SignatureBuilder};
use steersman_framework::verdict::{FilterVerdict, PluginError, PreFilterVerdict, Rejection};

use crate::pod_claims;

/// The plugin's name.
pub const NAME: &str = "VolumeRestrictions";

const REASON_DISK: &str = "node(s) had no available disk";
const REASON_CLAIM: &str = "node(s) unavailable due to PersistentVolumeClaim with \
                            ReadWriteOncePod access mode already in-use by another pod";
const ONE_POD: &str = "ReadWriteOncePod";

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    Descriptor::plain(NAME, PointSet::PRE_FILTER | PointSet::FILTER, |_| {
        let plugin = Arc::new(VolumeRestrictions);
        Ok(Extensions {
            pre_filter: Some(plugin.clone()),
            filter: Some(plugin.clone()),
            events: Some(plugin.clone()),
            sign: Some(plugin),
            ..Extensions::default()
        })
    })
}

struct VolumeRestrictions;

/// The pod's `ReadWriteOncePod` claims.
#[derive(Clone)]
struct OnePodClaims {
    keys: Arc<BTreeSet<ObjectKey>>,
    /// How often pods use them.
    uses: i64,
}

impl OnePodClaims {
    fn uses_by(&self, pod: &PodInfo) -> i64 {
        let used = named_claims(pod).filter(|key| self.keys.contains(key));
        i64::try_from(used.count()).unwrap_or(i64::MAX)
    }
}

/// The claims that a pod names; those of ephemeral volumes are its own anyway.
fn named_claims(pod: &PodInfo) -> impl Iterator<Item = ObjectKey> {
    pod.claims().filter(|used| !used.ephemeral).map(|used| used.key)
}

/// How many of `claims` are in use.
fn count_in_use(claims: &BTreeSet<ObjectKey>, cluster: &Cluster) -> i64 {
    let in_use = claims.iter().filter(|claim| cluster.claims().uses(claim) > 0);
    i64::try_from(in_use.count()).unwrap_or(i64::MAX)
}

/// Whether a disk of `pod` cannot be used beside one of `other`.
fn disks_conflict(pod: &PodInfo, other: &PodInfo) -> bool {
    pod.disks().any(|disk| other.disks().any(|theirs| disk.conflicts_with(theirs)))
}

fn has_exclusive_disks(pod: &PodInfo) -> bool {
    pod.disks().any(steersman_api::disk::Disk::can_conflict)
}

impl PreFilter for VolumeRestrictions {
    fn pre_filter(&self, ctx: &mut PrepareCtx<'_>) -> Result<PreFilterVerdict, PluginError> {
        let mut keys = BTreeSet::new();
        for key in named_claims(ctx.pod) {
            let Some(claim) = ctx.cluster.stores.get::<PersistentVolumeClaim>(&key) else {
                let reason = pod_claims::not_found(&key);
                return Ok(PreFilterVerdict::Reject(Rejection::unresolvable(reason)));
            };
            if claim.access_modes.iter().any(|mode| *mode == ONE_POD) {
                keys.insert(key);
            }
        }
        let uses = count_in_use(&keys, ctx.cluster);
        if uses == 0 && !has_exclusive_disks(ctx.pod) {
            return Ok(PreFilterVerdict::Skip);
        }
        ctx.state.put(OnePodClaims { keys: Arc::new(keys), uses });
        Ok(PreFilterVerdict::Proceed)
    }

    fn extensions(&self) -> Option<&dyn PreFilterExtensions> {
        Some(self)
    }
}

impl PreFilterExtensions for VolumeRestrictions {
    fn add_pod(
        &self,
        ctx: &mut PrepareCtx<'_>,
        added: &PodInfo,
        _: &NodeInfo,
    ) -> Result<(), PluginError> {
        if let Some(claims) = ctx.state.get_mut::<OnePodClaims>() {
            claims.uses += claims.uses_by(added);
        }
        Ok(())
    }

    fn remove_pod(
        &self,
        ctx: &mut PrepareCtx<'_>,
        removed: &PodInfo,
        _: &NodeInfo,
    ) -> Result<(), PluginError> {
        if let Some(claims) = ctx.state.get_mut::<OnePodClaims>() {
            claims.uses -= claims.uses_by(removed);
        }
        Ok(())
    }
}

impl Filter for VolumeRestrictions {
    fn filter(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        let reason = if node.pods().iter().any(|other| disks_conflict(ctx.pod, other)) {
            REASON_DISK
        } else if ctx.state.get::<OnePodClaims>().is_some_and(|claims| claims.uses > 0) {
            REASON_CLAIM
        } else {
            return Ok(FilterVerdict::Fit);
        };
        Ok(FilterVerdict::Reject(Rejection::unschedulable(reason)))
    }
}

impl EnqueueExtensions for VolumeRestrictions {
    fn events(&self) -> Vec<ClusterEvent> {
        let claim = EventResource(PersistentVolumeClaim::RESOURCE);
        vec![
            ClusterEvent::new(EventResource::ASSIGNED_POD, ActionType::DELETE),
            ClusterEvent::new(EventResource::NODE, ActionType::ADD | ActionType::DELETE),
            ClusterEvent::new(claim, ActionType::ADD | ActionType::UPDATE_OTHER),
        ]
    }

    fn hint(&self, ctx: &HintCtx<'_>, change: &Change) -> Result<Hint, PluginError> {
        Ok(Hint::queue_if(match change {
            Change::AssignedPod { old: Some(gone), .. } => {
                disks_conflict(ctx.pod, gone)
                    || named_claims(ctx.pod).any(|key| named_claims(gone).any(|used| used == key))
            }
            // Its pods, and their claims, went with it.
            Change::Node { new: None, .. } => named_claims(ctx.pod).next().is_some(),
            Change::Node { .. } => has_exclusive_disks(ctx.pod),
            Change::Object { old, new: Some(new) } => {
                // Another claim of that name, when its predecessor's deletion
                // was missed.
                modes(old.as_ref()) != modes(Some(new)) && pod_claims::uses(ctx.pod, new.key())
            }
            _ => true,
        }))
    }
}

fn modes(claim: Option<&AnyObject>) -> Option<&[Name]> {
    Some(&claim?.get::<PersistentVolumeClaim>()?.access_modes)
}

impl Sign for VolumeRestrictions {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        pod_claims::sign(pod, signature)
    }
}

#[cfg(test)]
mod tests;
