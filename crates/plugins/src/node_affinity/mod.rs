//! NodeAffinity places pods by the labels and names of nodes.
//!
//! # What it does
//! Holds pods to `spec.nodeSelector` and to the required terms of
//! `spec.affinity.nodeAffinity`, and scores nodes by the preferred terms. Terms
//! are ORed, the conditions inside of a term are ANDed.
//!
//! # Rejects or scores when
//! Rejects a node, in a way that evictions cannot change, when
//! - it does not meet the profile's added affinity: `node(s) didn't match
//!   scheduler-enforced node affinity`;
//! - it lacks a pair of the node selector, or meets none of the required
//!   terms: `node(s) didn't match Pod's node affinity/selector`.
//!
//! When every required term names a node by `metadata.name`, only those nodes
//! are looked at; when each of them names several at once, the pod is rejected
//! as a whole: `pod affinity terms conflict`.
//!
//! A node scores the sum of the weights of the preferred terms that it meets,
//! the profile's included; the highest becomes 100 points. Left out when
//! neither the pod nor the profile prefers anything.
//!
//! # Args
//! `addedAffinity`: node affinity that all pods of the profile have besides
//! their own.
//!
//! # Requeue events
//! A node that is added and matches, or whose labels change so that it does.
//! An update of the pod's own selection of nodes.
//!
//! # Parity
//! As kube-scheduler v1.36, but for these.
//! - A preferred term that cannot be read fails the cycle there; here no node
//!   meets it, and the problem is reported when the pod is read. An API server
//!   lets no such term in.
//! - A node that starts to meet the added affinity brings pods back also when
//!   it met their own affinity all the time; the reference leaves them waiting.
//! - An update of the pod's selection is listened to, for pods that come from
//!   elsewhere than an API server, which refuses it.

pub mod args;
mod hints;
mod score;

use std::collections::BTreeSet;
use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::node::Node;
use steersman_api::node_info::NodeInfo;
use steersman_api::pod::{PodInfo, WeightedNodeTerm};
use steersman_api::problem::FieldPath;
use steersman_api::selector::{METADATA_NAME, NodeSelector, NodeSelectorTerm};
use steersman_framework::extensions::{CycleCtx, Extensions, Filter, PreFilter, PrepareCtx};
use steersman_framework::point::PointSet;
use steersman_framework::registry::{Descriptor, InitError};
use steersman_framework::signature::{Scope, Sign, Signable, SignatureBuilder};
use steersman_framework::verdict::{FilterVerdict, PluginError, PreFilterVerdict, Rejection};

use self::args::NodeAffinityArgs;

/// The plugin's name.
pub const NAME: &str = "NodeAffinity";

const REASON_POD: &str = "node(s) didn't match Pod's node affinity/selector";
const REASON_ADDED: &str = "node(s) didn't match scheduler-enforced node affinity";
const REASON_CONFLICT: &str = "pod affinity terms conflict";

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    let points = PointSet::PRE_FILTER | PointSet::FILTER | PointSet::PRE_SCORE | PointSet::SCORE;
    Descriptor::with_args(NAME, points, |_, args: NodeAffinityArgs| {
        let plugin = Arc::new(NodeAffinity::new(&args)?);
        Ok(Extensions {
            pre_filter: Some(plugin.clone()),
            filter: Some(plugin.clone()),
            pre_score: Some(plugin.clone()),
            score: Some(plugin.clone()),
            events: Some(plugin.clone()),
            sign: Some(plugin),
            ..Extensions::default()
        })
    })
}

/// The nodes outside of which no term can be met; `None` when some term names
/// no node. A term that names two nodes at once adds none.
fn named_nodes(selector: &NodeSelector) -> Option<BTreeSet<Name>> {
    if selector.terms.is_empty() {
        return None;
    }
    let mut nodes = BTreeSet::new();
    for term in &selector.terms {
        let mut named = names(term);
        let first = named.next()?;
        if named.all(|other| other == first) {
            nodes.insert(first.clone());
        }
    }
    Some(nodes)
}

fn names(term: &NodeSelectorTerm) -> impl Iterator<Item = &Name> {
    term.fields.iter().filter(|r| r.equal && r.field == METADATA_NAME).map(|r| &r.value)
}

struct NodeAffinity {
    /// What the profile requires of the nodes of all its pods.
    added_required: Option<NodeSelector>,
    /// What it prefers for all of them.
    added_preferred: Box<[WeightedNodeTerm]>,
}

impl NodeAffinity {
    fn new(args: &NodeAffinityArgs) -> Result<Self, InitError> {
        let at = FieldPath::from("addedAffinity");
        let mut problems = Vec::new();
        let added = args.added_affinity.as_ref();
        let added_required = added
            .and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref())
            .map(|required| NodeSelector::from_k8s(required, &at, &mut problems));
        let added_preferred = added
            .and_then(|a| a.preferred_during_scheduling_ignored_during_execution.as_deref())
            .unwrap_or_default()
            .iter()
            // A term without weight has no effect, whatever it says.
            .filter(|preferred| preferred.weight != 0)
            .map(|preferred| WeightedNodeTerm {
                weight: preferred.weight,
                term: NodeSelectorTerm::from_k8s(&preferred.preference, &at, &mut problems),
            })
            .collect();
        match problems.first() {
            Some(problem) => Err(InitError(problem.to_string())),
            None => Ok(Self { added_required, added_preferred }),
        }
    }

    fn meets_added(&self, node: &Node) -> bool {
        let added = self.added_required.as_ref();
        added.is_none_or(|required| required.matches(&node.name, &node.labels))
    }

    fn allows(&self, pod: &PodInfo, node: &Node) -> bool {
        self.meets_added(node) && pod.spec.allows_node(node)
    }
}

impl PreFilter for NodeAffinity {
    fn pre_filter(&self, ctx: &mut PrepareCtx<'_>) -> Result<PreFilterVerdict, PluginError> {
        let spec = &ctx.pod.spec;
        let required = spec.required_node_affinity.as_ref();
        if required.is_none() && spec.node_selector.is_empty() && self.added_required.is_none() {
            return Ok(PreFilterVerdict::Skip);
        }
        Ok(match required.and_then(named_nodes) {
            None => PreFilterVerdict::Proceed,
            Some(nodes) if nodes.is_empty() => {
                PreFilterVerdict::Reject(Rejection::unresolvable(REASON_CONFLICT))
            }
            Some(nodes) => PreFilterVerdict::Narrow(nodes),
        })
    }
}

impl Filter for NodeAffinity {
    fn filter(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        let node = node.node();
        let reason = if !self.meets_added(node) {
            REASON_ADDED
        } else if !ctx.pod.spec.allows_node(node) {
            REASON_POD
        } else {
            return Ok(FilterVerdict::Fit);
        };
        Ok(FilterVerdict::Reject(Rejection::unresolvable(reason)))
    }

    fn scope(&self) -> Scope {
        Scope::Node
    }
}

impl Sign for NodeAffinity {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        signature.part("nodeSelector", &pod.spec.node_selector);
        signature.part("requiredNodeAffinity", &pod.spec.required_node_affinity);
        signature.part("preferredNodeAffinity", &pod.spec.preferred_node_affinity);
        Signable::Yes
    }
}

#[cfg(test)]
mod tests;
