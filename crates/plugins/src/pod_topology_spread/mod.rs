//! The PodTopologySpread plugin.
//!
//! # What it does
//!
//! Spreads alike pods over the domains of a node label: zones, hosts, racks.
//! Each of a pod's `topologySpreadConstraints` names the label and a selector
//! for the pods to count. Pods without constraints get default ones, which
//! count the pods of the same services and of the same ReplicationController,
//! ReplicaSet or StatefulSet.
//!
//! A node is counted when it has the labels of all the pod's constraints of one
//! kind, when the pod's node selector and required node affinity allow it
//! (`nodeAffinityPolicy: Honor`, the default) and when the pod tolerates its
//! taints (`nodeTaintsPolicy: Honor`). Only pods of the pod's own namespace that
//! are not being deleted are counted.
//!
//! # Rejects or scores when
//!
//! `DoNotSchedule` constraints reject a node when
//! - it lacks the constraint's label: `node(s) didn't match pod topology spread
//!   constraints (missing required label)`, which no eviction can cure;
//! - its domain, the pod included when the selector means it, would hold over
//!   `maxSkew` pods more than the domain with the fewest: `node(s) didn't match
//!   pod topology spread constraints`. With fewer than `minDomains` domains the
//!   fewest counts as 0.
//!
//! `ScheduleAnyway` constraints score: the fewer matching pods in a node's
//! domains the better. A domain's count is weighted by the logarithm of the
//! number of domains, so that hosts do not drown zones, and `maxSkew` softens
//! differences. Nodes that lack a label score 0, unless the constraints are the
//! built-in defaults.
//!
//! # Args
//!
//! `PodTopologySpreadArgs`: `defaultingType` `System` (hosts with a skew of 3 and
//! zones with a skew of 5, both `ScheduleAnyway`) or `List` with
//! `defaultConstraints`.
//!
//! # Requeue events
//!
//! - AssignedPod: one that a `DoNotSchedule` constraint counts came, went, was
//!   relabelled or started to terminate. One more can help, too: it may be in
//!   the domain that had the fewest.
//! - Node: one with the labels of all constraints came; a counted one went; one
//!   began or ceased to be counted, or moved to another domain.
//! - TargetPod: its labels, constraints, tolerations, node selector or
//!   affinity changed.
//! - Service, ReplicationController, ReplicaSet, StatefulSet, when the default
//!   constraints can reject: the pod's own one came, went or selects others.
//!
//! # Parity
//!
//! As kube-scheduler v1.36, which differs in that it does not hear of services
//! and owners, nor of pods that start to terminate. As there, a constraint with
//! an empty selector counts no pod though it means each, and what-if changes
//! (pods nominated to a node, victims of a preemption) do count pods that
//! terminate and pods that an empty selector means.

pub mod args;

mod constraints;
mod counts;
mod domains;
mod filter;
mod hints;
mod score;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use steersman_api::pod::{InclusionPolicy, PodInfo, SpreadConstraint};
use steersman_framework::extensions::Extensions;
use steersman_framework::point::PointSet;
use steersman_framework::registry::{Descriptor, InitError};
use steersman_framework::signature::{Sign, Signable, SignatureBuilder};

use self::args::PodTopologySpreadArgs;
use self::constraints::Defaults;

/// The plugin's name.
pub const NAME: &str = "PodTopologySpread";

/// How the plugin is announced.
pub fn descriptor() -> Descriptor {
    let points = PointSet::PRE_FILTER | PointSet::FILTER | PointSet::PRE_SCORE | PointSet::SCORE;
    Descriptor::with_args::<PodTopologySpreadArgs, _>(NAME, points, |_, args| {
        let plugin = Arc::new(PodTopologySpread::new(&args)?);
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

struct PodTopologySpread {
    defaults: Defaults,
}

impl PodTopologySpread {
    fn new(args: &PodTopologySpreadArgs) -> Result<Self, InitError> {
        Ok(Self { defaults: Defaults::new(args)? })
    }
}

impl Sign for PodTopologySpread {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        let own = &pod.spec.spread_constraints;
        let constraints: &[SpreadConstraint] = if own.is_empty() {
            if self.defaults.is_empty() {
                return Signable::Yes;
            }
            signature.part("spreadOwner", &constraints::known_owner(pod));
            self.defaults.templates()
        } else {
            signature.part("spreadConstraints", own);
            own
        };
        signature.part("namespace", &pod.key.namespace);
        signature.part("labels", &pod.labels);
        if constraints.iter().any(|c| c.node_affinity_policy == InclusionPolicy::Honor) {
            signature.part("nodeSelector", &pod.spec.node_selector);
            signature.part("requiredNodeAffinity", &pod.spec.required_node_affinity);
        }
        if constraints.iter().any(|c| c.node_taints_policy == InclusionPolicy::Honor) {
            signature.part("tolerations", &pod.spec.tolerations);
        }
        Signable::Yes
    }
}
