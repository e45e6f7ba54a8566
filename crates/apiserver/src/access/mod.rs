//! Who may do what.
//!
//! [`Access::decide`] is asked about every request, and by reviews. With RBAC it
//! looks at the roles and bindings that are stored; they are read again when
//! they have changed, so that a decision always is about what is there now.

mod attributes;
pub(crate) mod audit;
pub(crate) mod escalation;
pub(crate) mod impersonation;
mod index;
mod rule;

use std::sync::Arc;

use http::Method;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use steersman_apimachinery::error::ApiError;

use self::attributes::selected_name;
pub(crate) use self::attributes::{Attributes, Target};
use self::audit::{Audit, AuditLog, GrantedBy, Record};
use self::index::{Grantor, Index, RoleRef, Scope};
use self::rule::Rule;
pub(crate) use self::rule::quoted;
use crate::auth::User;
use crate::registry::Registry;
use crate::rest::{PathTarget, Query, decode};
use crate::server::{ApiServer, Inner};
use crate::store::{ChangeKind, Store, TableId};

const GROUP: &str = "rbac.authorization.k8s.io";

/// What decides whether a request is allowed; the values of kube-apiserver's
/// `--authorization-mode` that are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorization {
    /// `AlwaysAllow`: everybody who is known may do everything.
    #[default]
    AlwaysAllow,
    /// `RBAC`: the roles and bindings in the cluster; members of
    /// `system:masters` may do everything.
    Rbac,
}

/// Decides what is allowed.
pub(crate) struct Access {
    pub(crate) mode: Authorization,
    audit: Option<Arc<dyn Audit>>,
    /// Of roles, cluster roles, role bindings and cluster role bindings; those
    /// of them that are served.
    tables: Vec<(TableId, Seen)>,
    index: RwLock<Known>,
}

#[derive(Clone, Copy)]
enum Seen {
    Role(Scope),
    Binding(Scope),
}

/// What is known, and up to where in the logs.
struct Known {
    index: Index,
    cursors: Vec<u64>,
}

/// What was decided.
pub(crate) enum Decision {
    /// No rule had to be asked.
    Privileged,
    /// A rule allows it.
    Granted(Grantor),
    /// Nothing does.
    Denied,
}

impl Decision {
    pub(crate) fn is_allowed(&self) -> bool {
        !matches!(self, Self::Denied)
    }

    /// Why it is allowed, for people; empty if there is nothing to say.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Granted(grantor) => grantor.reason(),
            Self::Privileged | Self::Denied => String::new(),
        }
    }
}

impl Access {
    pub(crate) fn new(
        mode: Authorization,
        audit: Option<Arc<dyn Audit>>,
        registry: &Registry,
    ) -> Self {
        let served = [
            ("roles", Seen::Role(Scope::Namespace)),
            ("clusterroles", Seen::Role(Scope::Cluster)),
            ("rolebindings", Seen::Binding(Scope::Namespace)),
            ("clusterrolebindings", Seen::Binding(Scope::Cluster)),
        ];
        let tables: Vec<_> = served
            .into_iter()
            .filter_map(|(plural, seen)| Some((registry.table(GROUP, plural)?, seen)))
            .collect();
        // Everything is in the logs, as nothing has been written yet.
        let cursors = vec![0; tables.len()];
        let known = Known { index: Index::default(), cursors };
        Self { mode, audit, tables, index: RwLock::new(known) }
    }

    /// Whether the user may do this.
    pub(crate) fn decide(&self, store: &Store, user: &User, asked: &Attributes<'_>) -> Decision {
        if self.mode == Authorization::AlwaysAllow || user.is_master() {
            return Decision::Privileged;
        }
        match self.known(store).index.find(user, asked) {
            Some(grantor) => Decision::Granted(grantor),
            None => Decision::Denied,
        }
    }

    /// Refuses a request that is not allowed, and tells of it.
    pub(crate) fn check(
        &self,
        store: &Store,
        user: &User,
        asked: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let decision = self.decide(store, user, asked);
        if let Some(audit) = &self.audit {
            audit.decided(record(user, asked, &decision));
        }
        match decision {
            Decision::Denied => {
                let refusal = asked.forbidden(&user.name, "");
                tracing::info!(why = refusal.message, "a request was forbidden");
                Err(refusal)
            }
            Decision::Privileged | Decision::Granted(_) => Ok(()),
        }
    }

    /// The rules that the user has in a namespace, each once; the flag says
    /// that it comes from a binding of that namespace.
    pub(crate) fn rules(&self, store: &Store, user: &User, namespace: &str) -> Vec<(bool, Rule)> {
        let mut rules: Vec<(bool, Rule)> = Vec::new();
        if self.mode == Authorization::AlwaysAllow || user.is_master() {
            rules.extend(Rule::everything().map(|rule| (false, rule)));
        }
        if self.mode == Authorization::Rbac {
            for (is_local, rule) in self.known(store).index.held(user, namespace) {
                if !rules.iter().any(|(_, known)| known == rule) {
                    rules.push((is_local, rule.clone()));
                }
            }
        }
        rules
    }

