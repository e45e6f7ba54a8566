//! What a request's body says.

use serde_json::{Value, json};
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::schema::Schema;
use steersman_apimachinery::strict;

use crate::protobuf;

/// What to do with fields that are unknown or given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// The kind that a body has to be.
#[derive(Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
    /// The name of its schema.
    pub(crate) schema: &'a str,
}

/// A body that could be read.
pub(crate) struct Document {
    pub(crate) value: Value,
    /// Fields that were given more than once.
    pub(crate) duplicates: Vec<String>,
}

impl FieldValidation {
    /// Reads the parameter; not given, it warns.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        match text {
            "" | "Warn" => Ok(Self::Warn),
            "Ignore" => Ok(Self::Ignore),
            "Strict" => Ok(Self::Strict),
            other => Err(ApiError::new(
                422,
                "Invalid",
                format!(
                    "fieldValidation: Unsupported value: {other:?}: supported values: \"Ignore\", \"Strict\", \"Warn\""
                ),
            )),
        }
    }
}

/// Reads a body in the syntax that its content type names.
pub(crate) fn read(bytes: &[u8], content_type: &str) -> Result<Document, ApiError> {
    match content_type.split(';').next().unwrap_or("").trim() {
        "" | "application/json" => read_json(bytes),
        "application/yaml" => read_yaml(bytes),
        protobuf::CONTENT_TYPE => read_protobuf(bytes),
        _ => Err(unsupported_media_type(&[
            "application/json",
            "application/yaml",
            protobuf::CONTENT_TYPE,
        ])),
    }
}

fn read_protobuf(bytes: &[u8]) -> Result<Document, ApiError> {
    let value = protobuf::decode(bytes).map_err(|error| {
        ApiError::bad_request(format!("the body is not valid protobuf: {error}"))
    })?;
    Ok(Document { value, duplicates: Vec::new() })
}

/// Reads JSON.
pub(crate) fn read_json(bytes: &[u8]) -> Result<Document, ApiError> {
    let (value, duplicates) = strict::parse(bytes)
        .map_err(|error| ApiError::bad_request(format!("the body is not valid JSON: {error}")))?;
    Ok(Document { value, duplicates })
}

/// Reads YAML, of which JSON is a part.
pub(crate) fn read_yaml(bytes: &[u8]) -> Result<Document, ApiError> {
    let bad = |error: String| ApiError::bad_request(format!("error decoding YAML: {error}"));
    let text = std::str::from_utf8(bytes).map_err(|error| bad(error.to_string()))?;
    if text.trim_start().starts_with('{') {
        return read_json(bytes);
    }
    let value = serde_saphyr::from_str(text).map_err(|error| {
        // What follows shows the place in the text, for terminals.
        let error = error.to_string();
        bad(error.lines().next().unwrap_or_default().to_owned())
    })?;
    Ok(Document { value, duplicates: Vec::new() })
}

/// The refusal of a body in another syntax.
pub(crate) fn unsupported_media_type(accepted: &[&str]) -> ApiError {
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    );
    ApiError::new(415, "UnsupportedMediaType", message)
}

/// Checks that the body is of the expected kind (which it need not say) and has
/// the shape of it, and drops what the kind does not know. What is only
/// worth a warning is added to `warnings`.
pub(crate) fn conform(
    document: Document,
    expected: Expected<'_>,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, ApiError> {
    let Document { mut value, duplicates } = document;
    let Some(fields) = value.as_object_mut() else {
        let found = summary(&value);
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): an object is needed ({found})",
            expected.kind
        )));
    };
    for (field, expected) in [("apiVersion", expected.api_version), ("kind", expected.kind)] {
        let is_absent = fields.get(field).is_none_or(|found| found.is_null() || found == "");
        if is_absent {
            fields.insert(field.to_owned(), Value::from(expected));
        }
    }
    let schema = Schema::kubernetes();
    // Options have none.
    let has_metadata = schema.get(expected.schema).is_none_or(|known| known.declares("metadata"));
    if has_metadata {
        fields.entry("metadata").or_insert_with(|| json!({}));
    }
    let api_version = value["apiVersion"].as_str().unwrap_or("").to_owned();
    let kind = value["kind"].as_str().unwrap_or("").to_owned();
    if api_version != expected.api_version {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            expected.api_version
        )));
    }
    let version = api_version.rsplit('/').next().unwrap_or("").to_owned();
    let refuse = |why: String| {
        ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {}: {why}",
            expected.kind
        ))
    };
    if kind != expected.kind {
        return Err(refuse(format!("the kind has to be {}", expected.kind)));
    }
    if let Some(error) = schema.check_types(expected.schema, &value).into_iter().next() {
        return Err(refuse(error.to_string()));
    }
    let problems = field_problems(&value, expected.schema, &duplicates, validation);
    if validation == FieldValidation::Strict && !problems.is_empty() {
        return Err(refuse(format!("strict decoding error: {}", problems.join(", "))));
    }
    warnings.extend(problems);
    schema.prune(expected.schema, &mut value);
    // Pruning may have emptied it.
    if has_metadata && value.get("metadata").is_none_or(|metadata| !metadata.is_object()) {
        value["metadata"] = json!({});
    }
    Ok(value)
}

fn field_problems(
    value: &Value,
    schema: &str,
    duplicates: &[String],
    validation: FieldValidation,
) -> Vec<String> {
    if validation == FieldValidation::Ignore {
        return Vec::new();
    }
    let unknown = Schema::kubernetes().check_fields(schema, value);
    let unknown = unknown.into_iter().map(|path| format!("unknown field {path:?}"));
    let duplicates = duplicates.iter().map(|path| format!("duplicate field {path:?}"));
    unknown.chain(duplicates).collect()
}

fn summary(value: &Value) -> String {
    let text = value.to_string();
    let short: String = text.chars().take(30).collect();
    if short.len() < text.len() { format!("{short} ...") } else { short }
}
