//! VolumeBinding finds volumes for the claims of a pod, and binds them.
//!
//! # What it does
//! Claims that have a volume hold the pod to nodes that can reach it. Claims of
//! a class with `volumeBindingMode: WaitForFirstConsumer` get one now: on each
//! node the smallest volume that suits the claim (class, size, access modes,
//! volume mode, attributes class, selector) and that the node can reach, or else
//! one that the class's provisioner can make there (`allowedTopologies`, and
//! storage that is left according to `CSIStorageCapacity`). The claims of generic
//! ephemeral volumes are treated the same, once they exist.
//!
//! When a node is chosen, volumes and claims are set aside; before the pod is
//! bound they are written (a volume's `claimRef`, or a claim's annotation
//! `volume.kubernetes.io/selected-node`) and the binding of the claims is waited
//! for.
//!
//! # Rejects or scores when
//! Rejects every node when a claim is missing, lost, being deleted or not the
//! pod's own (`persistentvolumeclaim "NAME" not found` and the like), or has no
//! volume and does not wait for a pod: `pod has unbound immediate
//! PersistentVolumeClaims`.
//!
//! Rejects a node for one or more of
//! - `node(s) didn't match PersistentVolume's node affinity`
//! - `node(s) didn't find available persistent volumes to bind`
//! - `node(s) did not have enough free storage`
//! - `node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)`
//!
//! Evictions change none of that. Left out for pods without claims.
//!
//! With a `shape`, scores how much of the volumes is asked for, or of the storage
//! that is left where they will be made, in the mean over storage classes.
//!
//! # Args
//! `VolumeBindingArgs`: `bindTimeoutSeconds` (600), how long binding may take;
//! `shape`, which is refused while the feature StorageCapacityScoring is off.
//!
//! # Requeue events
//! A claim of the pod comes or changes. A volume, class or capacity comes or
//! changes that its claims can use, a node that can reach its volumes. A pod
//! goes that had set aside volumes of the same class. The driver that provisions
//! a claim ceases to publish capacity. A node's in-tree plugins move to CSI.
//!
//! # Parity
//! As kube-scheduler v1.36, but for these. What is set aside counts for the pods
//! of all profiles; there each profile keeps its own account. Of equally small
//! volumes the first by name is taken, not any. A claim that a pod mounts twice
//! is bound once. What did not change is not written again. Pods hear of volumes that are set aside
//! no more; there they wait for the flush. A driver that ceases to publish
//! capacity concerns the pods whose claims it provisions, there pods with inline
//! volumes of it. Other hints look closer, too.

pub mod args;
mod binding;
mod hints;
mod needs;
mod plan;
mod reserve;
mod score;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steersman_api::node_info::NodeInfo;
use steersman_api::persistent_volume::PersistentVolume;
use steersman_api::persistent_volume_claim::PersistentVolumeClaim;
use steersman_api::pod::PodInfo;
use steersman_framework::assume::Assumed;
use steersman_framework::extensions::{CycleCtx, Extensions, Filter, PreFilter, PrepareCtx};
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;
use steersman_framework::signature::{Sign, Signable, SignatureBuilder};
use steersman_framework::verdict::{
    FilterVerdict, PluginError, PreFilterVerdict, RejectKind, Rejection,
};

use self::args::VolumeBindingArgs;
use self::needs::{Needs, View};
use self::plan::Plan;
use self::score::Shape;
use crate::pod_claims;

/// The plugin's name.
pub const NAME: &str = "VolumeBinding";

const REASON_IMMEDIATE: &str = "pod has unbound immediate PersistentVolumeClaims";

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    let points = PointSet::PRE_FILTER
        | PointSet::FILTER
        | PointSet::PRE_SCORE
        | PointSet::SCORE
        | PointSet::RESERVE
        | PointSet::PRE_BIND;
    Descriptor::with_args(NAME, points, |ctx, args: VolumeBindingArgs| {
        Ok(extensions(Arc::new(VolumeBinding::new(&args, ctx.shared.of()))))
    })
}

fn extensions(plugin: Arc<VolumeBinding>) -> Extensions {
    Extensions {
        pre_filter: Some(plugin.clone()),
        filter: Some(plugin.clone()),
        pre_score: Some(plugin.clone()),
        score: Some(plugin.clone()),
        reserve: Some(plugin.clone()),
        pre_bind: Some(plugin.clone()),
        events: Some(plugin.clone()),
        sign: Some(plugin),
        ..Extensions::default()
    }
}

struct VolumeBinding {
    bind_timeout: Duration,
    shape: Option<Shape>,
    /// What is set aside for pods that have a node and whose bindings the watch
    /// has not shown yet, of all profiles. The core calls one plugin at a time;
    /// the lock is never contended.
    aside: Arc<Mutex<Aside>>,
}

/// Volumes and claims as they will be when bindings under way are written.
#[derive(Default)]
struct Aside {
    volumes: Assumed<PersistentVolume>,
    claims: Assumed<PersistentVolumeClaim>,
}

impl VolumeBinding {
    fn new(args: &VolumeBindingArgs, aside: Arc<Mutex<Aside>>) -> Self {
        Self {
            bind_timeout: Duration::from_secs(args.bind_timeout_seconds.unsigned_abs()),
            shape: args.shape.as_deref().map(Shape::new),
            aside,
        }
    }

    /// What the pod needs, and on `node`, what it would get there. `None` for a
    /// pod that needs nothing.
    fn plan(ctx: &CycleCtx<'_>, node: &NodeInfo) -> Option<Result<Plan, Rejection>> {
        let needs = ctx.state.get::<Arc<Needs>>()?;
        Some(Plan::find(needs, &ctx.cluster.stores, node.node()).map_err(|reasons| Rejection {
            kind: RejectKind::UnschedulableAndUnresolvable,
            reasons,
        }))
    }
}

impl PreFilter for VolumeBinding {
    fn pre_filter(&self, ctx: &mut PrepareCtx<'_>) -> Result<PreFilterVerdict, PluginError> {
        if let Err(reason) = needs::check_claims(ctx.pod, &ctx.cluster.stores) {
            return Ok(PreFilterVerdict::Reject(Rejection::unresolvable(reason)));
        }
        if ctx.pod.claims().next().is_none() {
            return Ok(PreFilterVerdict::Skip);
        }
        let aside = self.aside.lock();
        let view = View { stores: &ctx.cluster.stores, aside: &aside };
        let Some(needs) = Needs::of(ctx.pod, view) else {
            return Ok(PreFilterVerdict::Reject(Rejection::unresolvable(REASON_IMMEDIATE)));
        };
        ctx.state.put(Arc::new(needs));
        Ok(PreFilterVerdict::Proceed)
    }
}

impl Filter for VolumeBinding {
    fn filter(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        Ok(match Self::plan(ctx, node) {
            Some(Err(rejection)) => FilterVerdict::Reject(rejection),
            Some(Ok(_)) | None => FilterVerdict::Fit,
        })
    }
}

impl Sign for VolumeBinding {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        pod_claims::sign(pod, signature)
    }
}

#[cfg(test)]
mod tests;
