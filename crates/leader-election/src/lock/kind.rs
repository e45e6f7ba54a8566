//! Which kinds of objects locks are made of.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// What the lock is. Replicas of one program must agree on it; to change it, use
/// the combined kind in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockKind {
    /// A `Lease`: the only one that Kubernetes' components still know.
    #[default]
    Leases,
    /// An annotation of an `Endpoints`; up to Kubernetes 1.16.
    Endpoints,
    /// An annotation of a `ConfigMap`; up to Kubernetes 1.16.
    ConfigMaps,
    /// `Endpoints` and `Leases`: respects programs that know only one of them.
    EndpointsLeases,
    /// `ConfigMaps` and `Leases`: respects programs that know only one of them.
    ConfigMapsLeases,
}

/// There is no such lock.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "invalid lock type {0:?}, allowed: leases, endpoints, configmaps, endpointsleases, configmapsleases"
)]
pub struct ParseLockKindError(pub String);

/// A kind of object that can carry a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    Lease,
    Endpoints,
    ConfigMap,
}

const NAMES: [(&str, LockKind); 5] = [
    ("leases", LockKind::Leases),
    ("endpoints", LockKind::Endpoints),
    ("configmaps", LockKind::ConfigMaps),
    ("endpointsleases", LockKind::EndpointsLeases),
    ("configmapsleases", LockKind::ConfigMapsLeases),
];

impl FromStr for LockKind {
    type Err = ParseLockKindError;

    fn from_str(text: &str) -> Result<Self, ParseLockKindError> {
        let named = NAMES.iter().find(|(name, _)| *name == text);
        named.map(|(_, kind)| *kind).ok_or_else(|| ParseLockKindError(text.to_owned()))
    }
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, kind)| kind == self).map_or("", |(name, _)| *name);
        f.write_str(name)
    }
}

impl LockKind {
    pub(super) const fn objects(self) -> (Object, Option<Object>) {
        match self {
            Self::Leases => (Object::Lease, None),
            Self::Endpoints => (Object::Endpoints, None),
            Self::ConfigMaps => (Object::ConfigMap, None),
            Self::EndpointsLeases => (Object::Endpoints, Some(Object::Lease)),
            Self::ConfigMapsLeases => (Object::ConfigMap, Some(Object::Lease)),
        }
    }
}

impl Object {
    pub(crate) const fn api_version(self) -> &'static str {
        match self {
            Self::Lease => "coordination.k8s.io/v1",
            Self::Endpoints | Self::ConfigMap => "v1",
        }
    }

    pub(crate) const fn kind(self) -> &'static str {
        match self {
            Self::Lease => "Lease",
            Self::Endpoints => "Endpoints",
            Self::ConfigMap => "ConfigMap",
        }
    }

    /// The path of its collection.
    pub(super) fn path(self, namespace: &str) -> String {
        let (base, plural) = match self {
            Self::Lease => ("/apis/coordination.k8s.io/v1", "leases"),
            Self::Endpoints => ("/api/v1", "endpoints"),
            Self::ConfigMap => ("/api/v1", "configmaps"),
        };
        format!("{base}/namespaces/{namespace}/{plural}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways_and_others_are_refused() {
        for (name, kind) in NAMES {
            assert_eq!(name.parse(), Ok(kind));
            assert_eq!(kind.to_string(), name);
        }
        let error = "Leases".parse::<LockKind>().unwrap_err();
        assert!(error.to_string().starts_with("invalid lock type \"Leases\", allowed: leases, "));
    }
}
