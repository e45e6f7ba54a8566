//! Roles and bindings, by who has them.
//!
//! It is kept up to date from the log of the store: a decision looks at the
//! bindings of the user and of the user's groups, and at no others.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use steersman_apimachinery::selector::{self, LabelSelector};

use super::attributes::{Attributes, Target};
use super::rule::Rule;
use crate::auth::{User, service_account_name};
use crate::meta;
use crate::store::{ChangeKind, key};

/// Roles and bindings by name, and bindings by subject.
#[derive(Default)]
pub(crate) struct Index {
    /// By the key that the store keeps them under.
    roles: BTreeMap<String, Role>,
    cluster_roles: BTreeMap<String, Role>,
    bindings: BTreeMap<(Scope, String), Arc<Binding>>,
    users: BTreeMap<String, Grants>,
    groups: BTreeMap<String, Grants>,
}

/// Which kind of role or binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// `ClusterRole`, `ClusterRoleBinding`.
    Cluster,
    /// `Role`, `RoleBinding`.
    Namespace,
}

/// A role with what it allows.
struct Role {
    object: Arc<Value>,
    /// Of an aggregated role: whose rules it has.
    selectors: Option<Vec<LabelSelector>>,
    rules: Arc<[Rule]>,
}

/// What somebody was bound to.
pub(crate) struct Binding {
    scope: Scope,
    namespace: String,
    name: String,
    role: RoleRef,
    subjects: Vec<Subject>,
}

/// The role that a binding names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoleRef {
    pub(crate) scope: Scope,
    /// The key that the store keeps it under.
    key: String,
    pub(crate) name: String,
}

/// Who is bound.
struct Subject {
    is_group: bool,
    /// The name of the user or group.
    name: String,
    /// For people: `ServiceAccount "name/namespace"`.
    described: String,
}

/// What somebody has.
#[derive(Default)]
struct Grants {
    everywhere: Vec<Grant>,
    by_namespace: BTreeMap<String, Vec<Grant>>,
}

#[derive(Clone)]
struct Grant {
    binding: Arc<Binding>,
    subject: usize,
}

/// Why something is allowed.
#[derive(Clone)]
pub(crate) struct Grantor {
    binding: Arc<Binding>,
    subject: usize,
    /// Which rule of the role, counted from 0.
    pub(crate) rule: usize,
}

impl Index {
    /// Learns of a role. `change` says whether it is gone.
    pub(crate) fn see_role(
        &mut self,
        scope: Scope,
        key: &str,
        object: &Arc<Value>,
        change: ChangeKind,
    ) {
        let roles = match scope {
            Scope::Cluster => &mut self.cluster_roles,
            Scope::Namespace => &mut self.roles,
        };
        match change {
            ChangeKind::Deleted => drop(roles.remove(key)),
            ChangeKind::Added | ChangeKind::Modified => {
                roles.insert(key.to_owned(), Role::of(object));
            }
        }
    }

    /// Learns of a binding.
    pub(crate) fn see_binding(
        &mut self,
        scope: Scope,
        key: &str,
        object: &Value,
        change: ChangeKind,
    ) {
        let place = (scope, key.to_owned());
        if let Some(old) = self.bindings.remove(&place) {
            self.unbind(&old);
        }
        if change != ChangeKind::Deleted {
            let binding = Arc::new(Binding::of(scope, object));
            self.bind(&binding);
            self.bindings.insert(place, binding);
        }
    }

    /// Forgets all roles of a scope.
    pub(crate) fn without_roles(mut self, scope: Scope) -> Self {
        match scope {
            Scope::Cluster => self.cluster_roles.clear(),
            Scope::Namespace => self.roles.clear(),
        }
        self
    }

