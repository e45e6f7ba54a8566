//! Request bodies in protobuf.
//!
//! Go clients of the last years send objects of built-in kinds in protobuf and
//! do not try again in JSON, so bodies are understood. Answers are always JSON,
//! which the same clients accept.
//!
//! What a message consists of is in `messages.txt`, which `cargo xtask protobuf`
//! makes from the Go types of Kubernetes 1.36 (repositories kubernetes/api and
//! kubernetes/apimachinery, licensed under Apache-2.0). A message has a line
//! with its name, then a line per field: number, name in JSON (`-` for what JSON
//! inlines), and type. Before a type, `?` means that a zero is not written in
//! JSON, `*` that the field repeats, `map:` that it is a map with text for keys,
//! `list:` that it is a message around a list.

mod special;
mod table;
mod wire;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use thiserror::Error;

use self::table::{Kind, MessageId, Table};
use self::wire::{Reader, Wire};

/// The type of bodies in protobuf.
pub(crate) const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";
/// How deep messages may be in each other.
const DEEPEST: usize = 64;

/// Why a body is not understood.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum ProtobufError {
    #[error("the body does not begin as protobuf bodies do")]
    Magic,
    #[error("the body ends in the middle of something")]
    Truncated,
    #[error("a number is too large")]
    Number,
    #[error("a text is not UTF-8")]
    Text,
    #[error("messages are too deep in each other")]
    Depth,
    #[error("a field has another type than {0} can have")]
    Type(&'static str),
    #[error("kind {kind} of {api_version} is not known in protobuf")]
    Unknown { api_version: String, kind: String },
}

/// Reads an object from a body.
pub(crate) fn decode(body: &[u8]) -> Result<Value, ProtobufError> {
    let envelope = body.strip_prefix(MAGIC).ok_or(ProtobufError::Magic)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    let mut reader = Reader::new(envelope);
    while let Some((number, wire)) = reader.field()? {
        match number {
            1 => {
                let mut names = Reader::new(wire.bytes()?);
                while let Some((number, wire)) = names.field()? {
                    match number {
                        1 => api_version = text(wire)?,
                        2 => kind = text(wire)?,
                        _ => {}
                    }
                }
            }
            2 => raw = wire.bytes()?,
            _ => {}
        }
    }
    let table = Table::kubernetes();
    let message = table.of_kind(&api_version, &kind).ok_or_else(|| ProtobufError::Unknown {
        api_version: api_version.clone(),
        kind: kind.clone(),
    })?;
    let mut object = Map::new();
    message_into(table, message, raw, 0, &mut object)?;
    object.insert("apiVersion".to_owned(), Value::from(api_version));
    object.insert("kind".to_owned(), Value::from(kind));
    Ok(Value::Object(object))
}

fn message_into(
    table: &Table,
    message: MessageId,
    bytes: &[u8],
    depth: usize,
    object: &mut Map<String, Value>,
) -> Result<(), ProtobufError> {
    if depth > DEEPEST {
        return Err(ProtobufError::Depth);
    }
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        // Fields of a newer version mean nothing here.
        let Some(field) = table.field(message, number) else { continue };
        match (&field.kind, field.name.is_empty()) {
            (Kind::Message(inlined), true) => {
                message_into(table, *inlined, wire.bytes()?, depth + 1, object)?;
            }
            (Kind::Repeated(item), _) => {
                let list = object.entry(&*field.name).or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(list) = list {
                    repeated(table, item, wire, depth, list)?;
                }
            }
            (Kind::Map(item), _) => {
                let (key, value) = entry(table, item, wire.bytes()?, depth)?;
                let map = object.entry(&*field.name).or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(map) = map {
                    map.insert(key, value);
                }
            }
            (kind, _) => {
                let value = value(table, kind, wire, depth)?;
                if !(value.is_null() || field.omits_zero && is_zero(&value)) {
                    object.insert(field.name.to_string(), value);
                }
            }
        }
    }
    Ok(())
}

/// One or, packed, several values of a field that repeats.
fn repeated(
    table: &Table,
    item: &Kind,
    wire: Wire<'_>,
    depth: usize,
    list: &mut Vec<Value>,
) -> Result<(), ProtobufError> {
    if let (Kind::Int | Kind::Bool, Wire::Bytes(packed)) = (item, wire) {
        let mut reader = Reader::new(packed);
        while !reader.is_empty() {
            list.push(value(table, item, Wire::Varint(reader.varint()?), depth)?);
        }
        return Ok(());
    }
    list.push(value(table, item, wire, depth)?);
    Ok(())
}

/// A map's entry, a message of key and value.
fn entry(
    table: &Table,
    item: &Kind,
    bytes: &[u8],
    depth: usize,
) -> Result<(String, Value), ProtobufError> {
    let (mut key, mut found) = (String::new(), None);
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        match number {
            1 => key = text(wire)?,
            2 => found = Some(value(table, item, wire, depth)?),
            _ => {}
        }
    }
    let found = match found {
        Some(found) => found,
        None => value(table, item, Wire::Bytes(&[]), depth).unwrap_or_default(),
    };
    Ok((key, found))
}

fn value(table: &Table, kind: &Kind, wire: Wire<'_>, depth: usize) -> Result<Value, ProtobufError> {
    Ok(match kind {
        Kind::Text => Value::from(text(wire)?),
        Kind::Bytes => Value::from(STANDARD.encode(wire.bytes()?)),
        Kind::Bool => Value::from(wire.varint()? != 0),
        Kind::Int => Value::from(wire.varint()?.cast_signed()),
        Kind::Double => Value::from(f64::from_bits(wire.fixed64()?)),
        Kind::Message(message) => {
            let mut object = Map::new();
            message_into(table, *message, wire.bytes()?, depth + 1, &mut object)?;
            Value::Object(object)
        }
        Kind::Named(item) => {
            let mut list = Vec::new();
            let mut reader = Reader::new(wire.bytes()?);
            while let Some((number, wire)) = reader.field()? {
                if number == 1 {
                    list.push(value(table, item, wire, depth + 1)?);
                }
            }
            Value::Array(list)
        }
        Kind::Special(special) => special.read(wire.bytes()?)?,
        Kind::Repeated(_) | Kind::Map(_) => return Err(ProtobufError::Type("a nested list")),
    })
}

fn text(wire: Wire<'_>) -> Result<String, ProtobufError> {
    let text = std::str::from_utf8(wire.bytes()?).map_err(|_| ProtobufError::Text)?;
    Ok(text.to_owned())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
