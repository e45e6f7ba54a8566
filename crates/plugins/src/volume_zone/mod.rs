//! VolumeZone keeps pods in the zones of their volumes, as labels tell them.
//!
//! # What it does
//! A persistent volume that is labelled with zones or regions
//! (`topology.kubernetes.io/zone`, `…/region`, or their predecessors) is used on
//! nodes of these only. A label may list several, with `__` between them. Nodes
//! without any such label are taken to be everywhere.
//!
//! # Rejects or scores when
//! Rejects a node outside of a volume's zones: `node(s) had no available volume
//! zone`. Rejects every node when a claim, its class or its volume does not
//! exist (`persistentvolume "NAME" not found`), or when a claim that is not
//! bound at scheduling has no volume. Evictions change none of that. Left out
//! for pods whose volumes have no such labels.
//!
//! # Args
//! None.
//!
//! # Requeue events
//! A node comes or gets other labels and lies in the volumes' zones. A claim of
//! the pod comes or changes, its volume comes or gets other labels, a class of
//! its claims comes.
//!
//! # Parity
//! As kube-scheduler v1.36, whose hints do not look at whether a node, volume or
//! class is one that the pod has to do with.

use std::sync::Arc;

use steersman_api::key::ObjectKey;
use steersman_api::labels::Labels;
use steersman_api::name::Name;
use steersman_api::node::{REGION_LABEL, ZONE_LABEL};
use steersman_api::node_info::NodeInfo;
use steersman_api::object::StoredObject;
use steersman_api::persistent_volume::PersistentVolume;
use steersman_api::persistent_volume_claim::PersistentVolumeClaim;
use steersman_api::pod::PodInfo;
use steersman_api::storage_class::StorageClass;
use steersman_framework::cluster::Stores;
use steersman_framework::events::{
    ActionType, Change, ClusterEvent, EnqueueExtensions, EventResource, Hint, HintCtx,
};
use steersman_framework::extensions::{CycleCtx, Extensions, Filter, PreFilter, PrepareCtx};
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;
use steersman_framework::signature::{Sign, Signable, SignatureBuilder};
use steersman_framework::verdict::{FilterVerdict, PluginError, PreFilterVerdict, Rejection};

use crate::pod_claims;

/// The plugin's name.
pub const NAME: &str = "VolumeZone";

const REASON: &str = "node(s) had no available volume zone";

/// Labels that name a place, each with today's label for the same.
const PLACE_LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", ZONE_LABEL),
    ("failure-domain.beta.kubernetes.io/region", REGION_LABEL),
    (ZONE_LABEL, ZONE_LABEL),
    (REGION_LABEL, REGION_LABEL),
];

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    Descriptor::plain(NAME, PointSet::PRE_FILTER | PointSet::FILTER, |_| {
        let plugin = Arc::new(VolumeZone);
        Ok(Extensions {
            pre_filter: Some(plugin.clone()),
            filter: Some(plugin.clone()),
            events: Some(plugin.clone()),
            sign: Some(plugin),
            ..Extensions::default()
        })
    })
}

struct VolumeZone;

/// Where a volume can be used, by one of its labels.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    label: Name,
    /// What the label is called today.
    today: Name,
    values: Vec<Name>,
}

/// Where all volumes of a pod can be used.
#[derive(Clone)]
struct Places(Arc<Vec<Place>>);

/// Where a volume can be used. A label that cannot be read says nothing.
fn places_of(volume: &PersistentVolume) -> Vec<Place> {
    let place = |(label, today): (&str, &str)| {
        let label = Name::new(label);
        let listed = volume.labels.get(&label)?.split("__").map(str::trim);
        let values: Vec<Name> = listed.map(Name::new).collect();
        let readable = !values.iter().any(|value| value.is_empty());
        readable.then(|| Place { label, today: today.into(), values })
    };
    PLACE_LABELS.into_iter().filter_map(place).collect()
}

/// Where the pod's volumes can be used; `Err` says why that cannot be known.
fn places(pod: &PodInfo, stores: &Stores) -> Result<Vec<Place>, String> {
    let mut places = Vec::new();
    for used in pod.claims().filter(|used| !used.ephemeral) {
        let claim = stores.get::<PersistentVolumeClaim>(&used.key);
        let claim = claim.ok_or_else(|| pod_claims::not_found(&used.key))?;
        if claim.volume_name.is_empty() {
            check_waits(claim, stores)?;
            continue;
        }
        let volume = stores.get(&ObjectKey::cluster(&claim.volume_name));
        let volume =
            volume.ok_or_else(|| format!("persistentvolume {:?} not found", claim.volume_name))?;
        places.extend(places_of(volume));
    }
    Ok(places)
}

