//! PreFilter: what can be said about a pod before nodes are looked at.

use std::collections::BTreeSet;

use steersman_api::name::Name;
use steersman_framework::diagnosis::OthersRejection;
use steersman_framework::extensions::PrepareCtx;
use steersman_framework::observer::{Call, Observer, Outcome};
use steersman_framework::point::ExtensionPoint;
use steersman_framework::verdict::{PreFilterVerdict, Rejection};

use super::{Answer, Failed, Rejected, phase, run};
use crate::profile::{PluginIdx, PluginSet, Profile};

/// What PreFilter left to do.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Plugins whose Filter the pod does not need.
    pub(crate) skip: PluginSet,
    /// The only nodes that can do, if some plugin narrowed them down.
    pub(crate) candidates: Option<BTreeSet<Name>>,
    /// Those plugins.
    pub(crate) narrowed_by: PluginSet,
    /// The verdict on all other nodes then.
    pub(crate) others: Option<OthersRejection>,
}

/// PreFilter said no to every node.
#[derive(Debug)]
pub(crate) enum NoNodes {
    /// One plugin did.
    Rejected(PluginIdx, Rejected),
    /// Several plugins want different nodes.
    Disjoint(PluginSet, Rejection),
}

impl Answer for Result<Prepared, NoNodes> {
    fn outcome(&self) -> Outcome<'_> {
        match self {
            Ok(_) => Outcome::Success,
            Err(NoNodes::Rejected(_, Rejected { rejection, .. })) => Outcome::Rejected(rejection),
            Err(NoNodes::Disjoint(_, rejection)) => Outcome::Rejected(rejection),
        }
    }
}

/// Asks every PreFilter plugin.
pub(crate) fn pre_filter(
    profile: &Profile,
    ctx: &mut PrepareCtx<'_>,
    observer: &mut dyn Observer,
) -> Result<Result<Prepared, NoNodes>, Failed> {
    let n_plugins = profile.pre_filter.len();
    phase(ExtensionPoint::PreFilter, ctx.pod, n_plugins, observer, |observer| {
        ask_all(profile, ctx, observer)
    })
}

fn ask_all(
    profile: &Profile,
    ctx: &mut PrepareCtx<'_>,
    observer: &mut dyn Observer,
) -> Result<Result<Prepared, NoNodes>, Failed> {
    let mut prepared = Prepared {
        skip: PluginSet::default(),
        candidates: None,
        narrowed_by: PluginSet::default(),
        others: None,
    };
    for slot in &profile.pre_filter {
        let (point, pod) = (ExtensionPoint::PreFilter, ctx.pod);
        let call = Call { point, plugin: slot.name, pod, node: None };
        match run(call, observer, || slot.plugin.pre_filter(ctx))? {
            PreFilterVerdict::Proceed => {}
            PreFilterVerdict::Skip => prepared.skip.insert(slot.idx),
            PreFilterVerdict::Reject(rejection) => {
                let rejected = Rejected { plugin: slot.name, rejection };
                return Ok(Err(NoNodes::Rejected(slot.idx, rejected)));
            }
            PreFilterVerdict::Narrow(names) => {
                prepared.narrowed_by.insert(slot.idx);
                let candidates = match prepared.candidates.take() {
                    None => names,
                    Some(before) => before.intersection(&names).cloned().collect(),
                };
                if candidates.is_empty() {
                    return Ok(Err(disjoint(profile, prepared.narrowed_by)));
                }
                prepared.candidates = Some(candidates);
            }
        }
    }
    if prepared.candidates.is_some() {
        let plugins = listed(profile, prepared.narrowed_by);
        let reason = format!("node(s) didn't satisfy plugin(s) {plugins}");
        let rejection = Rejection::unresolvable(reason);
        prepared.others = Some(OthersRejection { plugin: None, rejection });
    }
    Ok(Ok(prepared))
}

fn disjoint(profile: &Profile, plugins: PluginSet) -> NoNodes {
    let names: Vec<&str> = profile.names(plugins).into_iter().collect();
    let reason = match names.as_slice() {
        [one] => format!("node(s) didn't satisfy plugin {one}"),
        _ => {
            let listed = listed(profile, plugins);
            format!("node(s) didn't satisfy plugin(s) {listed} simultaneously")
        }
    };
    NoNodes::Disjoint(plugins, Rejection::unresolvable(reason))
}

/// `[A B]`, as the reference prints lists.
fn listed(profile: &Profile, plugins: PluginSet) -> String {
    let names: Vec<&str> = profile.names(plugins).into_iter().collect();
    format!("[{}]", names.join(" "))
}
