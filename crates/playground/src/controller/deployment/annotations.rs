//! What deployments write on their replica sets.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Which revision of its deployment a set is.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// Which revisions it has been before.
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// How many pods the deployment was to have when the set was sized.
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// How many it could have had at most.
const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// What is the deployment's own business.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];

/// The revision, 0 when there is none.
pub(super) fn revision(metadata: &ObjectMeta) -> i64 {
    number(metadata, REVISION).unwrap_or_default()
}

/// The number of replicas that the set was sized for.
pub(super) fn desired(set: &ReplicaSet) -> Option<i32> {
    number(&set.metadata, DESIRED).and_then(|n| i32::try_from(n).ok())
}

/// The most pods that the deployment could have when the set was sized.
pub(super) fn max(set: &ReplicaSet) -> Option<i32> {
    number(&set.metadata, MAX).and_then(|n| i32::try_from(n).ok())
}

/// Gives the current set the deployment's annotations, and its revision. The
/// revision that it had goes into its history. Sizes are written with the size
/// only, unless there are none yet.
pub(super) fn copy(
    annotations: &mut BTreeMap<String, String>,
    deployment: &Deployment,
    revision: i64,
    surge: i32,
) {
    let own = deployment.metadata.annotations.iter().flatten();
    for (key, value) in own.filter(|(key, _)| !NOT_COPIED.contains(&key.as_str())) {
        annotations.insert(key.clone(), value.clone());
    }
    let before = annotations.insert(REVISION.to_owned(), revision.to_string());
    if let Some(before) = before.filter(|before| *before != revision.to_string()) {
        let history = annotations.entry(HISTORY.to_owned()).or_default();
        if !history.is_empty() {
            history.push(',');
        }
        history.push_str(&before);
    }
    if !annotations.contains_key(DESIRED) {
        let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        sizes(annotations, replicas, surge);
    }
}

/// Says what the set is sized for.
pub(super) fn sizes(annotations: &mut BTreeMap<String, String>, replicas: i32, surge: i32) {
    annotations.insert(DESIRED.to_owned(), replicas.to_string());
    annotations.insert(MAX.to_owned(), replicas.saturating_add(surge).to_string());
}

fn number(metadata: &ObjectMeta, key: &str) -> Option<i64> {
    metadata.annotations.as_ref()?.get(key)?.parse().ok()
}
