//! The table of resources: one row for each, in the order of discovery.

use steersman_apimachinery::resource::{Action, Resource, Subresource};
use steersman_apimachinery::rules::Plain;

use crate::autoscaling::HORIZONTAL_POD_AUTOSCALER;
use crate::config::{CONFIG_MAP, CONTROLLER_REVISION, RESOURCE_QUOTA, SECRET, SERVICE_ACCOUNT};
use crate::device::{RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, RESOURCE_SLICE};
use crate::event::{CoreEvents, Events};
use crate::limit_range::LIMIT_RANGE;
use crate::namespace::NAMESPACE;
use crate::network::{INGRESS, INGRESS_CLASS, NETWORK_POLICY};
use crate::node::{NODE, RUNTIME_CLASS};
use crate::pod::Pods;
use crate::row::row;
use crate::scheduling::{LEASE, POD_DISRUPTION_BUDGET, PRIORITY_CLASS};
use crate::service::{ENDPOINT_SLICE, ENDPOINTS, SERVICE};
use crate::storage::{
    CSI_DRIVER, CSI_NODE, CSI_STORAGE_CAPACITY, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS, VOLUME_ATTACHMENT, VOLUME_ATTRIBUTES_CLASS,
};
use crate::workload::{
    CRON_JOB, DAEMON_SET, DEPLOYMENT, JOB, POD_TEMPLATE, REPLICA_SET, REPLICATION_CONTROLLER,
    STATEFUL_SET,
};
use crate::{absent, rbac, webhook};

/// Every built-in resource.
pub fn resources() -> &'static [Resource] {
    RESOURCES
}

