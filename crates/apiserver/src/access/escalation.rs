//! Nobody gives away what they do not have.
//!
//! Who writes a role must hold all that it allows, or may `escalate` it. Who
//! writes a binding must hold all that the role allows, or may `bind` it.

use serde_json::Value;
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::resource::Resource;

use super::{Attributes, Authorization, GROUP, RoleRef, Rule, Target, quoted, rule};
use crate::auth::User;
use crate::meta;
use crate::server::Inner;

/// Refuses a role or binding with which the user would give away more than they
/// have; `old` is what is there already. Other objects pass.
pub(crate) fn check(
    inner: &Inner,
    user: &User,
    resource: &Resource,
    new: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let is_ours = resource.group == GROUP;
    if !is_ours || inner.access.mode == Authorization::AlwaysAllow || user.is_master() {
        return Ok(());
    }
    if old.is_some_and(|old| is_about_ownership(new, old)) {
        return Ok(());
    }
    let (namespace, name) = (meta::namespace(new), meta::name(new));
    let may = |verb, resource, name| {
        let target = Target::Resource { group: GROUP, resource, subresource: "", namespace, name };
        inner.access.decide(&inner.store, user, &Attributes { verb, target }).is_allowed()
    };
    let refused = |why: &str| Err(ApiError::forbidden(resource, name, why));
    let wanted = match resource.plural {
        "roles" | "clusterroles" => {
            if may("escalate", resource.plural, name) {
                return Ok(());
            }
            let is_aggregated =
                |role: &Value| role.get("aggregationRule").is_some_and(|rule| !rule.is_null());
            if is_aggregated(new) || old.is_some_and(is_aggregated) {
                if missing(inner, user, namespace, &Rule::everything()).is_empty() {
                    return Ok(());
                }
                return refused("must have cluster-admin privileges to use the aggregationRule");
            }
            Rule::all_of(new)
        }
        "rolebindings" | "clusterrolebindings" => {
            let role = RoleRef::of(new);
            if may("bind", role.plural(), &role.name) {
                return Ok(());
            }
            let known = inner.access.known(&inner.store);
            let Some(rules) = known.index.rules(&role) else {
                let message = format!("{}.{GROUP} {:?} not found", role.plural(), role.name);
                return Err(ApiError::new(404, "NotFound", message));
            };
            rules.to_vec()
        }
        _ => return Ok(()),
    };
    let missing = missing(inner, user, namespace, &wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let why = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        quoted(&user.groups),
        rule::lines(&missing).join("\n"),
    );
    refused(&why)
}

/// Whether nothing but owners and finalizers changes, which gives nothing away.
/// Labels do: they put a role among those that an aggregated one is made of.
fn is_about_ownership(new: &Value, old: &Value) -> bool {
    ["rules", "aggregationRule", "roleRef", "subjects"].iter().all(|f| old.get(f) == new.get(f))
        && ["/metadata/labels", "/metadata/annotations"]
            .iter()
            .all(|path| old.pointer(path) == new.pointer(path))
}

/// What of the rules the user does not have.
fn missing(inner: &Inner, user: &User, namespace: &str, wanted: &[Rule]) -> Vec<Rule> {
    let held = inner.access.rules(&inner.store, user, namespace);
    let held: Vec<&Rule> = held.iter().map(|(_, rule)| rule).collect();
    rule::missing(&held, wanted)
}
