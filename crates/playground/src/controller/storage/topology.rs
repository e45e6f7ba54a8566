//! Where a volume is: the zone and what else its class is particular about.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, TopologySelectorTerm,
    VolumeNodeAffinity,
};
use k8s_openapi::api::storage::v1::StorageClass;

use crate::cluster::World;

const ZONE: &str = "topology.kubernetes.io/zone";

/// Labels of the nodes that reach a volume. Without any, all of them do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(BTreeMap<String, String>);

impl Place {
    /// Where a volume for a pod on the node is; `None` when the class does not
    /// allow volumes there.
    pub(super) fn of_node(class: &StorageClass, node: &Node) -> Option<Self> {
        let none = BTreeMap::new();
        let labels = node.metadata.labels.as_ref().unwrap_or(&none);
        let mut keys = BTreeSet::from([ZONE]);
        if let Some(terms) = class.allowed_topologies.as_ref().filter(|terms| !terms.is_empty()) {
            let term = terms.iter().find(|term| allows(term, labels))?;
            let expressions = term.match_label_expressions.iter().flatten();
            keys.extend(expressions.map(|expression| expression.key.as_str()));
        }
        let found = keys.into_iter().filter_map(|key| labels.get_key_value(key));
        Some(Self(found.map(|(key, value)| (key.clone(), value.clone())).collect()))
    }

    /// Where a volume is that is made before its pod has a node: claims with
    /// numbers at their end go round the places.
    pub(super) fn of_any(world: &World, class: &StorageClass, claim: &str) -> Option<Self> {
        let nodes = world.nodes.iter();
        let places: BTreeSet<Self> = nodes.filter_map(|node| Self::of_node(class, node)).collect();
        let digits = claim.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (base, number) = claim.split_at(claim.len() - digits);
        let number: usize = number.parse().unwrap_or_default();
        let hash = base
            .bytes()
            .fold(0_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(byte)));
        let index = hash.wrapping_add(number).checked_rem(places.len())?;
        places.into_iter().nth(index)
    }

    pub(super) fn affinity(self) -> Option<VolumeNodeAffinity> {
        let requirement = |(key, value)| NodeSelectorRequirement {
            key,
            operator: "In".to_owned(),
            values: Some(vec![value]),
        };
        let requirements: Vec<_> = self.0.into_iter().map(requirement).collect();
        (!requirements.is_empty()).then(|| VolumeNodeAffinity {
            required: Some(NodeSelector {
                node_selector_terms: vec![NodeSelectorTerm {
                    match_expressions: Some(requirements),
                    match_fields: None,
                }],
            }),
        })
    }
}

/// A term without conditions allows nothing.
fn allows(term: &TopologySelectorTerm, labels: &BTreeMap<String, String>) -> bool {
    let expressions = term.match_label_expressions.as_deref().unwrap_or_default();
    !expressions.is_empty()
        && expressions.iter().all(|expression| {
            labels.get(&expression.key).is_some_and(|value| expression.values.contains(value))
        })
}
