//! Claims of persistent volumes: their class, and what they must say.

use k8s_openapi::api::{core::v1 as core_v1, storage::v1 as storage_v1};
use steersman_api::problem::{FieldPath, Problem};

/// The annotation of the class of claims that name none.
const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
/// Where the class was named before there was a field for it.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// The class of claims that name none.
#[derive(Clone, Debug, Default)]
pub struct DefaultClass(Option<String>);

impl DefaultClass {
    /// The default among `classes`. Of several the newest, as if it had been
    /// meant to replace the others, and of these the first by name.
    pub fn among<'a>(classes: impl IntoIterator<Item = &'a storage_v1::StorageClass>) -> Self {
        let is_default = |class: &&storage_v1::StorageClass| {
            let annotations = class.metadata.annotations.as_ref();
            annotations.and_then(|a| a.get(IS_DEFAULT)).is_some_and(|value| value == "true")
        };
        let age = |class: &&storage_v1::StorageClass| {
            let created = class.metadata.creation_timestamp.as_ref().map(|time| time.0);
            (std::cmp::Reverse(created), class.metadata.name.clone())
        };
        let newest = classes.into_iter().filter(is_default).min_by_key(age);
        Self(newest.and_then(|class| class.metadata.name.clone()))
    }
}

/// Admits a claim. One that names no class, and not the empty one either, gets
/// the default. A claim with a UID comes from an API server, which has done so.
pub fn admit_claim(
    claim: &mut core_v1::PersistentVolumeClaim,
    default: &DefaultClass,
    problems: &mut Vec<Problem>,
) {
    let old = claim.metadata.annotations.as_ref().and_then(|a| a.get(OLD_CLASS)).is_some();
    let stored = claim.metadata.uid.as_ref().is_some_and(|uid| !uid.is_empty());
    let at = FieldPath::from("spec");
    let Some(spec) = &mut claim.spec else {
        return problems.push(Problem::required(&at, "what the claim asks for"));
    };
    if !old && !stored && spec.storage_class_name.is_none() {
        spec.storage_class_name.clone_from(&default.0);
    }
    if spec.access_modes.as_ref().is_none_or(Vec::is_empty) {
        let at = at.field("accessModes");
        problems.push(Problem::required(&at, "at least one, for example ReadWriteOnce"));
    }
    let requests = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    if requests.is_none_or(|requests| !requests.contains_key("storage")) {
        let at = at.field("resources").field("requests").key("storage");
        problems.push(Problem::required(&at, "how much storage, for example 1Gi"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn class(name: &str, default: &str, created: &str) -> storage_v1::StorageClass {
        let class = json!({"metadata": {"name": name, "annotations": {IS_DEFAULT: default},
            "creationTimestamp": created}, "provisioner": "p"});
        serde_json::from_value(class).expect("a class")
    }

    #[track_caller]
    fn check(metadata: &Value, named: &Value, expected: Option<&str>) {
        let classes = [
            class("old", "true", "2025-01-01T00:00:00Z"),
            class("newest", "false", "2027-01-01T00:00:00Z"),
            class("new", "true", "2026-01-01T00:00:00Z"),
        ];
        let mut spec = json!({"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}});
        if !named.is_null() {
            spec["storageClassName"] = named.clone();
        }
        let claim = json!({"metadata": metadata, "spec": spec});
        let mut claim = serde_json::from_value(claim).expect("a claim");
        let mut problems = Vec::new();
        admit_claim(&mut claim, &DefaultClass::among(&classes), &mut problems);
        assert_eq!(problems, []);
        let class = claim.spec.and_then(|spec| spec.storage_class_name);
        assert_eq!(class.as_deref(), expected);
    }

    #[test]
    fn claim_that_says_nothing_of_its_class_gets_the_newest_default() {
        let new = json!({"name": "c"});
        check(&new, &Value::Null, Some("new"));
        check(&new, &json!(""), Some(""));
        check(&new, &json!("old"), Some("old"));
        check(&json!({"name": "c", "annotations": {OLD_CLASS: "x"}}), &Value::Null, None);
        check(&json!({"name": "c", "uid": "u"}), &Value::Null, None);
    }

    #[test]
    fn claim_must_say_how_much_and_how_it_is_used() {
        let mut claim = core_v1::PersistentVolumeClaim::default();
        let mut problems = Vec::new();
        admit_claim(&mut claim, &DefaultClass::default(), &mut problems);
        claim.spec = Some(core_v1::PersistentVolumeClaimSpec::default());
        admit_claim(&mut claim, &DefaultClass::default(), &mut problems);
        let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        let storage = "spec.resources.requests[\"storage\"]";
        assert_eq!(paths, ["spec", "spec.accessModes", storage]);
    }
}