static RESOURCES: &[Resource] = &[
    row(["", "v1", "Pod"], "pods", "pod", "io.k8s.api.core.v1.Pod", &Pods)
        .short(&["po"])
        .in_categories(&["all"])
        .with_status()
        .with(POD_SUBRESOURCES)
        .without(absent::POD)
        .0,
    row(["", "v1", "Binding"], "bindings", "binding", "io.k8s.api.core.v1.Binding", &Plain)
        .through(["", "pods", "binding"])
        .0,
    row(["", "v1", "Node"], "nodes", "node", "io.k8s.api.core.v1.Node", &NODE)
        .cluster_wide()
        .short(&["no"])
        .with_status()
        .without(absent::NODE)
        .0,
    row(
        ["", "v1", "Namespace"],
        "namespaces",
        "namespace",
        "io.k8s.api.core.v1.Namespace",
        &NAMESPACE,
    )
    .cluster_wide()
    .short(&["ns"])
    .with_status()
    .with(FINALIZE)
    .0,
    row(["", "v1", "Service"], "services", "service", "io.k8s.api.core.v1.Service", &SERVICE)
        .short(&["svc"])
        .in_categories(&["all"])
        .with_status()
        .without(absent::SERVICE)
        .0,
    row(
        ["", "v1", "Endpoints"],
        "endpoints",
        "endpoints",
        "io.k8s.api.core.v1.Endpoints",
        &ENDPOINTS,
    )
    .short(&["ep"])
    .0,
    row(
        ["", "v1", "ConfigMap"],
        "configmaps",
        "configmap",
        "io.k8s.api.core.v1.ConfigMap",
        &CONFIG_MAP,
    )
    .short(&["cm"])
    .0,
    row(["", "v1", "Secret"], "secrets", "secret", "io.k8s.api.core.v1.Secret", &SECRET).0,
    row(
        ["", "v1", "ServiceAccount"],
        "serviceaccounts",
        "serviceaccount",
        "io.k8s.api.core.v1.ServiceAccount",
        &SERVICE_ACCOUNT,
    )
    .short(&["sa"])
    .with(TOKEN)
    .0,
    row(["", "v1", "Event"], "events", "event", "io.k8s.api.core.v1.Event", &CoreEvents)
        .short(&["ev"])
        .0,
    row(
        ["", "v1", "ReplicationController"],
        "replicationcontrollers",
        "replicationcontroller",
        "io.k8s.api.core.v1.ReplicationController",
        &REPLICATION_CONTROLLER,
    )
    .short(&["rc"])
    .in_categories(&["all"])
    .with_status()
    .with(SCALE)
    .0,
    row(
        ["", "v1", "PersistentVolume"],
        "persistentvolumes",
        "persistentvolume",
        "io.k8s.api.core.v1.PersistentVolume",
        &PERSISTENT_VOLUME,
    )
    .cluster_wide()
    .short(&["pv"])
    .with_status()
    .0,
    row(
        ["", "v1", "PersistentVolumeClaim"],
        "persistentvolumeclaims",
        "persistentvolumeclaim",
        "io.k8s.api.core.v1.PersistentVolumeClaim",
        &PERSISTENT_VOLUME_CLAIM,
    )
    .short(&["pvc"])
    .with_status()
    .0,
    row(
        ["", "v1", "LimitRange"],
        "limitranges",
        "limitrange",
        "io.k8s.api.core.v1.LimitRange",
        &LIMIT_RANGE,
    )
    .short(&["limits"])
    .0,
    row(
        ["", "v1", "ResourceQuota"],
        "resourcequotas",
        "resourcequota",
        "io.k8s.api.core.v1.ResourceQuota",
        &RESOURCE_QUOTA,
    )
    .short(&["quota"])
    .with_status()
    .0,
    row(
        ["", "v1", "PodTemplate"],
        "podtemplates",
        "podtemplate",
        "io.k8s.api.core.v1.PodTemplate",
        &POD_TEMPLATE,
    )
    .0,
    row(
        ["apps", "v1", "Deployment"],
        "deployments",
        "deployment",
        "io.k8s.api.apps.v1.Deployment",
        &DEPLOYMENT,
    )
    .short(&["deploy"])
    .in_categories(&["all"])
    .with_status()
    .with(SCALE)
    .0,
    row(
        ["apps", "v1", "ReplicaSet"],
        "replicasets",
        "replicaset",
        "io.k8s.api.apps.v1.ReplicaSet",
        &REPLICA_SET,
    )
    .short(&["rs"])
    .in_categories(&["all"])
    .with_status()
    .with(SCALE)
    .0,
    row(
        ["apps", "v1", "StatefulSet"],
        "statefulsets",
        "statefulset",
        "io.k8s.api.apps.v1.StatefulSet",
        &STATEFUL_SET,
    )
    .short(&["sts"])
    .in_categories(&["all"])
    .with_status()
    .with(SCALE)
    .0,
    row(
        ["apps", "v1", "DaemonSet"],
        "daemonsets",
        "daemonset",
        "io.k8s.api.apps.v1.DaemonSet",
        &DAEMON_SET,
    )
    .short(&["ds"])
    .in_categories(&["all"])
    .with_status()
    .0,
    row(
        ["apps", "v1", "ControllerRevision"],
        "controllerrevisions",
        "controllerrevision",
        "io.k8s.api.apps.v1.ControllerRevision",
        &CONTROLLER_REVISION,
    )
    .0,
    row(["batch", "v1", "Job"], "jobs", "job", "io.k8s.api.batch.v1.Job", &JOB)
        .in_categories(&["all"])
        .with_status()
        .0,
    row(
        ["batch", "v1", "CronJob"],
        "cronjobs",
        "cronjob",
        "io.k8s.api.batch.v1.CronJob",
        &CRON_JOB,
    )
    .short(&["cj"])
    .in_categories(&["all"])
    .with_status()
    .0,
    row(["events.k8s.io", "v1", "Event"], "events", "event", "io.k8s.api.events.v1.Event", &Events)
        .short(&["ev"])
        .kept_as("", "events")
        .0,
    row(
        ["coordination.k8s.io", "v1", "Lease"],
        "leases",
        "lease",
        "io.k8s.api.coordination.v1.Lease",
        &LEASE,
    )
    .0,
    row(
        ["scheduling.k8s.io", "v1", "PriorityClass"],
        "priorityclasses",
        "priorityclass",
        "io.k8s.api.scheduling.v1.PriorityClass",
        &PRIORITY_CLASS,
    )
    .cluster_wide()
    .short(&["pc"])
    .0,
    row(
        ["storage.k8s.io", "v1", "StorageClass"],
        "storageclasses",
        "storageclass",
        "io.k8s.api.storage.v1.StorageClass",
        &STORAGE_CLASS,
    )
    .cluster_wide()
    .short(&["sc"])
    .0,
    row(
        ["storage.k8s.io", "v1", "CSINode"],
        "csinodes",
        "csinode",
        "io.k8s.api.storage.v1.CSINode",
        &CSI_NODE,
    )
    .cluster_wide()
    .0,
    row(
        ["storage.k8s.io", "v1", "CSIDriver"],
        "csidrivers",
        "csidriver",
        "io.k8s.api.storage.v1.CSIDriver",
        &CSI_DRIVER,
    )
    .cluster_wide()
    .0,
    row(
        ["storage.k8s.io", "v1", "CSIStorageCapacity"],
        "csistoragecapacities",
        "csistoragecapacity",
        "io.k8s.api.storage.v1.CSIStorageCapacity",
        &CSI_STORAGE_CAPACITY,
    )
    .0,
    row(
        ["storage.k8s.io", "v1", "VolumeAttachment"],
        "volumeattachments",
        "volumeattachment",
        "io.k8s.api.storage.v1.VolumeAttachment",
        &VOLUME_ATTACHMENT,
    )
    .cluster_wide()
    .with_status()
    .0,
    row(
        ["storage.k8s.io", "v1", "VolumeAttributesClass"],
        "volumeattributesclasses",
        "volumeattributesclass",
        "io.k8s.api.storage.v1.VolumeAttributesClass",
        &VOLUME_ATTRIBUTES_CLASS,
    )
    .cluster_wide()
    .short(&["vac"])
    .0,
    row(
        ["policy", "v1", "PodDisruptionBudget"],
        "poddisruptionbudgets",
        "poddisruptionbudget",
        "io.k8s.api.policy.v1.PodDisruptionBudget",
        &POD_DISRUPTION_BUDGET,
    )
    .short(&["pdb"])
    .with_status()
    .0,
    row(
        ["resource.k8s.io", "v1", "DeviceClass"],
        "deviceclasses",
        "deviceclass",
        "io.k8s.api.resource.v1.DeviceClass",
        &Plain,
    )
    .cluster_wide()
    .0,
    row(
        ["resource.k8s.io", "v1", "ResourceClaim"],
        "resourceclaims",
        "resourceclaim",
        "io.k8s.api.resource.v1.ResourceClaim",
        &RESOURCE_CLAIM,
    )
    .with_status()
    .0,
    row(
        ["resource.k8s.io", "v1", "ResourceClaimTemplate"],
        "resourceclaimtemplates",
        "resourceclaimtemplate",
        "io.k8s.api.resource.v1.ResourceClaimTemplate",
        &RESOURCE_CLAIM_TEMPLATE,
    )
    .0,
    row(
        ["resource.k8s.io", "v1", "ResourceSlice"],
        "resourceslices",
        "resourceslice",
        "io.k8s.api.resource.v1.ResourceSlice",
        &RESOURCE_SLICE,
    )
    .cluster_wide()
    .0,
    row(
        ["rbac.authorization.k8s.io", "v1", "Role"],
        "roles",
        "role",
        "io.k8s.api.rbac.v1.Role",
        &rbac::ROLE,
    )
    .0,
    row(
        ["rbac.authorization.k8s.io", "v1", "RoleBinding"],
        "rolebindings",
        "rolebinding",
        "io.k8s.api.rbac.v1.RoleBinding",
        &rbac::ROLE_BINDING,
    )
    .0,
    row(
        ["rbac.authorization.k8s.io", "v1", "ClusterRole"],
        "clusterroles",
        "clusterrole",
        "io.k8s.api.rbac.v1.ClusterRole",
        &rbac::ROLE,
    )
    .cluster_wide()
    .0,
    row(
        ["rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"],
        "clusterrolebindings",
        "clusterrolebinding",
        "io.k8s.api.rbac.v1.ClusterRoleBinding",
        &rbac::ROLE_BINDING,
    )
    .cluster_wide()
    .0,
    row(
        ["authentication.k8s.io", "v1", "TokenReview"],
        "tokenreviews",
        "tokenreview",
        "io.k8s.api.authentication.v1.TokenReview",
        &Plain,
    )
    .cluster_wide()
    .kept_nowhere()
    .0,
    row(
        ["authentication.k8s.io", "v1", "SelfSubjectReview"],
        "selfsubjectreviews",
        "selfsubjectreview",
        "io.k8s.api.authentication.v1.SelfSubjectReview",
        &Plain,
    )
    .cluster_wide()
    .kept_nowhere()
    .0,
    row(
        ["authorization.k8s.io", "v1", "SubjectAccessReview"],
        "subjectaccessreviews",
        "subjectaccessreview",
        "io.k8s.api.authorization.v1.SubjectAccessReview",
        &Plain,
    )
    .cluster_wide()
    .kept_nowhere()
    .0,
    row(
        ["authorization.k8s.io", "v1", "SelfSubjectAccessReview"],
        "selfsubjectaccessreviews",
        "selfsubjectaccessreview",
        "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
        &Plain,
    )
    .cluster_wide()
    .kept_nowhere()
    .0,
    row(
        ["authorization.k8s.io", "v1", "LocalSubjectAccessReview"],
        "localsubjectaccessreviews",
        "localsubjectaccessreview",
        "io.k8s.api.authorization.v1.LocalSubjectAccessReview",
        &Plain,
    )
    .kept_nowhere()
    .0,
    row(
        ["authorization.k8s.io", "v1", "SelfSubjectRulesReview"],
        "selfsubjectrulesreviews",
        "selfsubjectrulesreview",
        "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
        &Plain,
    )
    .cluster_wide()
    .kept_nowhere()
    .0,
    row(
        ["admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"],
        "validatingwebhookconfigurations",
        "validatingwebhookconfiguration",
        "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration",
        &webhook::VALIDATING,
    )
    .cluster_wide()
    .in_categories(&["api-extensions"])
    .0,
    row(
        ["admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"],
        "mutatingwebhookconfigurations",
        "mutatingwebhookconfiguration",
        "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration",
        &webhook::MUTATING,
    )
    .cluster_wide()
    .in_categories(&["api-extensions"])
    .0,
    row(
        ["node.k8s.io", "v1", "RuntimeClass"],
        "runtimeclasses",
        "runtimeclass",
        "io.k8s.api.node.v1.RuntimeClass",
        &RUNTIME_CLASS,
    )
    .cluster_wide()
    .0,
    row(
        ["discovery.k8s.io", "v1", "EndpointSlice"],
        "endpointslices",
        "endpointslice",
        "io.k8s.api.discovery.v1.EndpointSlice",
        &ENDPOINT_SLICE,
    )
    .0,
    row(
        ["networking.k8s.io", "v1", "Ingress"],
        "ingresses",
        "ingress",
        "io.k8s.api.networking.v1.Ingress",
        &INGRESS,
    )
    .short(&["ing"])
    .with_status()
    .0,
    row(
        ["networking.k8s.io", "v1", "IngressClass"],
        "ingressclasses",
        "ingressclass",
        "io.k8s.api.networking.v1.IngressClass",
        &INGRESS_CLASS,
    )
    .cluster_wide()
    .0,
    row(
        ["networking.k8s.io", "v1", "NetworkPolicy"],
        "networkpolicies",
        "networkpolicy",
        "io.k8s.api.networking.v1.NetworkPolicy",
        &NETWORK_POLICY,
    )
    .short(&["netpol"])
    .0,
    row(
        ["autoscaling", "v2", "HorizontalPodAutoscaler"],
        "horizontalpodautoscalers",
        "horizontalpodautoscaler",
        "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
        &HORIZONTAL_POD_AUTOSCALER,
    )
    .short(&["hpa"])
    .in_categories(&["all"])
    .with_status()
    .0,
];

