//! What describes storage: classes, drivers, capacities, attachments.

use serde_json::{Value, json};
use steersman_apimachinery::error::FieldError;
use steersman_apimachinery::rules::Column;

use crate::fields::{at, default, field, flag, items, name, object_at, same, says, set, text};
use crate::simple::{Simple, age_cell, name_cell};

const AGE: Column = Column::text("Age", "Time since creation");
const DEFAULT_CLASS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

const fn boolean(column: Column) -> Column {
    Column { kind: "boolean", ..column }
}

/// The rules of `storageclasses`.
pub(crate) static STORAGE_CLASS: Simple = Simple {
    generation: false,
    default: |object| {
        default(object, "reclaimPolicy", "Delete");
        default(object, "volumeBindingMode", "Immediate");
    },
    validate: validate_class,
    columns: &[
        Column::name(),
        Column::text("Provisioner", "What makes volumes of the class"),
        Column::text("ReclaimPolicy", "What becomes of them after their claims"),
        Column::text("VolumeBindingMode", "When volumes are found for claims"),
        boolean(Column::text("AllowVolumeExpansion", "Whether volumes may grow")),
        AGE,
    ],
    cells: |object, now| {
        let is_default =
            DEFAULT_CLASS.iter().any(|key| says(object, "/metadata/annotations", key, "true"));
        let note = if is_default { " (default)" } else { "" };
        vec![
            format!("{}{note}", name(object)).into(),
            field(object, "provisioner").into(),
            field(object, "reclaimPolicy").into(),
            field(object, "volumeBindingMode").into(),
            flag(object, "/allowVolumeExpansion").into(),
            age_cell(object, now),
        ]
    },
    ..Simple::NEW
};

fn validate_class(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if field(new, "provisioner").is_empty() {
        errors.push(FieldError::required("provisioner", ""));
    }
    let choices: [(&str, &[&str]); 2] = [
        ("reclaimPolicy", &["Delete", "Retain"]),
        ("volumeBindingMode", &["Immediate", "WaitForFirstConsumer"]),
    ];
    for (name, allowed) in choices {
        let found = field(new, name);
        if !allowed.contains(&found) {
            errors.push(FieldError::not_supported(name, found, allowed));
        }
    }
    let Some(old) = old else { return errors };
    for name in ["parameters", "provisioner", "reclaimPolicy"] {
        if !same(new.get(name), old.get(name)) {
            let why = "updates to ".to_owned() + name + " are forbidden.";
            errors.push(FieldError::forbidden(name, &why));
        }
    }
    if field(new, "volumeBindingMode") != field(old, "volumeBindingMode") {
        let found = field(new, "volumeBindingMode");
        errors.push(FieldError::invalid("volumeBindingMode", found, "field is immutable"));
    }
    errors
}

/// The rules of `csinodes`.
pub(crate) static CSI_NODE: Simple = Simple {
    versioned_update: true,
    generation: false,
    columns: &[Column::name(), Column::number("Drivers", "How many drivers the node has"), AGE],
    cells: |object, now| {
        let n = items(object, "/spec/drivers").len();
        vec![name_cell(object), n.into(), age_cell(object, now)]
    },
    ..Simple::NEW
};

