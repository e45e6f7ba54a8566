//! Volumes on paper: what a volume controller and a provisioner do, at once.
//!
//! Claims whose class does not wait for a pod get a volume at the start: one
//! that is there, else one that their class's provisioner makes. Others get
//! theirs when the pod that uses them is placed, as VolumeBinding chose.

use std::sync::Arc;

use serde_json::Value;
use steersman_api::key::ObjectKey;
use steersman_api::labels::Labels;
use steersman_api::name::Name;
use steersman_api::node::ZONE_LABEL;
use steersman_api::object::{AnyObject, ClusterObject, StoredObject};
use steersman_api::persistent_volume::{ClaimRef, PersistentVolume, Suits, VolumeSource};
use steersman_api::persistent_volume_claim::{PersistentVolumeClaim, SELECTED_NODE};
use steersman_api::selector::{NodeSelector, NodeSelectorTerm, Operator, Requirement};
use steersman_api::storage_class::StorageClass;
use steersman_core::Event;
use steersman_framework::cluster::Stores;

use super::Run;
use super::world::Write;

/// Longer lists of names are cut.
const MAX_NAMED: usize = 5;

impl Run {
    /// Binds the claims that do not wait for a pod.
    pub(super) fn bind_claims(&mut self) {
        let claims: Vec<Arc<PersistentVolumeClaim>> = self.stores().list_shared().collect();
        for claim in claims {
            if claim.is_fully_bound() || claim.lost || claim.terminating {
                continue;
            }
            let class = self.stores().shared::<StorageClass>(&ObjectKey::cluster(&claim.class));
            if let Some(volume) = self.volume_for(&claim, class.as_deref()) {
                self.bind_claim(&claim, &volume);
            } else if let Some(class) = class.filter(|class| class.can_provision())
                && claim.volume_name.is_empty()
            {
                match &claim.selected_node {
                    Some(node) => self.provision(&claim, near(&self.labels_of(node))),
                    None if !class.waits_for_consumer => {
                        self.provision(&claim, within(&class));
                    }
                    None => {}
                }
            }
        }
    }

    /// Does what a binding cycle has written for.
    pub(super) fn settle_claims(&mut self, writes: Vec<Write>) {
        for Write { resource, key, patch } in writes {
            let text = |pointer| patch.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            match resource {
                PersistentVolume::RESOURCE => {
                    let claim = ObjectKey::namespaced(
                        text("/spec/claimRef/namespace"),
                        text("/spec/claimRef/name"),
                    );
                    let (claim, volume) =
                        (self.stores().shared(&claim), self.stores().shared(&key));
                    if let (Some(claim), Some(volume)) = (claim, volume) {
                        self.bind_claim(&claim, &volume);
                    }
                }
                PersistentVolumeClaim::RESOURCE => {
                    let node = patch.pointer("/metadata/annotations");
                    let node = node.and_then(|all| all.get(SELECTED_NODE)).and_then(Value::as_str);
                    let claim = self.stores().shared::<PersistentVolumeClaim>(&key);
                    if let (Some(node), Some(claim)) = (node, claim) {
                        let reach = near(&self.labels_of(&node.into()));
                        self.provision(&claim, reach);
                    }
                }
                _ => {}
            }
        }
    }

    /// What became of claims, if a volume was made for any.
    pub(super) fn notice_of_volumes(&self) -> Option<String> {
        let n = self.provisioned.len();
        let named = self.provisioned[..n.min(MAX_NAMED)].join(", ");
        let more = match n.saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (volumes, claims) = if n == 1 { ("volume", "claim") } else { ("volumes", "claims") };
        (n > 0).then(|| format!("made {n} {volumes} on paper, for {claims} {named}{more}"))
    }

    fn stores(&self) -> &Stores {
        &self.scheduler.cluster().stores
    }

    fn labels_of(&self, node: &Name) -> Labels {
        let node = self.scheduler.cluster().nodes().by_name(node);
        node.map(|node| node.node().labels.clone()).unwrap_or_default()
    }

