//! Pods of a template, and what tells templates apart.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use steersman_api::wire::template_text;

use super::ownership::owner_reference;
use crate::cluster::Watched;

/// The label that tells the pods of a deployment's templates apart.
pub(crate) const HASH_LABEL: &str = "pod-template-hash";
/// The label that does the same for stateful sets and daemon sets.
pub(crate) const REVISION_LABEL: &str = "controller-revision-hash";

/// Letters and digits of which no words are made.
const SAFE: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A pod of the template whose name the API chooses.
pub(crate) fn pod_of<O: Watched>(template: &PodTemplateSpec, owner: &O) -> Pod {
    let written = template.metadata.as_ref();
    let base = owner.metadata().name.as_deref().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{base}-")),
            namespace: owner.metadata().namespace.clone(),
            labels: written.and_then(|m| m.labels.clone()),
            annotations: written.and_then(|m| m.annotations.clone()),
            finalizers: written.and_then(|m| m.finalizers.clone()),
            owner_references: Some(vec![owner_reference(owner)]),
            ..Default::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

/// The template with one more label.
pub(crate) fn labelled(template: &PodTemplateSpec, key: &str, value: &str) -> PodTemplateSpec {
    let mut template = template.clone();
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(key.to_owned(), value.to_owned());
    template
}

/// What tells the template from others. With `collisions`, another such name
/// for the same template.
pub(crate) fn template_hash(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let mut text = template_text(template);
    if let Some(n) = collisions {
        text.push_str(&n.to_string());
    }
    let digest = text
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let safe = |digit: u8| char::from(SAFE[usize::from(digit) % SAFE.len()]);
    digest.to_string().bytes().map(safe).collect()
}

/// Whether the selector matches the object's labels.
pub(crate) fn selects(selector: &LabelSelector, metadata: &ObjectMeta) -> bool {
    let none = BTreeMap::new();
    labels_match(selector, metadata.labels.as_ref().unwrap_or(&none))
}

/// Whether the selector matches the labels. An empty selector matches
/// everything, an operator that does not exist nothing.
fn labels_match(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let equal =
        selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    equal
        && selector.match_expressions.iter().flatten().all(|requirement| {
            let value = labels.get(&requirement.key);
            let listed =
                |v: &String| requirement.values.as_ref().is_some_and(|values| values.contains(v));
            match requirement.operator.as_str() {
                "In" => value.is_some_and(listed),
                "NotIn" => !value.is_some_and(listed),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}
