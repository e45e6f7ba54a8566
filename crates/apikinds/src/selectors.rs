//! Label selectors: checking, matching and writing them as text.

use serde_json::Value;
use steersman_apimachinery::error::FieldError;
use steersman_apimachinery::selector;

use crate::fields::{at, entries, field, items};
use crate::syntax::{label_value, qualified_name, report};

/// Whether a selector selects everything.
pub(crate) fn is_empty(selector: &Value) -> bool {
    entries(selector, "/matchLabels").next().is_none()
        && items(selector, "/matchExpressions").is_empty()
}

/// Checks a label selector that stands at `path`.
pub(crate) fn check(selector: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in entries(selector, "/matchLabels") {
        let path = format!("{path}.matchLabels");
        report(errors, &path, key, qualified_name(key));
        let value = value.as_str().unwrap_or_default();
        report(errors, &path, value, label_value(value));
    }
    for (i, requirement) in items(selector, "/matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{i}]");
        let values = items(requirement, "/values");
        match field(requirement, "operator") {
            "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
                format!("{path}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "In" | "NotIn" => {}
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
                format!("{path}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "Exists" | "DoesNotExist" => {}
            other => errors.push(FieldError::invalid(
                format!("{path}.operator"),
                other,
                "not a valid selector operator",
            )),
        }
        let key = field(requirement, "key");
        report(errors, &format!("{path}.key"), key, qualified_name(key));
        for (n, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            report(errors, &format!("{path}.values[{n}]"), value, label_value(value));
        }
    }
}

/// Whether a selector matches labels. One that cannot be read matches nothing.
pub(crate) fn matches(selector: &Value, labels: Option<&Value>) -> bool {
    selector::from_value(selector).is_ok_and(|selector| selector.matches(labels))
}

/// A selector as one line: `a=b,c in (d,e)`.
pub(crate) fn line(selector: &Value) -> String {
    let pairs = entries(selector, "/matchLabels").map(|(key, value)| {
        (key.as_str(), format!("{key}={}", value.as_str().unwrap_or_default()))
    });
    let mut parts: Vec<(&str, String)> = pairs.collect();
    for requirement in items(selector, "/matchExpressions") {
        let key = field(requirement, "key");
        let mut values: Vec<&str> =
            items(requirement, "/values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        parts.push((
            key,
            match field(requirement, "operator") {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "DoesNotExist" => format!("!{key}"),
                _ => key.to_owned(),
            },
        ));
    }
    parts.sort_by(|left, right| left.0.cmp(right.0));
    let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
    parts.join(",")
}

/// A selector in a table: `<none>` when it selects everything or is absent.
pub(crate) fn cell(object: &Value, pointer: &str) -> Value {
    match at(object, pointer).map(line) {
        None => "<none>".into(),
        Some(line) if line.is_empty() => "<none>".into(),
        Some(line) => line.into(),
    }
}

/// A map of labels in a table.
pub(crate) fn map_cell(object: &Value, pointer: &str) -> Value {
    let pairs: Vec<String> = entries(object, pointer)
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { "<none>".into() } else { pairs.join(",").into() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{line, matches};

    #[test]
    fn reads_and_writes_selectors() {
        let selector = json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["b", "a"]},
                {"key": "old", "operator": "DoesNotExist"},
                {"key": "env", "operator": "NotIn", "values": ["dev"]},
                {"key": "zone", "operator": "Exists"},
            ],
        });
        assert_eq!(line(&selector), "app=web,env notin (dev),!old,tier in (a,b),zone");
        let good = json!({"app": "web", "tier": "a", "zone": "z"});
        assert!(matches(&selector, Some(&good)));
        for (key, value) in [("app", "x"), ("tier", "c"), ("old", ""), ("env", "dev")] {
            let mut labels = good.clone();
            labels[key] = value.into();
            assert!(!matches(&selector, Some(&labels)), "{labels}");
        }
        assert!(!matches(&selector, None));
        assert!(matches(&json!({}), None));
    }
}
