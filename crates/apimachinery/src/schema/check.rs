//! What an object has that its type does not allow.

use serde_json::Value;

use super::{At, Kind, Scalar};

/// Paths of fields that no struct declares.
pub(super) fn unknown_fields(at: At<'_>, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    visit_fields(at, object, &mut String::new(), &mut found);
    found
}

fn visit_fields(at: At<'_>, value: &Value, path: &mut String, found: &mut Vec<String>) {
    let length = path.len();
    match (at.kind(), value) {
        (Kind::Struct | Kind::Map, Value::Object(fields)) => {
            for (name, value) in fields {
                push_name(path, name);
                match at.field(name) {
                    Some(at) => visit_fields(at, value, path, found),
                    None => found.push(path.clone()),
                }
                path.truncate(length);
            }
        }
        (Kind::List, Value::Array(items)) => {
            let Some(at) = at.item() else { return };
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                visit_fields(at, item, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Messages about values that a decoder would refuse.
pub(super) fn wrong_types(at: At<'_>, object: &Value) -> Vec<String> {
    let mut walk = TypeWalk { path: String::new(), found: Vec::new() };
    walk.visit(at, object, "");
    walk.found
}

struct TypeWalk {
    /// Fields of structs only: the reference's decoder leaves out indexes and
    /// keys of maps.
    path: String,
    found: Vec<String>,
}

impl TypeWalk {
    /// `holder` is the Go name of the innermost struct.
    fn visit(&mut self, at: At<'_>, value: &Value, holder: &str) {
        let length = self.path.len();
        match (at.kind(), value) {
            (_, Value::Null) | (Kind::Any, _) => {}
            (Kind::Scalar(scalar), value) => self.scalar(scalar, value, holder),
            (Kind::Struct | Kind::Map, Value::Object(fields)) => {
                let is_struct = at.kind() == Kind::Struct;
                let name = at.type_name().map(bare_name).filter(|_| is_struct);
                let holder = name.unwrap_or(holder);
                for (name, value) in fields {
                    let Some(at) = at.field(name) else { continue };
                    if is_struct {
                        push_name(&mut self.path, name);
                    }
                    self.visit(at, value, holder);
                    self.path.truncate(length);
                }
            }
            (Kind::List, Value::Array(items)) => {
                let Some(at) = at.item() else { return };
                for item in items {
                    self.visit(at, item, holder);
                }
            }
            (_, value) => self.mismatch(&json_name(value), &go_type(at), holder),
        }
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value, holder: &str) {
        let fits = match (scalar, value) {
            (Scalar::String | Scalar::IntOrString, Value::String(_)) => true,
            (Scalar::Time | Scalar::MicroTime, Value::String(text)) => {
                if text.parse::<jiff::Timestamp>().is_err() {
                    self.found.push(format!(
                        "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse \
                         {text:?} as \"2006\""
                    ));
                }
                true
            }
            (Scalar::Bytes, Value::String(text)) => {
                if let Some(at) = text.find(|c: char| !is_base64(c)) {
                    self.found.push(format!("illegal base64 data at input byte {at}"));
                }
                true
            }
            (Scalar::Quantity, Value::String(text)) => {
                self.quantity(text);
                true
            }
            (Scalar::Quantity, Value::Number(_)) => true,
            (Scalar::Int32 | Scalar::IntOrString, Value::Number(number)) => {
                number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
            }
            (Scalar::Int64, Value::Number(number)) => number.as_i64().is_some(),
            (Scalar::Float, Value::Number(_)) | (Scalar::Bool, Value::Bool(_)) => true,
            _ => false,
        };
        if fits {
            return;
        }
        let found = match value {
            Value::Number(number) if is_numeric(scalar) => format!("number {number}"),
            value => json_name(value),
        };
        self.mismatch(&found, go_scalar(scalar), holder);
    }

    fn quantity(&mut self, text: &str) {
        if !looks_like_quantity(text) {
            self.found.push(
                "quantities must match the regular expression \
                 '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                    .to_owned(),
            );
        }
    }

    fn mismatch(&mut self, found: &str, wanted: &str, holder: &str) {
        let path = &self.path;
        self.found.push(if path.is_empty() {
            format!("json: cannot unmarshal {found} into Go value of type {wanted}")
        } else {
            format!(
                "json: cannot unmarshal {found} into Go struct field {holder}.{path} of type \
                 {wanted}"
            )
        });
    }
}

fn push_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

fn bare_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn json_name(value: &Value) -> String {
    let name = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    name.to_owned()
}

/// The type as the reference's decoder names it.
fn go_type(at: At<'_>) -> String {
    match at.kind() {
        Kind::Scalar(scalar) => go_scalar(scalar).to_owned(),
        Kind::List => {
            format!("[]{}", at.item().map_or_else(|| "interface {}".to_owned(), go_type))
        }
        Kind::Map => {
            format!(
                "map[string]{}",
                at.field("").map_or_else(|| "interface {}".to_owned(), go_type)
            )
        }
        Kind::Struct => at.type_name().unwrap_or("struct").to_owned(),
        Kind::Any => "interface {}".to_owned(),
    }
}

fn go_scalar(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::String => "string",
        Scalar::Bytes => "[]uint8",
        Scalar::Time => "v1.Time",
        Scalar::MicroTime => "v1.MicroTime",
        Scalar::Int32 | Scalar::IntOrString => "int32",
        Scalar::Int64 => "int64",
        Scalar::Float => "float64",
        Scalar::Bool => "bool",
        Scalar::Quantity => "resource.Quantity",
    }
}

fn is_numeric(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::Int32 | Scalar::Int64 | Scalar::IntOrString)
}

fn is_base64(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '\r' | '\n')
}

/// A sign, digits with at most one point, and one of the known suffixes or an
/// exponent.
fn looks_like_quantity(text: &str) -> bool {
    const SUFFIXES: &[&str] =
        &["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let number_is_fine =
        number.contains(|c: char| c.is_ascii_digit()) && number.matches('.').count() <= 1;
    let exponent = suffix.strip_prefix(['e', 'E']).map(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    });
    number_is_fine && (SUFFIXES.contains(&suffix) || exponent == Some(true))
}
