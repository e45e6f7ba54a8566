//! Strategies for property tests of this crate.

use proptest::prelude::*;
use serde_json::Value;

/// JSON values of limited depth and width, with few different names, so that
/// two of them have names in common.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-e]", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// The value without fields that are null; nulls in lists stay.
pub(crate) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), without_nulls(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// Removes objects and lists without content, from the inside out.
pub(crate) fn drop_empty(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.values_mut().for_each(drop_empty);
        fields.retain(|_, value| {
            !value.as_object().is_some_and(|fields| fields.is_empty())
                && !value.as_array().is_some_and(Vec::is_empty)
        });
    }
}