const POD_SUBRESOURCES: &[Subresource] = &[
    Subresource {
        name: "binding",
        group: "",
        version: "v1",
        kind: "Binding",
        action: Action::Perform,
    },
    Subresource {
        name: "eviction",
        group: "policy",
        version: "v1",
        kind: "Eviction",
        action: Action::Evict,
    },
];

const FINALIZE: &[Subresource] = &[Subresource {
    name: "finalize",
    group: "",
    version: "v1",
    kind: "Namespace",
    action: Action::Finalize,
}];

const TOKEN: &[Subresource] = &[Subresource {
    name: "token",
    group: "authentication.k8s.io",
    version: "v1",
    kind: "TokenRequest",
    action: Action::Perform,
}];

const SCALE: &[Subresource] = &[Subresource {
    name: "scale",
    group: "autoscaling",
    version: "v1",
    kind: "Scale",
    action: Action::View,
}];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jiff::Timestamp;
    use serde_json::json;
    use steersman_apimachinery::schema::Schema;

    use super::resources;

    #[test]
    fn rows_are_consistent() {
        let mut names = BTreeSet::new();
        for resource in resources() {
            assert!(names.insert((resource.group, resource.plural)), "{resource:?} twice");
            assert_eq!(resource.singular, resource.kind.to_lowercase(), "{resource:?}");
            assert!(resource.schema.ends_with(resource.kind), "{resource:?}");
            assert!(Schema::kubernetes().get(resource.schema).is_some(), "{resource:?}");
        }
    }

    #[test]
    fn every_row_copes_with_an_object_of_which_nothing_is_known() {
        for resource in resources() {
            for object in [json!({}), json!({"metadata": {"name": "a"}, "spec": {}}), json!([])] {
                let mut defaulted = object.clone();
                resource.rules.default(&mut defaulted);
                let once = defaulted.clone();
                resource.rules.default(&mut defaulted);
                assert_eq!(defaulted, once, "{resource:?}");
                let columns = resource.rules.columns();
                let cells = resource.rules.cells(&defaulted, Timestamp::UNIX_EPOCH);
                assert_eq!(cells.len(), columns.len(), "{resource:?}");
                let named = columns.iter().filter(|column| column.format == "name").count();
                assert_eq!(named, 1, "{resource:?}");
                for field in resource.rules.selectable_fields() {
                    assert!(resource.rules.selectable_field(&object, field).is_some(), "{field}");
                }
                assert_eq!(resource.rules.selectable_field(&object, "no.such.field"), None);
            }
        }
    }
}
