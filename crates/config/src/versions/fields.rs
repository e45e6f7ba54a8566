//! Fields that only some versions have.

use serde_json::{Map, Value};
use steersman_api::problem::{FieldPath, Problem, ProblemKind};
use steersman_api::strict;

use super::{OldVersion, Scope};
use crate::wire::{LeaderElection, PluginSet, Profile};

/// The sets that came with v1.
const PLACEMENT_SETS: [&str; 2] = ["placementGenerate", "placementScore"];
/// The sets that v1beta1 does not have, and that v1beta2 has and does not heed.
const NEWER_SETS: [&str; 2] = ["preEnqueue", "multiPoint"];
/// The addresses of the servers without TLS, which v1beta1 and v1beta2 have.
const ADDRESSES: [&str; 2] = ["healthzBindAddress", "metricsBindAddress"];
/// The locks that were replaced by leases.
const OLD_LOCKS: [&str; 4] = ["endpoints", "configmaps", "endpointsleases", "configmapsleases"];

type Object = Map<String, Value>;

/// Reports and takes out fields of later versions.
pub(super) fn refuse_newer(version: OldVersion, document: &mut Value, problems: &mut Vec<Problem>) {
    let mut refuse = |object: &mut Object, field: &str, at: &FieldPath, since: &str| {
        if object.remove(field).is_some_and(|value| !value.is_null()) {
            let path = at.field(field);
            let message = format!("unknown field in {}; {since} has it", version.name());
            problems.push(Problem { path, message, kind: ProblemKind::UnknownField });
        }
    };
    if let Some(root) = document.as_object_mut() {
        refuse(root, "delayCacheUntilActive", &FieldPath::root(), "v1");
    }
    for (at, profile) in profiles(document) {
        refuse(profile, "percentageOfNodesToScore", &at, "v1");
        let Some(plugins) = plugins(profile) else { continue };
        let at = at.field("plugins");
        PLACEMENT_SETS.iter().for_each(|field| refuse(plugins, field, &at, "v1"));
        if version == OldVersion::V1Beta1 {
            NEWER_SETS.iter().for_each(|field| refuse(plugins, field, &at, "v1beta3"));
        }
    }
}

/// Has a complaint about an unknown field name the fields of this version.
/// Source: the types of `k8s.io/kube-scheduler/config` v1beta1 to v1beta3.
pub(super) fn name_allowed(version: OldVersion, problem: &mut Problem) {
    let known = match problem.kind {
        ProblemKind::UnknownField => problem.message.strip_prefix("unknown field, allowed: "),
        ProblemKind::Other => None,
    };
    let mut fields: Vec<&str> = known.into_iter().flat_map(|list| list.split(", ")).collect();
    let place = |fields: &[&str], name: &str| fields.iter().position(|field| *field == name);
    // Each of these types is known by a field that no other one has.
    if let Some(i) = place(&fields, "delayCacheUntilActive") {
        fields.remove(i);
        let after = place(&fields, "clientConnection").map_or(fields.len(), |i| i + 1);
        let addresses = ADDRESSES.into_iter().filter(|_| version <= OldVersion::V1Beta2);
        fields.splice(after..after, addresses);
    } else if place(&fields, "schedulerName").is_some() {
        fields.retain(|field| *field != "percentageOfNodesToScore");
    } else if place(&fields, "placementScore").is_some() {
        let is_first = version == OldVersion::V1Beta1;
        fields.retain(|field| !PLACEMENT_SETS.contains(field));
        fields.retain(|field| !(is_first && NEWER_SETS.contains(field)));
        let after = place(&fields, "reserve").map_or(fields.len(), |i| i + 1);
        fields.splice(after..after, is_first.then_some("unreserve"));
    } else {
        return;
    }
    *problem = Problem::unknown_field(&problem.path, &fields);
}