/// The rules of `csidrivers`.
pub(crate) static CSI_DRIVER: Simple = Simple {
    versioned_update: true,
    default: |object| {
        let Some(spec) = object_at(object, "/spec") else { return };
        default(spec, "attachRequired", true);
        default(spec, "podInfoOnMount", false);
        default(spec, "storageCapacity", false);
        default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        default(spec, "volumeLifecycleModes", json!(["Persistent"]));
        default(spec, "requiresRepublish", false);
        default(spec, "seLinuxMount", false);
    },
    columns: &[
        Column::name(),
        boolean(Column::text("AttachRequired", "Whether volumes are attached before mounting")),
        boolean(Column::text("PodInfoOnMount", "Whether the driver is told of the pod")),
        boolean(Column::text("StorageCapacity", "Whether the driver tells how much is free")),
        Column::text("TokenRequests", "Tokens that the driver asks for"),
        boolean(Column::text("RequiresRepublish", "Whether volumes are mounted again and again")),
        Column::text("Modes", "What kinds of volumes the driver makes"),
        AGE,
    ],
    cells: |object, now| {
        let yes = |name: &str| json!(flag(object, &format!("/spec/{name}")));
        let joined = |parts: Vec<&str>, none: &str| {
            if parts.is_empty() { none.to_owned() } else { parts.join(",") }
        };
        let requests = items(object, "/spec/tokenRequests");
        let requests = requests.iter().map(|request| field(request, "audience")).collect();
        let modes = items(object, "/spec/volumeLifecycleModes");
        vec![
            name_cell(object),
            yes("attachRequired"),
            yes("podInfoOnMount"),
            yes("storageCapacity"),
            joined(requests, "<unset>").into(),
            yes("requiresRepublish"),
            joined(modes.iter().filter_map(Value::as_str).collect(), "<none>").into(),
            age_cell(object, now),
        ]
    },
    ..Simple::NEW
};

/// The rules of `csistoragecapacities`.
pub(crate) static CSI_STORAGE_CAPACITY: Simple = Simple {
    versioned_update: true,
    generation: false,
    validate: |new, old| {
        let mut errors = Vec::new();
        let class = field(new, "storageClassName");
        if class.is_empty() {
            errors.push(FieldError::required("storageClassName", ""));
        }
        let Some(old) = old else { return errors };
        for name in ["storageClassName", "nodeTopology"] {
            if !same(new.get(name), old.get(name)) {
                let found = new.get(name).cloned().unwrap_or_default();
                errors.push(FieldError::invalid(name, found, "field is immutable"));
            }
        }
        errors
    },
    columns: &[
        Column::name(),
        Column::text("StorageClassName", "The class of volumes it is about"),
        Column::text("Capacity", "How much is free"),
    ],
    cells: |object, _| {
        let capacity = at(object, "/capacity").and_then(Value::as_str);
        vec![
            name_cell(object),
            field(object, "storageClassName").into(),
            capacity.unwrap_or("<unset>").into(),
        ]
    },
    ..Simple::NEW
};

/// The rules of `volumeattachments`.
pub(crate) static VOLUME_ATTACHMENT: Simple = Simple {
    versioned_update: true,
    generation: false,
    create: |object, _| {
        set(object, "status", json!({"attached": false}));
        Ok(())
    },
    validate: |new, old| {
        let changed = old.is_some_and(|old| !same(new.get("spec"), old.get("spec")));
        if !changed {
            return Vec::new();
        }
        let found = new.get("spec").cloned().unwrap_or_default();
        vec![FieldError::invalid("spec", found, "field is immutable")]
    },
    columns: &[
        Column::name(),
        Column::text("Attacher", "The driver that attaches"),
        Column::text("PV", "The volume"),
        Column::text("Node", "The node"),
        boolean(Column::text("Attached", "Whether it is attached")),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name_cell(object),
            text(object, "/spec/attacher").into(),
            text(object, "/spec/source/persistentVolumeName").into(),
            text(object, "/spec/nodeName").into(),
            flag(object, "/status/attached").into(),
            age_cell(object, now),
        ]
    },
    ..Simple::NEW
};

/// The rules of `volumeattributesclasses`.
pub(crate) static VOLUME_ATTRIBUTES_CLASS: Simple = Simple {
    generation: false,
    validate: |new, old| {
        let mut errors = Vec::new();
        if field(new, "driverName").is_empty() {
            errors.push(FieldError::required("driverName", ""));
        }
        let Some(old) = old else { return errors };
        for name in ["driverName", "parameters"] {
            if !same(new.get(name), old.get(name)) {
                let found = new.get(name).cloned().unwrap_or_default();
                errors.push(FieldError::invalid(name, found, "field is immutable"));
            }
        }
        errors
    },
    columns: &[Column::name(), Column::text("DriverName", "The driver of the volumes"), AGE],
    cells: |object, now| {
        vec![name_cell(object), field(object, "driverName").into(), age_cell(object, now)]
    },
    ..Simple::NEW
};
