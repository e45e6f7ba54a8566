//! JSON patch (RFC 6902).

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use crate::error::ApiError;

/// The most operations of one patch.
const MAX_OPERATIONS: usize = 10_000;

/// The most bytes that the `copy` operations of one patch may add together. A
/// few dozen of them could otherwise double a document until memory is full.
const MAX_COPIED: usize = 3 * 1024 * 1024;

/// The document with the patch.
///
/// # Errors
/// 400 when the patch is none, 413 when it has too many operations, 422 when it
/// does not fit the document.
pub fn apply(document: &Value, patch: &Value) -> Result<Value, ApiError> {
    let Patch(operations) = serde_json::from_value(patch.clone())
        .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
    if operations.len() > MAX_OPERATIONS {
        return Err(ApiError::new(
            413,
            "RequestEntityTooLarge",
            format!(
                "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
                operations.len()
            ),
        ));
    }
    let mut result = document.clone();
    let mut copied = 0;
    for operation in operations {
        if let PatchOperation::Copy(copy) = &operation {
            copied += result.pointer(copy.from.as_str()).map_or(0, size);
            if copied > MAX_COPIED {
                return Err(does_not_fit());
            }
        }
        json_patch::patch(&mut result, &[operation]).map_err(|_| does_not_fit())?;
    }
    Ok(result)
}

/// The API does not say which operation failed.
fn does_not_fit() -> ApiError {
    ApiError::new(422, "Invalid", "the server rejected our request due to an error in our request")
}

/// Roughly the length as text.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + size(value) + 4).sum::<usize>() + 2
        }
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::apply;

    #[test]
    fn operations_apply_in_order() {
        let document = json!({ "a": { "b": [1, 2] }, "m/n": 1 });
        let patch = json!([
            { "op": "test", "path": "/a/b/0", "value": 1 },
            { "op": "add", "path": "/a/b/-", "value": 3 },
            { "op": "replace", "path": "/a/b/0", "value": 0 },
            { "op": "remove", "path": "/m~1n" },
            { "op": "copy", "from": "/a/b", "path": "/c" },
            { "op": "move", "from": "/a/b/1", "path": "/d" },
        ]);
        let expected = json!({ "a": { "b": [0, 3] }, "c": [0, 2, 3], "d": 2 });
        assert_eq!(apply(&document, &patch), Ok(expected));
    }

    #[test]
    fn refusals_carry_the_code_of_the_api() {
        let many: Vec<Value> =
            (0..10_001).map(|_| json!({ "op": "test", "path": "/a", "value": 1 })).collect();
        let doubling: Vec<Value> = (0..40)
            .map(|at| json!({ "op": "copy", "from": "", "path": format!("/x{at}") }))
            .collect();
        let cases = [
            (json!({ "a": 1 }), 400),
            (json!([{ "op": "paint", "path": "/a" }]), 400),
            (json!([{ "op": "test", "path": "/a", "value": 2 }]), 422),
            (json!([{ "op": "remove", "path": "/b" }]), 422),
            (json!([{ "op": "replace", "path": "/b", "value": 1 }]), 422),
            (json!([{ "op": "add", "path": "/b/c", "value": 1 }]), 422),
            (Value::Array(many), 413),
            (Value::Array(doubling), 422),
        ];
        for (patch, code) in cases {
            let error = apply(&json!({ "a": 1 }), &patch).expect_err("refused");
            assert_eq!(error.code, code);
        }
    }
}
