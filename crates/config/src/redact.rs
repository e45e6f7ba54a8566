//! Documents for people and pages to see: without keys.

use serde_json::Value;

/// What stands where a key is not shown.
pub const REDACTED: &str = "<redacted>";

/// The document with [`REDACTED`] in place of the private keys of extenders
/// (`extenders[].tlsConfig.keyData`), the only secrets that fields of the API
/// hold. Certificates are public and stay. Not for running with.
#[must_use]
pub fn redacted(document: &Value) -> Value {
    let mut shown = document.clone();
    let extenders = shown.get_mut("extenders").and_then(Value::as_array_mut);
    for extender in extenders.into_iter().flatten() {
        let key = extender.pointer_mut("/tlsConfig/keyData");
        if let Some(key) = key.filter(|key| !key.is_null() && **key != "") {
            *key = REDACTED.into();
        }
    }
    shown
}
