//! Setting volumes aside for a pod that has a node, and giving them back.

use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::persistent_volume::{ClaimRef, PersistentVolume};
use steersman_api::persistent_volume_claim::PersistentVolumeClaim;
use steersman_framework::cluster::Stores;
use steersman_framework::extensions::{CycleCtx, PrepareCtx, Reserve};
use steersman_framework::verdict::{PluginError, ReserveVerdict};

use super::plan::Plan;
use super::{Aside, VolumeBinding};

/// What is set aside for a pod.
#[derive(Clone, Default)]
pub(super) struct Reservation {
    pub(super) bindings: Vec<Binding>,
    pub(super) provisions: Vec<Provision>,
}

/// A volume that a claim gets.
#[derive(Clone)]
pub(super) struct Binding {
    pub(super) claim: Arc<PersistentVolumeClaim>,
    /// The volume as it is and as it will be.
    pub(super) volume: Expected<PersistentVolume>,
}

/// A claim for which a volume is made, as it is and as it will be.
#[derive(Clone)]
pub(super) struct Provision {
    pub(super) claim: Expected<PersistentVolumeClaim>,
}

/// An object as it is and as it will be.
pub(super) struct Expected<T> {
    pub(super) base: Arc<T>,
    pub(super) expected: Arc<T>,
}

impl<T> Clone for Expected<T> {
    fn clone(&self) -> Self {
        Self { base: self.base.clone(), expected: self.expected.clone() }
    }
}

impl<T: PartialEq> Expected<T> {
    /// Whether anything is to be written.
    pub(super) fn differs(&self) -> bool {
        *self.base != *self.expected
    }
}

impl Reservation {
    pub(super) fn is_empty(&self) -> bool {
        self.bindings.is_empty() && self.provisions.is_empty()
    }

    fn new(plan: Plan, node: &Name) -> Self {
        let binding = |(claim, base): (Arc<PersistentVolumeClaim>, Arc<PersistentVolume>)| {
            let expected = Arc::new(bound_to(&base, &claim));
            Binding { claim, volume: Expected { base, expected } }
        };
        let provision = |(base, _): (Arc<PersistentVolumeClaim>, _)| {
            let selected_node = Some(node.clone());
            let expected = Arc::new(PersistentVolumeClaim { selected_node, ..(*base).clone() });
            Provision { claim: Expected { base, expected } }
        };
        Self {
            bindings: plan.bindings.into_iter().map(binding).collect(),
            provisions: plan.provisions.into_iter().map(provision).collect(),
        }
    }
}

/// `volume` when it is bound to `claim`.
fn bound_to(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> PersistentVolume {
    PersistentVolume {
        claim: Some(ClaimRef { key: claim.key.clone(), uid: claim.uid.clone() }),
        bound_by_controller: volume.bound_by_controller || !volume.is_for(claim),
        ..volume.clone()
    }
}

impl Aside {
    fn take(&mut self, stores: &Stores, reservation: &Reservation) {
        for Binding { volume, .. } in &reservation.bindings {
            if volume.differs() {
                self.volumes.assume(stores, volume.base.clone(), volume.expected.clone());
            }
        }
        for Provision { claim } in &reservation.provisions {
            if claim.differs() {
                self.claims.assume(stores, claim.base.clone(), claim.expected.clone());
            }
        }
    }

    fn give_back(&mut self, reservation: &Reservation) {
        for Binding { volume, .. } in &reservation.bindings {
            self.volumes.forget(&volume.expected);
        }
        for Provision { claim } in &reservation.provisions {
            self.claims.forget(&claim.expected);
        }
    }
}

impl Reserve for VolumeBinding {
    fn reserve(
        &self,
        ctx: &mut PrepareCtx<'_>,
        node: &Name,
    ) -> Result<ReserveVerdict, PluginError> {
        let Some(info) = ctx.cluster.nodes().by_name(node) else {
            return Err(PluginError(format!("node {node:?} is gone")));
        };
        let cycle = CycleCtx { pod: ctx.pod, cluster: ctx.cluster, state: ctx.state };
        let reservation = match Self::plan(&cycle, info) {
            None => return Ok(ReserveVerdict::Reserved),
            Some(Err(rejection)) => return Ok(ReserveVerdict::Reject(rejection)),
            Some(Ok(plan)) => Reservation::new(plan, node),
        };
        self.aside.lock().take(&ctx.cluster.stores, &reservation);
        ctx.state.put(reservation);
        Ok(ReserveVerdict::Reserved)
    }

    fn unreserve(&self, ctx: &CycleCtx<'_>, _: &Name) {
        if let Some(reservation) = ctx.state.get::<Reservation>() {
            self.aside.lock().give_back(reservation);
        }
    }
}
