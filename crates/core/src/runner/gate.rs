//! PreEnqueue: may a pod enter the activeQ?

use steersman_api::pod::PodInfo;
use steersman_framework::cluster::Cluster;
use steersman_framework::point::ExtensionPoint;
use steersman_framework::verdict::PreEnqueueVerdict;

use super::run_quietly;
use crate::profile::{PluginIdx, Profile};

/// Why a pod stays out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gate {
    pub(crate) plugin: PluginIdx,
    pub(crate) reason: String,
}

/// Asks the PreEnqueue plugins in order; the first that objects decides. A
/// plugin that fails keeps the pod out too: its events bring it back.
pub(crate) fn pre_enqueue(profile: &Profile, pod: &PodInfo, cluster: &Cluster) -> Option<Gate> {
    profile.pre_enqueue.iter().find_map(|slot| {
        let ask = || slot.plugin.pre_enqueue(pod, cluster);
        let reason = match run_quietly(ExtensionPoint::PreEnqueue, slot.name, ask) {
            Ok(PreEnqueueVerdict::Admit) => return None,
            Ok(PreEnqueueVerdict::Gate(reason)) => reason.into_owned(),
            Err(failed) => failed.to_string(),
        };
        Some(Gate { plugin: slot.idx, reason })
    })
}
