//! `namespaces`.

use serde_json::{Value, json};
use steersman_apimachinery::rules::Column;

use crate::fields::{child, default, set, text};
use crate::simple::{Simple, age_cell, name_cell};

/// The label that every namespace carries: its own name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The rules.
pub(crate) static NAMESPACE: Simple = Simple {
    generation: false,
    default: |object| {
        let own = text(object, "/metadata/name").to_owned();
        if own.is_empty() {
            return;
        }
        let labels = child(object, "metadata").and_then(|metadata| child(metadata, "labels"));
        if let Some(labels) = labels {
            set(labels, NAME_LABEL, own);
        }
    },
    create: |object, _| {
        set(object, "status", json!({"phase": "Active"}));
        // What keeps a namespace until everything in it is gone.
        if let Some(spec) = child(object, "spec") {
            default(spec, "finalizers", json!(["kubernetes"]));
        }
        Ok(())
    },
    update: |new, old, _| {
        set(new, "spec", old.get("spec").cloned().unwrap_or_else(|| json!({})));
        Ok(())
    },
    selectable: &["status.phase"],
    columns: &[
        Column::name(),
        Column::text("Status", "Whether the namespace is in use"),
        Column::text("Age", "Time since creation"),
    ],
    cells: |object, now| {
        let phase: Value = text(object, "/status/phase").into();
        vec![name_cell(object), phase, age_cell(object, now)]
    },
    ..Simple::NEW
};

#[cfg(test)]
mod tests {
    use steersman_apimachinery::rules::{Part, Rules};

    use super::*;
    use crate::cluster::Cluster;

    #[test]
    fn namespaces_carry_their_name_and_keep_their_finalizers() {
        let cluster = Cluster::default();
        let request = cluster.request("", "namespaces");
        let mut namespace = json!({"metadata": {"name": "a", "labels": {NAME_LABEL: "forged"}}});
        NAMESPACE.default(&mut namespace);
        NAMESPACE.prepare_create(&mut namespace, &request).expect("admitted");
        let expected = json!({
            "metadata": {"name": "a", "labels": {NAME_LABEL: "a"}},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        });
        assert_eq!(namespace, expected);
        let mut changed = json!({"metadata": {"name": "a"}, "status": {"phase": "Active"}});
        NAMESPACE.default(&mut changed);
        NAMESPACE.prepare_update(&mut changed, &namespace, Part::Main, &request).expect("admitted");
        assert_eq!(changed, expected);
    }
}