/// Takes out the addresses of the servers without TLS, which are gone.
pub(super) fn take_addresses(
    version: OldVersion,
    document: &mut Value,
    problems: &mut Vec<Problem>,
    notices: &mut Vec<Problem>,
) {
    let Some(root) = document.as_object_mut().filter(|_| version <= OldVersion::V1Beta2) else {
        return;
    };
    for field in ADDRESSES {
        let at = FieldPath::root().field(field);
        match root.remove(field) {
            None | Some(Value::Null) => {}
            Some(Value::String(address)) if is_off(&address) => {}
            Some(Value::String(address)) => {
                let what = format!(
                    "found {address:?}, no effect: health and metrics are served with TLS, at \
                     --bind-address and --secure-port"
                );
                notices.push(Problem::new(&at, what));
            }
            Some(other) => problems.push(Problem::invalid(&at, other, "a string")),
        }
    }
}

/// Whether an address says that nothing is to be served.
fn is_off(address: &str) -> bool {
    address.is_empty() || address == "0" || address.ends_with(":0")
}

/// Takes out the sets that v1beta2 replaced by its defaults.
pub(super) fn take_ineffective_sets(
    version: OldVersion,
    document: &mut Value,
    notices: &mut Vec<Problem>,
) {
    if version != OldVersion::V1Beta2 {
        return;
    }
    for (at, profile) in profiles(document) {
        let Some(plugins) = plugins(profile) else { continue };
        for field in NEWER_SETS {
            let set = plugins.remove(field).unwrap_or_default();
            if !set.is_null() && set.as_object().is_none_or(|set| !set.is_empty()) {
                let what = "left out: it had no effect in v1beta2, and would have one in v1";
                notices.push(Problem::new(&at.field("plugins").field(field), what));
            }
        }
    }
}

/// Takes out `plugins.unreserve` of each profile.
pub(super) fn take_unreserve(
    version: OldVersion,
    document: &mut Value,
    problems: &mut Vec<Problem>,
) -> Vec<PluginSet> {
    if version != OldVersion::V1Beta1 {
        return Vec::new();
    }
    let sets = profiles(document).map(|(at, profile)| {
        let set = plugins(profile).and_then(|plugins| plugins.remove("unreserve"))?;
        strict::decode(&set, &at.field("plugins").field("unreserve"), problems)
    });
    sets.map(Option::unwrap_or_default).collect()
}

/// Plugins that undid reservations serve Reserve, which has both halves.
pub(super) fn merge_unreserve(set: PluginSet, profile: &mut Profile, scope: &mut Scope<'_>) {
    let reserve = &mut profile.plugins.reserve;
    for (list, from, into) in [
        ("enabled", set.enabled, &mut reserve.enabled),
        ("disabled", set.disabled, &mut reserve.disabled),
    ] {
        for (i, plugin) in from.into_iter().enumerate() {
            let at = scope.set("unreserve").field(list).index(i);
            scope.tell(&at, format!("found {:?}, read as an entry of reserve", plugin.name));
            if !into.iter().any(|other| other.name == plugin.name) {
                into.push(plugin);
            }
        }
    }
}

/// Replicas agree on a lease.
pub(super) fn lock(election: &mut LeaderElection, notices: &mut Vec<Problem>) {
    if OLD_LOCKS.contains(&election.resource_lock.as_str()) {
        let at = FieldPath::root().field("leaderElection").field("resourceLock");
        let what = format!(
            "found {:?}, read as \"leases\", the only kind that v1 has; a replica that still \
             uses the other one does not see this one, unless --leader-elect-resource-lock \
             names that one",
            election.resource_lock
        );
        notices.push(Problem::new(&at, what));
        "leases".clone_into(&mut election.resource_lock);
    }
}

/// The profiles that are objects, with their places.
fn profiles(document: &mut Value) -> impl Iterator<Item = (FieldPath, &mut Object)> {
    let profiles = document.get_mut("profiles").and_then(Value::as_array_mut);
    let at = FieldPath::root().field("profiles");
    profiles
        .into_iter()
        .flatten()
        .enumerate()
        .filter_map(move |(i, profile)| Some((at.index(i), profile.as_object_mut()?)))
}

fn plugins(profile: &mut Object) -> Option<&mut Object> {
    profile.get_mut("plugins")?.as_object_mut()
}
