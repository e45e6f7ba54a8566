//! Pod templates, and the selectors that have to match them.

use serde_json::{Value, json};
use steersman_apimachinery::error::FieldError;
use steersman_apimachinery::rules::Column;

use super::cells::{container_images, container_names};
use crate::fields::{at, entries, field, number, text};
use crate::pod::{defaults, validation};
use crate::selectors;
use crate::simple::{Simple, name_cell};
use crate::syntax::{label_value, qualified_name, report};

/// The rules of `podtemplates`.
pub(crate) static POD_TEMPLATE: Simple = Simple {
    default: |object| {
        if let Some(template) = object.get_mut("template") {
            defaults::template(template);
        }
    },
    validate: |new, _| {
        let mut errors = Vec::new();
        check(new, "template", &mut errors);
        errors
    },
    columns: &[
        Column::name(),
        Column::text("Containers", "Names of the template's containers"),
        Column::text("Images", "Images of the template's containers"),
        Column::text("Pod Labels", "Labels of pods that are made of the template"),
    ],
    cells: |object, _| {
        vec![
            name_cell(object),
            container_names(object, "/template"),
            container_images(object, "/template"),
            selectors::map_cell(object, "/template/metadata/labels"),
        ]
    },
    ..Simple::NEW
};

/// Checks the pod template at a dotted path.
pub(super) fn check(object: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let pointer = format!("/{}", path.replace('.', "/"));
    let spec = object.pointer(&format!("{pointer}/spec")).unwrap_or(&Value::Null);
    for (key, value) in entries(object, &format!("{pointer}/metadata/labels")) {
        let path = format!("{path}.metadata.labels");
        report(errors, &path, key, qualified_name(key));
        let value = value.as_str().unwrap_or_default();
        report(errors, &path, value, label_value(value));
    }
    errors.extend(validation::check_spec(spec, &format!("{path}.spec")));
}

/// Checks the template of pods that run until they are deleted.
pub(super) fn check_restarting(object: &Value, kind: &str, errors: &mut Vec<FieldError>) {
    check(object, "spec.template", errors);
    let spec = object.pointer("/spec/template/spec").unwrap_or(&Value::Null);
    let policy = field(spec, "restartPolicy");
    if matches!(policy, "OnFailure" | "Never") {
        let path = "spec.template.spec.restartPolicy";
        errors.push(FieldError::not_supported(path, policy, &["Always"]));
    }
    if number(spec, "/activeDeadlineSeconds").is_some() {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden("spec.template.spec.activeDeadlineSeconds", &why));
    }
}

/// Checks `spec.selector`, and that it selects the pods of the template.
pub(super) fn check_selector(object: &Value, kind: &str, errors: &mut Vec<FieldError>) {
    let Some(selector) = at(object, "/spec/selector") else {
        errors.push(FieldError::required("spec.selector", ""));
        return;
    };
    let before = errors.len();
    selectors::check(selector, "spec.selector", errors);
    if errors.len() > before {
        return;
    }
    if selectors::is_empty(selector) {
        let why = format!("empty selector is invalid for {kind}");
        errors.push(FieldError::invalid("spec.selector", selector.clone(), &why));
        return;
    }
    let labels = at(object, "/spec/template/metadata/labels");
    if !selectors::matches(selector, labels) {
        let found = labels.cloned().unwrap_or_default();
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", found, why));
    }
}

/// The selector of an object as one line, for `status.selector` of its scale.
pub(super) fn selector_line(object: &Value) -> String {
    match at(object, "/spec/selector") {
        // Replication controllers have a map of labels in its place.
        Some(selector) if text(object, "/kind") == "ReplicationController" => {
            selectors::line(&json!({"matchLabels": selector}))
        }
        Some(selector) => selectors::line(selector),
        None => String::new(),
    }
}
