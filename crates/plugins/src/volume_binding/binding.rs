//! Writing what was set aside, and waiting until claims are bound.

use serde_json::{Value, json};
use steersman_api::csi_node::CsiNode;
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::node::Node;
use steersman_api::object::StoredObject;
use steersman_api::persistent_volume::{BOUND_BY_CONTROLLER, PersistentVolume};
use steersman_api::persistent_volume_claim::{PersistentVolumeClaim, SELECTED_NODE};
use steersman_framework::condition::{Condition, Objects, Progress};
use steersman_framework::extensions::{BindCtx, BoxFuture, CycleCtx, PreBind};
use steersman_framework::verdict::{PluginError, PreBindVerdict};

use super::VolumeBinding;
use super::needs::BoundVolume;
use super::reserve::{Binding, Provision, Reservation};
use crate::csi_migration::translated_affinity;

impl PreBind for VolumeBinding {
    fn has_work(&self, ctx: &CycleCtx<'_>, _: &Name) -> bool {
        ctx.state.get::<Reservation>().is_some_and(|reservation| !reservation.is_empty())
    }

    fn pre_bind<'a>(
        &'a self,
        ctx: BindCtx<'a>,
    ) -> BoxFuture<'a, Result<PreBindVerdict, PluginError>> {
        Box::pin(async move {
            let Some(reservation) = ctx.state.get::<Reservation>().filter(|r| !r.is_empty()) else {
                return Ok(PreBindVerdict::Done);
            };
            write(reservation, &ctx).await?;
            let bound = AllBound { reservation, node: ctx.node, pod: &ctx.pod.uid };
            let waited = ctx.world.wait(&bound, self.bind_timeout).await;
            waited.map_err(|error| PluginError(format!("binding volumes: {error}")))?;
            Ok(PreBindVerdict::Done)
        })
    }
}

/// Writes volumes, then claims. Each write is refused when the object is not
/// the one any more that the choice was made from.
async fn write(reservation: &Reservation, ctx: &BindCtx<'_>) -> Result<(), PluginError> {
    let refused = |what: &str, key: &ObjectKey, error| {
        PluginError(format!("binding volumes: writing {what} {key}: {error}"))
    };
    for binding in reservation.bindings.iter().filter(|binding| binding.volume.differs()) {
        let (patch, key) = (volume_patch(binding), &binding.volume.base.key);
        let written = ctx.world.patch(PersistentVolume::RESOURCE, key, &patch).await;
        written.map_err(|error| refused("persistentvolume", key, error))?;
    }
    for provision in reservation.provisions.iter().filter(|provision| provision.claim.differs()) {
        let (patch, key) = (claim_patch(provision, ctx.node), &provision.claim.base.key);
        let written = ctx.world.patch(PersistentVolumeClaim::RESOURCE, key, &patch).await;
        written.map_err(|error| refused("persistentvolumeclaim", key, error))?;
    }
    Ok(())
}

fn volume_patch(binding: &Binding) -> Value {
    let (volume, claim) = (&binding.volume, &binding.claim);
    let mut metadata = metadata(&volume.base.version);
    if volume.expected.bound_by_controller && !volume.base.bound_by_controller {
        metadata["annotations"] = json!({BOUND_BY_CONTROLLER: "yes"});
    }
    let mut reference = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.key.namespace.as_str(),
        "name": &*claim.key.name,
        "uid": &*claim.uid,
    });
    if !claim.version.is_empty() {
        reference["resourceVersion"] = (*claim.version).into();
    }
    json!({"metadata": metadata, "spec": {"claimRef": reference}})
}

fn claim_patch(provision: &Provision, node: &Name) -> Value {
    let mut metadata = metadata(&provision.claim.base.version);
    metadata["annotations"] = json!({SELECTED_NODE: node.as_str()});
    json!({"metadata": metadata})
}

/// Metadata that make a patch apply to that version only.
fn metadata(version: &str) -> Value {
    match version {
        "" => json!({}),
        version => json!({"resourceVersion": version}),
    }
}

