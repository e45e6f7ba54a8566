//! The embedded data, and how it becomes a [`Schema`].

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;

use super::{Field, ListMerge, Node, PatchStrategy, Scalar, Schema, Shape, Type};

static PACKED: &[u8] = include_bytes!("../../schema/kubernetes-1.36.json.gz");

const PREFIX: &str = "#/definitions/";

/// The whole document, with descriptions: an object with `definitions`.
pub(crate) fn document() -> Value {
    serde_json::from_slice(&text()).expect("the embedded data is JSON")
}

/// A number that changes with the data (FNV-1a).
pub(crate) fn fingerprint() -> u64 {
    PACKED.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

pub(super) fn unpack() -> Schema {
    let document: Document = serde_json::from_slice(&text()).expect("the embedded data is JSON");
    build(document)
}

fn text() -> Vec<u8> {
    let mut text = Vec::new();
    GzDecoder::new(PACKED).read_to_end(&mut text).expect("the embedded data is compressed");
    text
}

#[derive(Deserialize)]
struct Document {
    definitions: BTreeMap<Box<str>, Definition>,
}

#[derive(Default, Deserialize)]
struct Definition {
    #[serde(rename = "$ref")]
    reference: Option<Box<str>>,
    #[serde(rename = "type")]
    json_type: Option<Box<str>>,
    format: Option<Box<str>>,
    items: Option<Box<Definition>>,
    #[serde(rename = "additionalProperties")]
    values: Option<Box<Definition>>,
    properties: Option<BTreeMap<Box<str>, Definition>>,
    #[serde(default)]
    required: Vec<Box<str>>,
    default: Option<Value>,
    #[serde(rename = "x-kubernetes-list-type")]
    list_type: Option<Box<str>>,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    list_keys: Option<Vec<Box<str>>>,
    #[serde(rename = "x-kubernetes-map-type")]
    map_type: Option<Box<str>>,
    #[serde(rename = "x-kubernetes-patch-strategy")]
    patch_strategy: Option<Box<str>>,
    #[serde(rename = "x-kubernetes-patch-merge-key")]
    patch_key: Option<Box<str>>,
}

fn build(document: Document) -> Schema {
    let by_name: BTreeMap<Box<str>, usize> =
        document.definitions.keys().cloned().enumerate().map(|(at, name)| (name, at)).collect();
    let mut types = Vec::with_capacity(by_name.len());
    for (name, definition) in document.definitions {
        let mut node = node(definition, &by_name);
        if let Some(scalar) = named_scalar(&name) {
            node.shape = Shape::Scalar(scalar);
        }
        types.push(Type { name, node });
    }
    Schema { types, by_name }
}

/// Types that are more than their JSON type says.
fn named_scalar(name: &str) -> Option<Scalar> {
    match name.rsplit('.').next() {
        Some("Quantity") => Some(Scalar::Quantity),
        Some("IntOrString") => Some(Scalar::IntOrString),
        Some("MicroTime") => Some(Scalar::MicroTime),
        Some("Time") => Some(Scalar::Time),
        _ => None,
    }
}

fn node(definition: Definition, names: &BTreeMap<Box<str>, usize>) -> Node {
    let list = list_merge(&definition);
    let patch = patch_strategy(&definition);
    let atomic = definition.map_type.as_deref() == Some("atomic");
    Node {
        list,
        patch,
        atomic,
        default: definition.default.clone(),
        shape: shape(definition, names),
    }
}

fn shape(definition: Definition, names: &BTreeMap<Box<str>, usize>) -> Shape {
    if let Some(reference) = &definition.reference {
        let target = reference.strip_prefix(PREFIX).and_then(|name| names.get(name));
        return target.map_or(Shape::Any, |target| Shape::Ref(*target));
    }
    if let Some(properties) = definition.properties {
        let required = definition.required;
        let fields = properties.into_iter().map(|(name, of)| Field {
            required: required.contains(&name),
            node: node(of, names),
            name,
        });
        return Shape::Struct(fields.collect());
    }
    if let Some(items) = definition.items {
        return Shape::List(Box::new(node(*items, names)));
    }
    if let Some(values) = definition.values {
        return Shape::Map(Box::new(node(*values, names)));
    }
    let scalar = match (definition.json_type.as_deref(), definition.format.as_deref()) {
        (Some("string"), Some("byte")) => Scalar::Bytes,
        (Some("string"), Some("int-or-string")) => Scalar::IntOrString,
        (Some("string"), _) => Scalar::String,
        (Some("integer"), Some("int32")) => Scalar::Int32,
        (Some("integer"), _) => Scalar::Int64,
        (Some("number"), _) => Scalar::Float,
        (Some("boolean"), _) => Scalar::Bool,
        _ => return Shape::Any,
    };
    Shape::Scalar(scalar)
}

fn list_merge(definition: &Definition) -> ListMerge {
    match (definition.list_type.as_deref(), &definition.list_keys) {
        (Some("map"), Some(keys)) => {
            // Sorted, as keys are in the paths of field management.
            let mut keys = keys.clone();
            keys.sort();
            ListMerge::Map(keys.into())
        }
        (Some("set"), _) => ListMerge::Set,
        _ => ListMerge::Atomic,
    }
}

fn patch_strategy(definition: &Definition) -> PatchStrategy {
    let mut strategy = PatchStrategy { key: definition.patch_key.clone(), ..Default::default() };
    for word in definition.patch_strategy.as_deref().unwrap_or_default().split(',') {
        match word {
            "merge" => strategy.merge = true,
            "replace" => strategy.replace = true,
            // `retainKeys` needs no notice here: the patch itself carries the keys.
            _ => {}
        }
    }
    strategy
}
