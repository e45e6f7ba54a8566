//! NodeVolumeLimits keeps nodes from getting more volumes than they can attach.
//!
//! # What it does
//! A CSI driver says in the node's `CSINode` how many of its volumes can be
//! attached there. Counted are the volumes of the node's pods, each once however
//! many pods use it, and volumes that a `VolumeAttachment` says are attached
//! besides. A claim without a volume counts for the driver that will provision
//! one. Disks of in-tree plugins count for the CSI drivers that serve them now.
//!
//! # Rejects or scores when
//! The pod's volumes that the node does not have yet would exceed a driver's
//! limit: `node(s) exceed max volume count`, which evictions may change. A claim
//! that does not exist: `looking up PVC NS/NAME: persistentvolumeclaim "NAME" not
//! found`, which they cannot. Left out for pods without claims and such disks.
//!
//! # Args
//! None.
//!
//! # Requeue events
//! A pod goes that used volumes of one of the pod's drivers. A volume of one of
//! them is detached. A driver's limit grows or goes. A node comes that the pod
//! fits. A claim of the pod comes or changes, or its volume or class does.
//!
//! # Parity
//! As kube-scheduler v1.36, which also counts a volume twice that is attached
//! already and only the new pod uses. A pod of the node whose ephemeral volume is
//! not its own, or whose disk has a name that cannot be read, is not counted;
//! there it fails the cycle. There a new node counts only once it has a
//! `CSINode`, and departures and detachments of any driver bring pods back.

mod count;
mod hints;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use steersman_api::csi_node::CsiNode;
use steersman_api::key::ObjectKey;
use steersman_api::name::Name;
use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use steersman_framework::cluster::Stores;
use steersman_framework::extensions::{CycleCtx, Extensions, Filter, PreFilter, PrepareCtx};
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;
use steersman_framework::signature::{Sign, Signable, SignatureBuilder};
use steersman_framework::verdict::{FilterVerdict, PluginError, PreFilterVerdict, Rejection};

use self::count::{Counter, Uncountable, Volume, attached_volumes};
use crate::pod_claims;

/// The plugin's name.
pub const NAME: &str = "NodeVolumeLimits";

const REASON: &str = "node(s) exceed max volume count";

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    Descriptor::plain(NAME, PointSet::PRE_FILTER | PointSet::FILTER, |_| {
        let plugin = Arc::new(NodeVolumeLimits);
        Ok(Extensions {
            pre_filter: Some(plugin.clone()),
            filter: Some(plugin.clone()),
            events: Some(plugin.clone()),
            sign: Some(plugin),
            ..Extensions::default()
        })
    })
}

struct NodeVolumeLimits;

/// What is attached where, by node.
#[derive(Clone)]
struct Attached(Arc<BTreeMap<Name, BTreeSet<Volume>>>);

/// Whether `node` can take the pod's volumes besides those it has.
fn check(
    pod: &PodInfo,
    node: &NodeInfo,
    stores: &Stores,
    attached: Option<&BTreeSet<Volume>>,
) -> Result<FilterVerdict, PluginError> {
    let csi_node = stores.get::<CsiNode>(&ObjectKey::cluster(node.name()));
    let counter = Counter { stores, csi_node };
    let mut wanted = match counter.volumes_of_new(pod) {
        Ok(wanted) => wanted,
        Err(Uncountable::NoClaim(reason)) => {
            return Ok(FilterVerdict::Reject(Rejection::unresolvable(reason)));
        }
        Err(Uncountable::Broken(problem)) => return Err(PluginError(problem)),
    };
    let limit = |volume: &Volume| csi_node.and_then(|node| node.limit(&volume.driver));
    wanted.retain(|volume| limit(volume).is_some());
    if wanted.is_empty() {
        return Ok(FilterVerdict::Fit);
    }
    let mut present = BTreeSet::new();
    for other in node.pods() {
        present.extend(counter.volumes_of(other));
    }
    wanted.retain(|volume| !present.contains(volume));
    present.extend(attached.into_iter().flatten().cloned());
    let exceeds = |driver: &Name, limit: i64| {
        let of_driver = |volume: &&Volume| volume.driver == *driver;
        let count = wanted.iter().filter(of_driver).count();
        let total = count + present.iter().filter(of_driver).count();
        i64::try_from(total).is_ok_and(|total| total > limit)
    };
    let exceeded = wanted
        .iter()
        .any(|volume| limit(volume).is_some_and(|limit| exceeds(&volume.driver, limit)));
    Ok(match exceeded {
        true => FilterVerdict::Reject(Rejection::unschedulable(REASON)),
        false => FilterVerdict::Fit,
    })
}

impl PreFilter for NodeVolumeLimits {
    fn pre_filter(&self, ctx: &mut PrepareCtx<'_>) -> Result<PreFilterVerdict, PluginError> {
        if !count::may_count(ctx.pod) {
            return Ok(PreFilterVerdict::Skip);
        }
        ctx.state.put(Attached(Arc::new(attached_volumes(&ctx.cluster.stores))));
        Ok(PreFilterVerdict::Proceed)
    }
}

impl Filter for NodeVolumeLimits {
    fn filter(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        let attached = ctx.state.get::<Attached>().and_then(|all| all.0.get(node.name()));
        check(ctx.pod, node, &ctx.cluster.stores, attached)
    }
}

impl Sign for NodeVolumeLimits {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        pod_claims::sign(pod, signature)
    }
}

#[cfg(test)]
mod tests;