/// A claim without a volume is fine as long as it gets one at scheduling.
fn check_waits(claim: &PersistentVolumeClaim, stores: &Stores) -> Result<(), String> {
    if claim.class.is_empty() {
        return Err("PersistentVolumeClaim had no pv name and storageClass name".to_owned());
    }
    let class = stores.get::<StorageClass>(&ObjectKey::cluster(&claim.class));
    let class =
        class.ok_or_else(|| format!("storageclass.storage.k8s.io {:?} not found", claim.class))?;
    match class.waits_for_consumer {
        true => Ok(()),
        false => Err("PersistentVolume had no name".to_owned()),
    }
}

fn is_in(places: &[Place], node_labels: &Labels) -> bool {
    if !PLACE_LABELS.iter().any(|(label, _)| node_labels.contains_key(&(*label).into())) {
        return true;
    }
    places.iter().all(|place| {
        let value = node_labels.get(&place.label).or_else(|| node_labels.get(&place.today));
        value.is_some_and(|value| place.values.contains(value))
    })
}

impl PreFilter for VolumeZone {
    fn pre_filter(&self, ctx: &mut PrepareCtx<'_>) -> Result<PreFilterVerdict, PluginError> {
        Ok(match places(ctx.pod, &ctx.cluster.stores) {
            Err(reason) => PreFilterVerdict::Reject(Rejection::unresolvable(reason)),
            Ok(places) if places.is_empty() => PreFilterVerdict::Skip,
            Ok(places) => {
                ctx.state.put(Places(Arc::new(places)));
                PreFilterVerdict::Proceed
            }
        })
    }
}

impl Filter for VolumeZone {
    fn filter(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        let Some(Places(places)) = ctx.state.get::<Places>() else {
            return Ok(FilterVerdict::Fit);
        };
        Ok(match is_in(places, &node.node().labels) {
            true => FilterVerdict::Fit,
            false => FilterVerdict::Reject(Rejection::unresolvable(REASON)),
        })
    }
}

impl EnqueueExtensions for VolumeZone {
    fn events(&self) -> Vec<ClusterEvent> {
        let seen = ActionType::ADD | ActionType::UPDATE_OTHER;
        vec![
            ClusterEvent::new(EventResource(StorageClass::RESOURCE), ActionType::ADD),
            ClusterEvent::new(EventResource::NODE, ActionType::ADD | ActionType::UPDATE_NODE_LABEL),
            ClusterEvent::new(EventResource(PersistentVolumeClaim::RESOURCE), seen),
            ClusterEvent::new(EventResource(PersistentVolume::RESOURCE), seen),
        ]
    }

    fn hint(&self, ctx: &HintCtx<'_>, change: &Change) -> Result<Hint, PluginError> {
        let stores = &ctx.cluster.stores;
        let may_help = match change {
            Change::Node { new: Some(new), .. } => {
                places(ctx.pod, stores).is_ok_and(|places| is_in(&places, &new.labels))
            }
            Change::Object { old, new: Some(new) } => {
                if let Some(volume) = new.get::<PersistentVolume>() {
                    let old = old.as_ref().and_then(|old| old.get::<PersistentVolume>());
                    old.is_none_or(|old| places_of(old) != places_of(volume))
                        && has_volume(ctx.pod, stores, &volume.key)
                } else if let Some(class) = new.get::<StorageClass>() {
                    let mut unbound = pod_claims::unbound(ctx.pod, stores);
                    unbound.any(|claim| *claim.class == *class.key.name)
                } else {
                    pod_claims::uses(ctx.pod, new.key())
                }
            }
            _ => true,
        };
        Ok(Hint::queue_if(may_help))
    }
}

/// Whether a claim of the pod names the volume.
fn has_volume(pod: &PodInfo, stores: &Stores, volume: &ObjectKey) -> bool {
    let mut claims = pod.claims().filter_map(|used| stores.get(&used.key));
    claims.any(|claim: &PersistentVolumeClaim| *claim.volume_name == *volume.name)
}

impl Sign for VolumeZone {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        pod_claims::sign(pod, signature)
    }
}

#[cfg(test)]
mod tests;
