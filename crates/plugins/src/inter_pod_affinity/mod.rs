//! The InterPodAffinity plugin.
//!
//! # What it does
//!
//! Places pods near pods they want to be near to, and away from pods they want
//! to be away from; near and away by the domains of a node label. Terms of the
//! pods that are there already count, too: their required anti-affinity keeps
//! new pods away, and their preferences are weighed.
//!
//! A term means pods by label, in the namespaces that it names and in those
//! that its `namespaceSelector` selects; in the pod's own namespace when it does
//! neither.
//!
//! # Rejects or scores when
//!
//! A node is rejected when, in this order,
//! - it lacks the label of a required affinity term, or its domain holds no pod
//!   that all required affinity terms mean: `node(s) didn't match pod affinity
//!   rules`, which no eviction can cure. The first pod of a group that wants to
//!   be together is let through: when no pod anywhere is meant and the pod's
//!   terms mean the pod itself, a node with all labels will do;
//! - its domain holds a pod that a required anti-affinity term means: `node(s)
//!   didn't match pod anti-affinity rules`;
//! - its domain holds a pod whose required anti-affinity means this pod:
//!   `node(s) didn't satisfy existing pods anti-affinity rules`.
//!
//! The score is the sum of the weights of preferred terms, the pod's own and
//! those of pods that are there, per pod that they match in the node's domains;
//! anti-affinity subtracts. Required affinity terms of pods that are there add
//! `hardPodAffinityWeight`. Scores are stretched so that the worst node gets 0
//! and the best 100.
//!
//! # Args
//!
//! `InterPodAffinityArgs`: `hardPodAffinityWeight` (1) and
//! `ignorePreferredTermsOfExistingPods` (false), which leaves scoring out for
//! pods without preferred terms of their own.
//!
//! # Requeue events
//!
//! - AssignedPod: one came that the required affinity means; one went that the
//!   anti-affinity means, or whose anti-affinity means the pod, or that kept the
//!   pod from being the first of its group. Relabelling is coming and going.
//! - Node: one came that has the labels of the required affinity, or brought
//!   pods along that it means; one went; one moved between domains that matter.
//! - Namespace: it came, went or was relabelled, and a `namespaceSelector` sees
//!   it differently, or it is the pod's own.
//! - TargetPod: its labels or its affinity changed.
//!
//! # Parity
//!
//! As kube-scheduler v1.36, which does not wake pods for the first-of-a-group
//! rule, for nodes that go, nor for namespaces. As there, a pod that nothing
//! concerns skips Filter, so pods nominated to a node are not held against it.

pub mod args;

mod filter;
mod hints;
mod score;
mod tally;
mod terms;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use steersman_api::pod::PodInfo;
use steersman_framework::extensions::Extensions;
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;
use steersman_framework::signature::{Sign, Signable, SignatureBuilder};

use self::args::InterPodAffinityArgs;

/// The plugin's name.
pub const NAME: &str = "InterPodAffinity";

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    let points = PointSet::PRE_FILTER | PointSet::FILTER | PointSet::PRE_SCORE | PointSet::SCORE;
    Descriptor::with_args(NAME, points, |_, args: InterPodAffinityArgs| {
        let plugin = Arc::new(InterPodAffinity { args });
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

struct InterPodAffinity {
    args: InterPodAffinityArgs,
}

impl Sign for InterPodAffinity {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        // Terms of pods that are there look at namespace and labels.
        signature.part("namespace", &pod.key.namespace);
        signature.part("labels", &pod.labels);
        signature.part("podAffinity", &pod.spec.affinity);
        Signable::Yes
    }
}