    /// Forgets all bindings of a scope.
    pub(crate) fn without_bindings(mut self, scope: Scope) -> Self {
        let (gone, stay): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.bindings)
            .into_iter()
            .partition(|((found, _), _)| *found == scope);
        self.bindings = stay;
        for binding in gone.values() {
            self.unbind(binding);
        }
        self
    }

    /// Gives aggregated roles the rules of those that they are made of. Has to
    /// be called when cluster roles have changed.
    pub(crate) fn aggregate(&mut self) {
        let aggregated = self.cluster_roles.iter().filter(|(_, role)| role.selectors.is_some());
        let names: Vec<String> = aggregated.map(|(name, _)| name.clone()).collect();
        for name in names {
            let mut rules = Vec::new();
            self.collect(&name, &mut vec![name.clone()], &mut rules);
            if let Some(role) = self.cluster_roles.get_mut(&name) {
                role.rules = rules.into();
            }
        }
    }

    /// The rules of the roles that an aggregated one selects, each once.
    fn collect(&self, name: &str, visited: &mut Vec<String>, rules: &mut Vec<Rule>) {
        let Some(selectors) = self.cluster_roles.get(name).and_then(|role| role.selectors.as_ref())
        else {
            return;
        };
        for (other, role) in &self.cluster_roles {
            let labels = meta::labels(&role.object);
            if visited.contains(other) || !selectors.iter().any(|wanted| wanted.matches(labels)) {
                continue;
            }
            visited.push(other.clone());
            if role.selectors.is_some() {
                self.collect(other, visited, rules);
                continue;
            }
            for rule in role.rules.iter() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }

    /// Which rule allows this to the user, if one does.
    pub(crate) fn find(&self, user: &User, asked: &Attributes<'_>) -> Option<Grantor> {
        let namespace = match asked.target {
            Target::Resource { namespace, .. } => namespace,
            Target::Path(_) => "",
        };
        self.grants(user, namespace).find_map(|grant| {
            let rules = self.rules(&grant.binding.role)?;
            let rule = rules.iter().position(|rule| rule.allows(asked))?;
            Some(Grantor { binding: grant.binding.clone(), subject: grant.subject, rule })
        })
    }

    /// All rules that the user has in a namespace; without one, in the cluster.
    pub(crate) fn held(&self, user: &User, namespace: &str) -> Vec<(bool, &Rule)> {
        let of_grant = |grant: &'_ Grant| {
            let is_local = grant.binding.scope == Scope::Namespace;
            let rules = self.rules(&grant.binding.role).unwrap_or_default();
            rules.iter().map(move |rule| (is_local, rule))
        };
        self.grants(user, namespace).flat_map(of_grant).collect()
    }

    /// What was granted to somebody by name: binding and role, for people, and
    /// the role's rules.
    pub(crate) fn granted_by_name(&self, user: &str) -> Vec<(String, &[Rule])> {
        let Some(grants) = self.users.get(user) else { return Vec::new() };
        let all = grants.everywhere.iter().chain(grants.by_namespace.values().flatten());
        let of_grant = |grant: &'_ Grant| {
            let binding = &grant.binding;
            let described = format!(
                "{} of {} {:?}",
                binding.described(),
                binding.role.kind(),
                binding.role.name
            );
            (described, self.rules(&binding.role).unwrap_or_default())
        };
        all.map(of_grant).collect()
    }

    /// The rules of a role; `None` if there is no such role.
    pub(crate) fn rules(&self, role: &RoleRef) -> Option<&[Rule]> {
        let roles = match role.scope {
            Scope::Cluster => &self.cluster_roles,
            Scope::Namespace => &self.roles,
        };
        roles.get(&role.key).map(|role| &*role.rules)
    }

    /// What the user and the user's groups have: everywhere first.
    fn grants<'a>(&'a self, user: &'a User, namespace: &'a str) -> impl Iterator<Item = &'a Grant> {
        let holders = move || {
            let groups = user.groups.iter().filter_map(|group| self.groups.get(group));
            self.users.get(&user.name).into_iter().chain(groups)
        };
        let local = holders()
            .filter_map(move |grants| grants.by_namespace.get(namespace))
            .flatten()
            .filter(move |_| !namespace.is_empty());
        holders().flat_map(|grants| &grants.everywhere).chain(local)
    }

    fn bind(&mut self, binding: &Arc<Binding>) {
        for (subject, who) in binding.subjects.iter().enumerate() {
            let holders = if who.is_group { &mut self.groups } else { &mut self.users };
            let grants = holders.entry(who.name.clone()).or_default();
            let list = match binding.scope {
                Scope::Cluster => &mut grants.everywhere,
                Scope::Namespace => {
                    grants.by_namespace.entry(binding.namespace.clone()).or_default()
                }
            };
            let at = list.partition_point(|grant| grant.binding.name <= binding.name);
            list.insert(at, Grant { binding: binding.clone(), subject });
        }
    }

    fn unbind(&mut self, binding: &Arc<Binding>) {
        for who in &binding.subjects {
            let holders = if who.is_group { &mut self.groups } else { &mut self.users };
            let Some(grants) = holders.get_mut(&who.name) else { continue };
            let stays = |grant: &Grant| !Arc::ptr_eq(&grant.binding, binding);
            grants.everywhere.retain(stays);
            grants.by_namespace.retain(|_, list| {
                list.retain(stays);
                !list.is_empty()
            });
            if grants.everywhere.is_empty() && grants.by_namespace.is_empty() {
                holders.remove(&who.name);
            }
        }
    }
}