    /// The index as it is now.
    fn known(&self, store: &Store) -> RwLockReadGuard<'_, Known> {
        let known = self.index.read();
        let tables = || self.tables.iter().map(|(table, _)| *table);
        if store.is_at(tables(), &known.cursors) {
            return known;
        }
        drop(known);
        let mut known = self.index.write();
        self.catch_up(store, &mut known);
        RwLockWriteGuard::downgrade(known)
    }

    fn catch_up(&self, store: &Store, known: &mut Known) {
        let mut has_cluster_roles = false;
        let Known { index, cursors } = known;
        for (at, (table, seen)) in self.tables.iter().enumerate() {
            let mut see = |key: &str, object: &Arc<serde_json::Value>, kind| match *seen {
                Seen::Role(scope) => {
                    has_cluster_roles |= scope == Scope::Cluster;
                    index.see_role(scope, key, object, kind);
                }
                Seen::Binding(scope) => index.see_binding(scope, key, object, kind),
            };
            if let Ok((changes, _)) = store.read(*table, cursors[at], usize::MAX) {
                for change in &changes {
                    see(&change.key, &change.object.value, change.kind);
                }
                cursors[at] += changes.len() as u64;
                continue;
            }
            // The log does not reach back so far: everything is learnt anew.
            *index = match *seen {
                Seen::Role(scope) => std::mem::take(index).without_roles(scope),
                Seen::Binding(scope) => std::mem::take(index).without_bindings(scope),
            };
            let (snapshot, end) = store.snapshot_and_cursor(*table);
            let mut see = |key: &str, object: &Arc<serde_json::Value>| match *seen {
                Seen::Role(scope) => index.see_role(scope, key, object, ChangeKind::Added),
                Seen::Binding(scope) => index.see_binding(scope, key, object, ChangeKind::Added),
            };
            for (key, object) in &snapshot.objects {
                see(key, &object.value);
            }
            has_cluster_roles = true;
            cursors[at] = end;
        }
        if has_cluster_roles {
            index.aggregate();
        }
    }
}

/// Refuses a request that its user may not make.
pub(crate) fn check_request(
    inner: &Inner,
    user: &User,
    method: &Method,
    path: &str,
    target: &PathTarget,
    query: &Query,
) -> Result<(), ApiError> {
    let check = |asked: &Attributes<'_>| inner.access.check(&inner.store, user, asked);
    match target {
        PathTarget::Resource(resource) => {
            let selected = selected_name(query);
            check(&Attributes::of(method, resource, query, selected.as_deref()))
        }
        _ => {
            let plain = decode(path);
            let path = plain.as_deref().unwrap_or(path);
            let verb = method.as_str().to_ascii_lowercase();
            check(&Attributes { verb: &verb, target: Target::Path(path) })
        }
    }
}

impl ApiServer {
    /// What was granted to a user by name and, by what the log has seen,
    /// was never needed: a line for each verb and resource of each rule. Of what
    /// the user has by belonging to a group, nothing is said.
    pub fn unused_permissions(&self, user: &User, log: &AuditLog) -> Vec<String> {
        let inner = &self.inner;
        let known = inner.access.known(&inner.store);
        let used = log.allowed(&user.name);
        let is_used = |part: &Rule| used.iter().any(|record| part.allows(&attributes(record)));
        let mut lines = Vec::new();
        for (described, rules) in known.index.granted_by_name(&user.name) {
            let unused: Vec<Rule> =
                rules.iter().flat_map(Rule::parts).filter(|part| !is_used(part)).collect();
            lines.extend(
                rule::lines(&unused).into_iter().map(|line| format!("{described}: {line}")),
            );
        }
        lines
    }
}

fn record(user: &User, asked: &Attributes<'_>, decision: &Decision) -> Record {
    let granted_by = match decision {
        Decision::Granted(grantor) => {
            Some(GrantedBy { binding: grantor.binding(), role: grantor.role(), rule: grantor.rule })
        }
        Decision::Privileged | Decision::Denied => None,
    };
    let mut record = Record {
        allowed: decision.is_allowed(),
        user: user.name.clone(),
        verb: asked.verb.to_owned(),
        granted_by,
        ..Record::default()
    };
    match asked.target {
        Target::Path(path) => path.clone_into(&mut record.path),
        Target::Resource { group, resource, subresource, namespace, name } => {
            group.clone_into(&mut record.group);
            resource.clone_into(&mut record.resource);
            subresource.clone_into(&mut record.subresource);
            namespace.clone_into(&mut record.namespace);
            name.clone_into(&mut record.name);
        }
    }
    record
}

fn attributes(record: &Record) -> Attributes<'_> {
    let target = if record.path.is_empty() {
        Target::Resource {
            group: &record.group,
            resource: &record.resource,
            subresource: &record.subresource,
            namespace: &record.namespace,
            name: &record.name,
        }
    } else {
        Target::Path(&record.path)
    };
    Attributes { verb: &record.verb, target }
}

#[cfg(test)]
mod tests;
