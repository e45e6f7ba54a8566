//! One pod from a template.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core_v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use steersman_api::wire::template_text;

use super::{key, names};

/// The label that tells the pods of a deployment's templates apart.
pub(super) const TEMPLATE_HASH_LABEL: &str = "pod-template-hash";
/// The label that does the same for stateful sets and daemon sets.
pub(super) const REVISION_LABEL: &str = "controller-revision-hash";

/// The controller that makes pods.
#[derive(Debug)]
pub(super) struct Owner<'a> {
    pub(super) api_version: &'static str,
    pub(super) kind: &'static str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) uid: String,
}

impl<'a> Owner<'a> {
    pub(super) fn new(
        api_version: &'static str,
        kind: &'static str,
        metadata: &'a ObjectMeta,
    ) -> Self {
        let (namespace, name) = key(metadata);
        let uid = metadata.uid.clone().filter(|uid| !uid.is_empty());
        let uid = uid.unwrap_or_else(|| names::uid(&[kind, namespace, name]));
        Self { api_version, kind, namespace, name, uid }
    }

    pub(super) fn reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.api_version.to_owned(),
            kind: self.kind.to_owned(),
            name: self.name.to_owned(),
            uid: self.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }
}

/// A pod of that name, owned by `owner`.
pub(super) fn pod(
    template: &core_v1::PodTemplateSpec,
    owner: &Owner<'_>,
    name: String,
) -> core_v1::Pod {
    let written = template.metadata.as_ref();
    core_v1::Pod {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(owner.namespace.to_owned()),
            labels: written.and_then(|m| m.labels.clone()),
            annotations: written.and_then(|m| m.annotations.clone()),
            owner_references: Some(vec![owner.reference()]),
            ..Default::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

/// The template with further labels.
pub(super) fn labelled(
    template: &core_v1::PodTemplateSpec,
    more: impl IntoIterator<Item = (&'static str, String)>,
) -> core_v1::PodTemplateSpec {
    let mut template = template.clone();
    let metadata = template.metadata.get_or_insert_default();
    add_labels(&mut metadata.labels, more);
    template
}

pub(super) fn add_labels(
    labels: &mut Option<BTreeMap<String, String>>,
    more: impl IntoIterator<Item = (&'static str, String)>,
) {
    let more = more.into_iter().map(|(key, value)| (key.to_owned(), value));
    labels.get_or_insert_default().extend(more);
}

/// What tells the template from others.
pub(super) fn hash(template: &core_v1::PodTemplateSpec) -> String {
    names::template_hash(&template_text(template))
}
