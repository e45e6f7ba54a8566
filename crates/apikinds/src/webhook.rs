//! `validatingwebhookconfigurations` and `mutatingwebhookconfigurations`. They
//! are kept, not called.

use serde_json::{Value, json};
use steersman_apimachinery::error::FieldError;
use steersman_apimachinery::rules::Column;

use crate::fields::{default, field, items, items_mut, object_at};
use crate::simple::{Simple, age_cell, name_cell};

/// The rules of configurations whose webhooks say yes or no.
pub(crate) static VALIDATING: Simple = VALIDATE_ONLY;

const VALIDATE_ONLY: Simple = Simple {
    versioned_update: true,
    default: |object| {
        items_mut(object, "/webhooks").iter_mut().for_each(default_webhook);
    },
    validate,
    columns: &[
        Column::name(),
        Column::number("Webhooks", "How many there are"),
        Column::text("Age", "Time since creation"),
    ],
    cells: |object, now| {
        let n = items(object, "/webhooks").len();
        vec![name_cell(object), n.into(), age_cell(object, now)]
    },
    ..Simple::NEW
};

/// The rules of configurations whose webhooks change objects.
pub(crate) static MUTATING: Simple = Simple {
    default: |object| {
        for webhook in items_mut(object, "/webhooks") {
            default_webhook(webhook);
            default(webhook, "reinvocationPolicy", "Never");
        }
    },
    ..VALIDATE_ONLY
};

fn default_webhook(webhook: &mut Value) {
    default(webhook, "failurePolicy", "Fail");
    default(webhook, "matchPolicy", "Equivalent");
    default(webhook, "namespaceSelector", json!({}));
    default(webhook, "objectSelector", json!({}));
    default(webhook, "timeoutSeconds", 10);
    if let Some(service) = object_at(webhook, "/clientConfig/service") {
        default(service, "port", 443);
    }
    for rule in items_mut(webhook, "/rules") {
        default(rule, "scope", "*");
    }
}

fn validate(new: &Value, _: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, webhook) in items(new, "/webhooks").iter().enumerate() {
        let path = format!("webhooks[{i}]");
        let name = field(webhook, "name");
        if name.split('.').count() < 3 {
            let why = "should be a domain with at least three segments separated by dots";
            errors.push(FieldError::invalid(format!("{path}.name"), name, why));
        }
        let effects = field(webhook, "sideEffects");
        if !matches!(effects, "None" | "NoneOnDryRun") {
            let path = format!("{path}.sideEffects");
            errors.push(FieldError::not_supported(path, effects, &["None", "NoneOnDryRun"]));
        }
        if items(webhook, "/admissionReviewVersions").is_empty() {
            let why = "must specify one of v1, v1beta1";
            let path = format!("{path}.admissionReviewVersions");
            errors.push(FieldError::required(path, why));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use steersman_apimachinery::rules::{Part, Rules};

    use super::*;
    use crate::cluster::lines;

    #[test]
    fn webhooks_are_filled_in_and_named() {
        let mut hooks = json!({"metadata": {"name": "a"}, "webhooks": [{
            "name": "short", "rules": [{}], "clientConfig": {"service": {"name": "s"}},
        }]});
        MUTATING.default(&mut hooks);
        expect![[r#"[{"clientConfig":{"service":{"name":"s","port":443}},"failurePolicy":"Fail","matchPolicy":"Equivalent","name":"short","namespaceSelector":{},"objectSelector":{},"reinvocationPolicy":"Never","rules":[{"scope":"*"}],"timeoutSeconds":10}]"#]].assert_eq(&hooks["webhooks"].to_string());
        expect![[r#"
            webhooks[0].name: Invalid value: "short": should be a domain with at least three segments separated by dots
            webhooks[0].sideEffects: Unsupported value: "": supported values: "None", "NoneOnDryRun"
            webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1"#]].assert_eq(&lines(&MUTATING.validate(&hooks, None, Part::Main)));
        let mut validating = json!({"webhooks": [{}]});
        VALIDATING.default(&mut validating);
        assert_eq!(validating["webhooks"][0].get("reinvocationPolicy"), None);
    }
}
