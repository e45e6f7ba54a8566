//! The classes that a playground begins with.

use std::collections::BTreeMap;

use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Who makes volumes here: [`super::provisioner`].
pub(super) const DISK: &str = "playground.steersman.dev/disk";
const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
const WAITS: &str = "WaitForFirstConsumer";

/// `standard`, whose volumes are made where the pod goes, and `immediate`, whose
/// volumes are made at once. `standard` is the default unless there is another.
pub(crate) fn classes(has_default: bool) -> Vec<StorageClass> {
    let mut standard = class("standard", WAITS);
    if !has_default {
        let annotations = BTreeMap::from([(DEFAULT.to_owned(), "true".to_owned())]);
        standard.metadata.annotations = Some(annotations);
    }
    vec![standard, class("immediate", "Immediate")]
}

/// Whether claims that say nothing of a class get this one.
pub(super) fn is_default(class: &StorageClass) -> bool {
    super::annotation(&class.metadata, DEFAULT) == Some("true")
}

/// Whether volumes of the class are found when a pod that uses them is
/// scheduled.
pub(super) fn waits(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some(WAITS)
}

fn class(name: &str, mode: &str) -> StorageClass {
    StorageClass {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..Default::default() },
        provisioner: DISK.to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        volume_binding_mode: Some(mode.to_owned()),
        ..Default::default()
    }
}