impl Role {
    fn of(object: &Arc<Value>) -> Self {
        let selectors = object.pointer("/aggregationRule/clusterRoleSelectors");
        let selectors = selectors.and_then(Value::as_array).map(|selectors| {
            selectors.iter().filter_map(|wanted| selector::from_value(wanted).ok()).collect()
        });
        // What an aggregated role says itself does not count.
        let rules = match &selectors {
            Some(_) => Vec::new(),
            None => Rule::all_of(object),
        };
        Self { object: object.clone(), selectors, rules: rules.into() }
    }
}

impl RoleRef {
    /// The role that a binding in a namespace names.
    pub(crate) fn of(binding: &Value) -> Self {
        let text = |path: &str| binding.pointer(path).and_then(Value::as_str).unwrap_or("");
        let name = text("/roleRef/name");
        match text("/roleRef/kind") {
            "Role" => Self {
                scope: Scope::Namespace,
                key: key(meta::namespace(binding), name),
                name: name.to_owned(),
            },
            _ => Self { scope: Scope::Cluster, key: name.to_owned(), name: name.to_owned() },
        }
    }

    pub(crate) fn plural(&self) -> &'static str {
        match self.scope {
            Scope::Cluster => "clusterroles",
            Scope::Namespace => "roles",
        }
    }

    fn kind(&self) -> &'static str {
        match self.scope {
            Scope::Cluster => "ClusterRole",
            Scope::Namespace => "Role",
        }
    }
}

impl Binding {
    fn of(scope: Scope, object: &Value) -> Self {
        let subjects = object.get("subjects").and_then(Value::as_array);
        let namespace = meta::namespace(object);
        Self {
            scope,
            namespace: namespace.to_owned(),
            name: meta::name(object).to_owned(),
            role: RoleRef::of(object),
            subjects: subjects
                .into_iter()
                .flatten()
                .filter_map(|subject| Subject::of(subject, namespace))
                .collect(),
        }
    }

    /// `ClusterRoleBinding "name"`, `RoleBinding "name/namespace"`.
    fn described(&self) -> String {
        match self.scope {
            Scope::Cluster => format!("ClusterRoleBinding {:?}", self.name),
            Scope::Namespace => {
                format!("RoleBinding {:?}", format!("{}/{}", self.name, self.namespace))
            }
        }
    }
}

impl Subject {
    fn of(subject: &Value, namespace: &str) -> Option<Self> {
        let text = |field: &str| subject.get(field).and_then(Value::as_str).unwrap_or("");
        let (kind, name) = (text("kind"), text("name"));
        match kind {
            "User" | "Group" => Some(Self {
                is_group: kind == "Group",
                name: name.to_owned(),
                described: format!("{kind} {name:?}"),
            }),
            "ServiceAccount" => {
                let own = text("namespace");
                let namespace = if own.is_empty() { namespace } else { own };
                Some(Self {
                    is_group: false,
                    name: service_account_name(namespace, name),
                    described: format!("{kind} {:?}", format!("{name}/{namespace}")),
                })
            }
            _ => None,
        }
    }
}

impl Grantor {
    /// `RBAC: allowed by …`, as the reference tells it.
    pub(crate) fn reason(&self) -> String {
        format!(
            "RBAC: allowed by {} of {} {:?} to {}",
            self.binding.described(),
            self.binding.role.kind(),
            self.binding.role.name,
            self.binding.subjects[self.subject].described,
        )
    }

    /// `ClusterRoleBinding "name"`.
    pub(crate) fn binding(&self) -> String {
        self.binding.described()
    }

    /// `ClusterRole "name"`.
    pub(crate) fn role(&self) -> String {
        format!("{} {:?}", self.binding.role.kind(), self.binding.role.name)
    }
}
