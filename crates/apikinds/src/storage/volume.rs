//! `persistentvolumes`.

use serde_json::{Value, json};
use steersman_api::quantity::Quantity;
use steersman_apimachinery::error::FieldError;
use steersman_apimachinery::rules::Column;

use super::{check_modes, check_volume_mode, short_modes};
use crate::fields::{at, default, items, object_at, quantities, same, set, text};
use crate::pod::validation::check_node_term;
use crate::simple::{Simple, age_cell, name_cell};

/// The rules.
pub(crate) static PERSISTENT_VOLUME: Simple = Simple {
    generation: false,
    default: |object| {
        let Some(spec) = object_at(object, "/spec") else { return };
        default(spec, "persistentVolumeReclaimPolicy", "Retain");
        default(spec, "volumeMode", "Filesystem");
        quantities(spec, "/capacity");
        if let Some(path) = object_at(spec, "/hostPath") {
            default(path, "type", "");
        }
    },
    create: |object, request| {
        let now = request.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        set(object, "status", json!({"phase": "Pending", "lastPhaseTransitionTime": now}));
        Ok(())
    },
    validate,
    finalizers: &["kubernetes.io/pv-protection"],
    columns: &[
        Column::name(),
        Column::text("Capacity", "How much it holds"),
        Column::text("Access Modes", "How nodes may mount it"),
        Column::text("Reclaim Policy", "What becomes of it after its claim"),
        Column::text("Status", "Whether a claim has it"),
        Column::text("Claim", "That claim"),
        Column::text("StorageClass", "Its class"),
        Column::text("VolumeAttributesClass", "The class of its attributes"),
        Column::text("Reason", "Why it failed"),
        Column::text("Age", "Time since creation"),
        Column::text("VolumeMode", "File system or raw").wide(),
    ],
    cells: |object, now| {
        let or_unset = |text: &str| json!(if text.is_empty() { "<unset>" } else { text });
        let claim = match text(object, "/spec/claimRef/name") {
            "" => String::new(),
            name => format!("{}/{name}", text(object, "/spec/claimRef/namespace")),
        };
        let phase = match at(object, "/metadata/deletionTimestamp") {
            Some(_) => "Terminating",
            None => text(object, "/status/phase"),
        };
        vec![
            name_cell(object),
            text(object, "/spec/capacity/storage").into(),
            short_modes(object, "/spec/accessModes").into(),
            text(object, "/spec/persistentVolumeReclaimPolicy").into(),
            phase.into(),
            claim.into(),
            text(object, "/spec/storageClassName").into(),
            or_unset(text(object, "/spec/volumeAttributesClassName")),
            text(object, "/status/reason").into(),
            age_cell(object, now),
            or_unset(text(object, "/spec/volumeMode")),
        ]
    },
    ..Simple::NEW
};

fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_modes(new, &mut errors);
    check_volume_mode(new, &mut errors);
    let capacity = at(new, "/spec/capacity/storage");
    let parsed = capacity.and_then(Value::as_str).and_then(|text| Quantity::parse(text).ok());
    match (capacity, parsed) {
        (None, _) => {
            let why = "supported values: \"storage\"";
            errors.push(FieldError::required("spec.capacity", why));
        }
        (Some(found), amount) => {
            if amount.is_none_or(|amount| amount <= Quantity::ZERO) {
                let path = "spec.capacity[storage]";
                errors.push(FieldError::invalid(path, found.clone(), "must be greater than zero"));
            }
        }
    }
    let policy = text(new, "/spec/persistentVolumeReclaimPolicy");
    let allowed = ["Delete", "Recycle", "Retain"];
    if !allowed.contains(&policy) {
        let path = "spec.persistentVolumeReclaimPolicy";
        errors.push(FieldError::not_supported(path, policy, &allowed));
    }
    check_node_affinity(new, old, &mut errors);
    errors
}

/// The nodes that reach a volume are stated once; a local one has to.
fn check_node_affinity(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    const PATH: &str = "spec.nodeAffinity";
    let affinity = at(new, "/spec/nodeAffinity");
    let terms = items(new, "/spec/nodeAffinity/required/nodeSelectorTerms");
    if affinity.is_some() && terms.is_empty() {
        let path = format!("{PATH}.required.nodeSelectorTerms");
        errors.push(FieldError::required(path, "must have at least one node selector term"));
    }
    for (i, term) in terms.iter().enumerate() {
        check_node_term(term, &format!("{PATH}.required.nodeSelectorTerms[{i}]"), errors);
    }
    if at(new, "/spec/local").is_some() && terms.is_empty() {
        errors.push(FieldError::required(PATH, "Local volume requires node affinity"));
    }
    let before = old.and_then(|old| at(old, "/spec/nodeAffinity"));
    if before.is_some() && !same(before, affinity) {
        let found = affinity.cloned().unwrap_or_default();
        errors.push(FieldError::invalid(
            PATH,
            found,
            "field is immutable, except for updating from beta label to GA",
        ));
    }
}