    /// The volume that a claim gets before any pod asks: the one that it names
    /// or that is kept for it, or unless it waits for a pod, the smallest that
    /// suits it.
    fn volume_for(
        &self,
        claim: &PersistentVolumeClaim,
        class: Option<&StorageClass>,
    ) -> Option<Arc<PersistentVolume>> {
        if !claim.volume_name.is_empty() {
            let named = self
                .stores()
                .shared::<PersistentVolume>(&ObjectKey::cluster(&claim.volume_name))?;
            return (named.claim.is_none() || named.is_for(claim)).then_some(named);
        }
        let waits = class.is_some_and(|class| class.waits_for_consumer);
        let mut smallest: Option<Arc<PersistentVolume>> = None;
        for volume in self.stores().list_shared::<PersistentVolume>() {
            match volume.suits(claim) {
                Suits::Kept => return Some(volume),
                Suits::Yes if !waits && volume.class == claim.class => {
                    if smallest.as_ref().is_none_or(|other| volume.capacity < other.capacity) {
                        smallest = Some(volume);
                    }
                }
                Suits::Yes | Suits::No => {}
            }
        }
        smallest
    }

    fn bind_claim(&mut self, claim: &PersistentVolumeClaim, volume: &PersistentVolume) {
        let reference = ClaimRef { key: claim.key.clone(), uid: claim.uid.clone() };
        self.show(PersistentVolume {
            bound_by_controller: volume.bound_by_controller || volume.claim.is_none(),
            claim: Some(reference),
            available: false,
            ..volume.clone()
        });
        self.show(PersistentVolumeClaim {
            volume_name: Name::new(&volume.key.name),
            bind_completed: true,
            ..claim.clone()
        });
    }

    fn provision(&mut self, claim: &PersistentVolumeClaim, reach: Option<NodeSelector>) {
        let class = self.stores().get::<StorageClass>(&ObjectKey::cluster(&claim.class));
        let name = format!("pvc-{}", claim.uid);
        let volume = PersistentVolume {
            key: ObjectKey::cluster(&name),
            version: "".into(),
            labels: Labels::default(),
            class: claim.class.clone(),
            capacity: claim.request.unwrap_or_default(),
            access_modes: claim.access_modes.clone(),
            block: claim.block,
            attributes_class: claim.attributes_class.clone(),
            claim: None,
            bound_by_controller: true,
            node_affinity: reach,
            source: VolumeSource::Csi {
                driver: class.map(|class| class.provisioner.clone()).unwrap_or_default(),
                handle: name.into(),
            },
            available: false,
            terminating: false,
        };
        self.provisioned.push(claim.key.to_string());
        self.bind_claim(claim, &volume);
    }

    fn show<T: StoredObject>(&mut self, object: T) {
        let event = Event::Upsert(ClusterObject::Other(AnyObject::new(object)));
        let effects = self.scheduler.handle(event, self.now);
        self.carry_out(effects);
    }
}

/// Where a volume can be reached from that was made for a node: in its zone,
/// if it is in one, as with the disks of most clouds.
fn near(labels: &Labels) -> Option<NodeSelector> {
    let zone = labels.get(&ZONE_LABEL.into())?;
    let values = [zone.clone()].into();
    let rule = Requirement { key: ZONE_LABEL.into(), operator: Operator::In(values) };
    Some(NodeSelector { terms: [term([rule].into())].into() })
}

/// Where a volume can be reached from that was made for nobody in particular.
fn within(class: &StorageClass) -> Option<NodeSelector> {
    let terms = &class.allowed_topologies;
    (!terms.is_empty()).then(|| NodeSelector { terms: terms.iter().cloned().map(term).collect() })
}

fn term(labels: Box<[Requirement]>) -> NodeSelectorTerm {
    let usable = !labels.is_empty();
    NodeSelectorTerm { labels, fields: Box::default(), usable }
}
