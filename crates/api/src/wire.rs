//! Kubernetes' own types, read from JSON.
//!
//! Reading them is written once per type here, and not generically by every
//! crate that reads some: the types are large, and so is the code that serde
//! makes for them. The same holds for writing a pod template.

use k8s_openapi::api::{
    apps::v1 as apps_v1, batch::v1 as batch_v1, coordination::v1 as coordination_v1,
    core::v1 as core_v1, policy::v1 as policy_v1, scheduling::v1 as scheduling_v1,
    storage::v1 as storage_v1,
};
use serde_json::Value;

use crate::problem::{FieldPath, Problem};
use crate::strict;

/// A type of the API that can be read.
pub trait WireObject: Sized {
    /// Reads an object. What was wrong is among the problems and counts as not
    /// set, unknown fields are among them too; `None` when nothing can be made
    /// of the rest.
    fn from_json(value: &Value, problems: &mut Vec<Problem>) -> Option<Self>;
}

macro_rules! wire_objects {
    ($($wire:ty),* $(,)?) => {
        $(impl WireObject for $wire {
            fn from_json(value: &Value, problems: &mut Vec<Problem>) -> Option<Self> {
                strict::decode(value, &FieldPath::root(), problems)
            }
        })*
    };
}

wire_objects!(
    core_v1::Pod,
    core_v1::Node,
    core_v1::Namespace,
    core_v1::PodTemplateSpec,
    core_v1::Service,
    core_v1::ServiceAccount,
    core_v1::ReplicationController,
    apps_v1::ReplicaSet,
    apps_v1::Deployment,
    apps_v1::StatefulSet,
    apps_v1::DaemonSet,
    apps_v1::ControllerRevision,
    batch_v1::Job,
    batch_v1::CronJob,
    coordination_v1::Lease,
    policy_v1::PodDisruptionBudget,
    scheduling_v1::PriorityClass,
    core_v1::PersistentVolume,
    core_v1::PersistentVolumeClaim,
    storage_v1::StorageClass,
    storage_v1::CSINode,
    storage_v1::CSIDriver,
    storage_v1::CSIStorageCapacity,
    storage_v1::VolumeAttachment,
);

/// The JSON text of a template, from which names are made that tell templates
/// apart. Fields stand in the order of the type.
pub fn template_text(template: &core_v1::PodTemplateSpec) -> String {
    // An object of the API always has a JSON form.
    serde_json::to_string(template).unwrap_or_default()
}
