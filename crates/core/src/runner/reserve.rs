//! Reserve, its undoing, and Permit.

use std::collections::BTreeMap;
use std::time::Duration;

use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use steersman_framework::cluster::Cluster;
use steersman_framework::extensions::{CycleCtx, PrepareCtx};
use steersman_framework::observer::{Call, Observer, Outcome};
use steersman_framework::point::ExtensionPoint;
use steersman_framework::state::CycleState;
use steersman_framework::verdict::{PermitVerdict, ReserveVerdict};

use super::{Answer, Failed, Rejected, phase, run, run_quietly};
use crate::profile::{PluginIdx, Profile};

/// Asks every Reserve plugin in order; the first that says no ends it. The
/// caller undoes with [`unreserve`].
pub(crate) fn reserve(
    profile: &Profile,
    ctx: &mut PrepareCtx<'_>,
    node: &Name,
    observer: &mut dyn Observer,
) -> Result<Option<(PluginIdx, Rejected)>, Failed> {
    let (point, pod) = (ExtensionPoint::Reserve, ctx.pod);
    phase(point, pod, profile.reserve.len(), observer, |observer| {
        for slot in &profile.reserve {
            let call = Call { point, plugin: slot.name, pod, node: Some(node) };
            match run(call, observer, || slot.plugin.reserve(ctx, node))? {
                ReserveVerdict::Reserved => {}
                ReserveVerdict::Reject(rejection) => {
                    return Ok(Some((slot.idx, Rejected { plugin: slot.name, rejection })));
                }
            }
        }
        Ok(None)
    })
}

/// Undoes reservations, the last one first. All plugins are told, also those
/// that were not asked: the contract says that this does no harm.
pub(crate) fn unreserve(
    profile: &Profile,
    pod: &PodInfo,
    cluster: &Cluster,
    state: &CycleState,
    node: &Name,
) -> Vec<Failed> {
    let ctx = CycleCtx { pod, cluster, state };
    let undo = |slot: &crate::profile::Slot<dyn steersman_framework::extensions::Reserve>| {
        run_quietly(ExtensionPoint::Reserve, slot.name, || {
            slot.plugin.unreserve(&ctx, node);
            Ok(())
        })
        .err()
    };
    profile.reserve.iter().rev().filter_map(undo).collect()
}

/// What Permit plugins decided together.
#[derive(Debug)]
pub(crate) enum Permitted {
    Allow,
    Reject(PluginIdx, Rejected),
    /// Each plugin that wants to wait, and for how long at most.
    Wait(BTreeMap<&'static str, Duration>),
}

impl Answer for Option<(PluginIdx, Rejected)> {
    fn outcome(&self) -> Outcome<'_> {
        match self {
            None => Outcome::Success,
            Some((_, rejected)) => Outcome::Rejected(&rejected.rejection),
        }
    }
}

impl Answer for Permitted {
    fn outcome(&self) -> Outcome<'_> {
        match self {
            Self::Allow => Outcome::Success,
            Self::Reject(_, rejected) => Outcome::Rejected(&rejected.rejection),
            Self::Wait(_) => Outcome::Wait,
        }
    }
}

/// Asks every Permit plugin.
pub(crate) fn permit(
    profile: &Profile,
    ctx: &mut PrepareCtx<'_>,
    node: &Name,
    observer: &mut dyn Observer,
) -> Result<Permitted, Failed> {
    let (point, pod) = (ExtensionPoint::Permit, ctx.pod);
    phase(point, pod, profile.permit.len(), observer, |observer| {
        let mut waits = BTreeMap::new();
        for slot in &profile.permit {
            let call = Call { point, plugin: slot.name, pod, node: Some(node) };
            match run(call, observer, || slot.plugin.permit(ctx, node))? {
                PermitVerdict::Allow => {}
                PermitVerdict::Reject(rejection) => {
                    let rejected = Rejected { plugin: slot.name, rejection };
                    return Ok(Permitted::Reject(slot.idx, rejected));
                }
                PermitVerdict::Wait(timeout) => drop(waits.insert(slot.name, timeout)),
            }
        }
        Ok(if waits.is_empty() { Permitted::Allow } else { Permitted::Wait(waits) })
    })
}
