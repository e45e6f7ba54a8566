//! The API's errors, as clients know them: `metav1.Status`.

use serde_json::{Value, json};
use thiserror::Error;

use crate::resource::Resource;

/// A refused request. Answered as a `Status` with `status: Failure`.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP status.
    pub code: u16,
    /// The machine-readable reason: `NotFound`, `Conflict`, `Invalid`.
    pub reason: &'static str,
    /// The sentence that clients show.
    pub message: String,
    /// `details`, if any: name, group, kind, uid, causes, `retryAfterSeconds`.
    pub details: Option<Value>,
}

/// One thing wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The path: `spec.containers[0].image`.
    pub field: String,
    /// `FieldValueRequired`, `FieldValueInvalid` and so on.
    pub kind: FieldErrorKind,
    /// What was found, as the message shows it; `None` where it shows nothing.
    pub found: Option<Value>,
    /// What is wrong.
    pub detail: String,
}

/// What kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// A field that has to be there is not.
    Required,
    /// The value is not acceptable.
    Invalid,
    /// The value is none of the allowed ones.
    NotSupported,
    /// The value may not be given here.
    Forbidden,
    /// A value that has to be unique is there twice.
    Duplicate,
    /// What the value names does not exist.
    NotFound,
    /// More than allowed.
    TooMany,
    /// Longer than allowed.
    TooLong,
    /// The value has the wrong type.
    TypeInvalid,
}

impl FieldErrorKind {
    /// The reason of a cause in `details.causes`.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
            Self::TooMany => "FieldValueTooMany",
            Self::TooLong => "FieldValueTooLong",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    /// How the message begins.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::NotFound => "Not found",
            Self::TooMany => "Too many",
            Self::TooLong => "Too long",
        }
    }
}

impl FieldError {
    /// A value that is not acceptable.
    pub fn invalid(field: impl Into<String>, found: impl Into<Value>, why: &str) -> Self {
        Self {
            field: field.into(),
            kind: FieldErrorKind::Invalid,
            found: Some(found.into()),
            detail: why.to_owned(),
        }
    }

    /// A missing value; `why` may be empty.
    pub fn required(field: impl Into<String>, why: &str) -> Self {
        Self {
            field: field.into(),
            kind: FieldErrorKind::Required,
            found: None,
            detail: why.to_owned(),
        }
    }

    /// A value that may not be given or changed.
    pub fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self {
            field: field.into(),
            kind: FieldErrorKind::Forbidden,
            found: None,
            detail: why.to_owned(),
        }
    }

    /// A value that is there twice.
    pub fn duplicate(field: impl Into<String>, found: impl Into<Value>) -> Self {
        Self {
            field: field.into(),
            kind: FieldErrorKind::Duplicate,
            found: Some(found.into()),
            detail: String::new(),
        }
    }

    /// A value that is none of the allowed ones.
    pub fn not_supported(
        field: impl Into<String>,
        found: impl Into<Value>,
        allowed: &[&str],
    ) -> Self {
        let allowed: Vec<String> = allowed.iter().map(|value| format!("{value:?}")).collect();
        Self {
            field: field.into(),
            kind: FieldErrorKind::NotSupported,
            found: Some(found.into()),
            detail: format!("supported values: {}", allowed.join(", ")),
        }
    }

    /// The message without the field: `Invalid value: "x": must be …`.
    pub fn body(&self) -> String {
        let mut text = self.kind.words().to_owned();
        if let Some(found) = &self.found {
            text.push_str(&format!(": {found}"));
        }
        if !self.detail.is_empty() {
            text.push_str(&format!(": {}", self.detail));
        }
        text
    }
}

impl ApiError {
    /// An error without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None }
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 500.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", message)
    }

    /// 404 for an object.
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", resource.qualified()))
            .about(resource, name)
    }

    /// 409: the name is taken.
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", resource.qualified());
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    /// 409: the object is not what the request takes it for.
    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// 403: somebody who may ask, but not for this.
    pub fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", resource.qualified());
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    /// 422 with every cause. `errors` must not be empty.
    pub fn invalid(resource: &Resource, name: &str, errors: &[FieldError]) -> Self {
        let line = |error: &FieldError| format!("{}: {}", error.field, error.body());
        let all = match errors {
            [one] => line(one),
            several => {
                let lines: Vec<String> = several.iter().map(line).collect();
                format!("[{}]", lines.join(", "))
            }
        };
        let kind = if resource.group.is_empty() {
            resource.kind.to_owned()
        } else {
            format!("{}.{}", resource.kind, resource.group)
        };
        let mut error = Self::new(422, "Invalid", format!("{kind} {name:?} is invalid: {all}"));
        let causes: Vec<Value> = errors
            .iter()
            .map(|error| {
                json!({
                    "reason": error.kind.reason(),
                    "message": error.body(),
                    "field": error.field,
                })
            })
            .collect();
        error.details = Some(json!({
            "name": name, "group": resource.group, "kind": resource.kind, "causes": causes,
        }));
        error
    }

    /// Adds name, group and kind to the details.
    #[must_use]
    pub fn about(mut self, resource: &Resource, name: &str) -> Self {
        let mut details = json!({ "name": name, "kind": resource.plural });
        if !resource.group.is_empty() {
            details["group"] = Value::from(resource.group);
        }
        self.details = Some(details);
        self
    }

    /// The `Status` object.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        });
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}
