//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

/// The document with the patch: objects merge, nulls delete, everything else
/// replaces.
pub fn apply(document: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut result = match document {
        Value::Object(fields) => fields.clone(),
        _ => Map::new(),
    };
    for (name, value) in patch {
        if value.is_null() {
            result.remove(name);
        } else {
            let merged = apply(result.get(name).unwrap_or(&Value::Null), value);
            result.insert(name.clone(), merged);
        }
    }
    Value::Object(result)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::apply;
    use crate::testing::{any_json, without_nulls};

    #[test]
    fn the_examples_of_the_standard_hold() {
        let cases = [
            (json!({ "a": "b" }), json!({ "a": "c" }), json!({ "a": "c" })),
            (json!({ "a": "b" }), json!({ "b": "c" }), json!({ "a": "b", "b": "c" })),
            (json!({ "a": "b" }), json!({ "a": null }), json!({})),
            (json!({ "a": ["b"] }), json!({ "a": "c" }), json!({ "a": "c" })),
            (json!({ "a": "c" }), json!({ "a": ["b"] }), json!({ "a": ["b"] })),
            (
                json!({ "a": { "b": "c" } }),
                json!({ "a": { "b": "d", "c": null } }),
                json!({ "a": { "b": "d" } }),
            ),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({ "a": "foo" }), Value::Null, Value::Null),
            (json!([1, 2]), json!({ "a": "b", "c": null }), json!({ "a": "b" })),
            (json!({}), json!({ "a": { "b": { "c": null } } }), json!({ "a": { "b": {} } })),
        ];
        for (document, patch, expected) in cases {
            assert_eq!(apply(&document, &patch), expected, "{document} {patch}");
        }
    }

    proptest! {
        #[test]
        fn an_object_merged_into_nothing_is_itself_without_nulls(patch in any_json()) {
            let merged = apply(&json!({}), &json!({ "x": patch }));
            prop_assert_eq!(merged, without_nulls(&json!({ "x": patch })));
        }

        #[test]
        fn applying_twice_changes_nothing_more(document in any_json(), patch in any_json()) {
            let once = apply(&document, &patch);
            prop_assert_eq!(apply(&once, &patch), once);
        }
    }
}