/// All claims that were written for are bound.
struct AllBound<'a> {
    reservation: &'a Reservation,
    node: &'a Name,
    pod: &'a PodUid,
}

impl Condition for AllBound<'_> {
    fn check(&self, objects: &dyn Objects) -> Progress {
        if objects.is_gone(self.pod) {
            return Progress::Failed("pod does not exist any more".to_owned());
        }
        let Some(node) = objects.node(self.node) else {
            return Progress::Failed(format!("node {:?} does not exist any more", self.node));
        };
        let view = Seen { objects, node: &node };
        let bindings = self.reservation.bindings.iter().map(|binding| view.binding(binding));
        let provisions = self.reservation.provisions.iter().map(|p| view.provision(p, self.node));
        bindings.chain(provisions).find(|step| *step != Progress::Done).unwrap_or(Progress::Done)
    }
}

/// The objects as they are now.
struct Seen<'a> {
    objects: &'a dyn Objects,
    node: &'a Node,
}

impl Seen<'_> {
    fn binding(&self, binding: &Binding) -> Progress {
        let Binding { claim, volume: written } = binding;
        let Some(volume) = self.get::<PersistentVolume>(&written.base.key) else {
            return gone("pv", &written.base.key);
        };
        let Some(claim) = self.get::<PersistentVolumeClaim>(&claim.key) else {
            return gone("pvc", &claim.key);
        };
        if written.differs() && is_old(&volume.version, &written.base.version) {
            return Progress::Waiting;
        }
        let kept = volume.claim.as_ref().is_some_and(|reference| !reference.uid.is_empty());
        if !kept {
            return Progress::Failed(format!("ClaimRef got reset for pv {:?}", volume.key.name));
        }
        self.reachable(volume).unwrap_or_else(|| bound(&claim))
    }

    fn provision(&self, provision: &Provision, node: &Name) -> Progress {
        let written = &provision.claim;
        let Some(claim) = self.get::<PersistentVolumeClaim>(&written.base.key) else {
            return gone("pvc", &written.base.key);
        };
        if written.differs() && is_old(&claim.version, &written.base.version) {
            return Progress::Waiting;
        }
        // Whoever makes volumes takes the annotation away when it cannot.
        if claim.selected_node.as_ref() != Some(node) {
            return Progress::Failed(format!("provisioning failed for PVC {:?}", claim.key.name));
        }
        if claim.volume_name.is_empty() {
            return Progress::Waiting;
        }
        match self.get::<PersistentVolume>(&ObjectKey::cluster(&claim.volume_name)) {
            // Not seen yet.
            None => Progress::Waiting,
            Some(volume) => self.reachable(volume).unwrap_or_else(|| bound(&claim)),
        }
    }

    /// A failure when the node cannot reach the volume after all.
    fn reachable(&self, volume: PersistentVolume) -> Option<Progress> {
        let csi_node = self.get::<CsiNode>(&ObjectKey::cluster(&self.node.name));
        let name = volume.key.name.clone();
        let volume = BoundVolume {
            translated: translated_affinity(&volume),
            volume: std::sync::Arc::new(volume),
        };
        let reachable = volume.is_reachable_from(&self.node.labels, csi_node.as_ref());
        let node = &self.node.name;
        (!reachable).then(|| {
            Progress::Failed(format!("pv {name:?} node affinity doesn't match node {node:?}"))
        })
    }

    fn get<T: StoredObject + Clone>(&self, key: &ObjectKey) -> Option<T> {
        self.objects.object(T::RESOURCE, key)?.get::<T>().cloned()
    }
}

fn bound(claim: &PersistentVolumeClaim) -> Progress {
    if claim.is_fully_bound() { Progress::Done } else { Progress::Waiting }
}

fn gone(what: &str, key: &ObjectKey) -> Progress {
    Progress::Failed(format!("{what} {key} does not exist any more"))
}

/// Whether an object is still the version that was written over: the write
/// went through, and has not been seen yet.
fn is_old(version: &str, base: &str) -> bool {
    !base.is_empty() && version == base
}
