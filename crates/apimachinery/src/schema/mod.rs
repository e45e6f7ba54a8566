//! What Kubernetes' kinds are made of: fields, types, and how lists and maps
//! merge.
//!
//! The data is Kubernetes' published OpenAPI (see `schema/README.md` of this
//! crate), unpacked once into small structs. Descriptions stay packed: only
//! [`crate::openapi`] wants them.

mod check;
mod data;
mod prune;
mod quantity;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

pub(crate) use data::{document, fingerprint};

/// All types by name.
#[derive(Debug)]
pub struct Schema {
    types: Vec<Type>,
    by_name: BTreeMap<Box<str>, usize>,
}

#[derive(Debug)]
struct Type {
    name: Box<str>,
    node: Node,
}

/// A type, or the place of a field, a list's items or a map's values.
#[derive(Debug)]
struct Node {
    shape: Shape,
    list: ListMerge,
    /// For structs and maps: replaced as a whole.
    atomic: bool,
    patch: PatchStrategy,
    default: Option<Value>,
}

#[derive(Debug)]
enum Shape {
    Scalar(Scalar),
    Ref(usize),
    List(Box<Node>),
    Map(Box<Node>),
    /// Sorted by name.
    Struct(Box<[Field]>),
    /// Anything: what it is can be seen from the value only.
    Any,
}

#[derive(Debug)]
struct Field {
    name: Box<str>,
    node: Node,
    required: bool,
}

/// A type without parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Text.
    String,
    /// Text in base64.
    Bytes,
    /// Seconds since the epoch as RFC 3339.
    Time,
    /// The same with microseconds.
    MicroTime,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// A number.
    Float,
    /// True or false.
    Bool,
    /// A quantity: text or a number.
    Quantity,
    /// Text or a whole number.
    IntOrString,
}

/// How two versions of a list become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListMerge {
    /// The newer replaces the older.
    Atomic,
    /// Entries are the same if they are equal.
    Set,
    /// Entries are the same if these fields are equal.
    Map(Box<[Box<str>]>),
}

/// How strategic merge patches treat a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Lists merge by `key`, or as sets without one.
    pub merge: bool,
    /// Objects are replaced.
    pub replace: bool,
    /// The field that identifies list entries.
    pub key: Option<Box<str>>,
}

/// A place in a schema: where a walk over an object stands.
#[derive(Clone, Copy, Debug)]
pub struct At<'s> {
    schema: &'s Schema,
    node: &'s Node,
}

/// What is at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value without parts.
    Scalar(Scalar),
    /// A list; [`At::item`] is the place of its items.
    List,
    /// A map from text; [`At::field`] is the place of its values.
    Map,
    /// An object with known fields.
    Struct,
    /// Anything.
    Any,
}

static ANY: Node = Node {
    shape: Shape::Any,
    list: ListMerge::Atomic,
    atomic: false,
    patch: PatchStrategy { merge: false, replace: false, key: None },
    default: None,
};

impl Schema {
    /// The schema of Kubernetes 1.36's kinds, unpacked at the first call.
    pub fn kubernetes() -> &'static Self {
        static SCHEMA: LazyLock<Schema> = LazyLock::new(data::unpack);
        &SCHEMA
    }

    /// The place of a whole object of a type (`io.k8s.api.core.v1.Pod`).
    pub fn get(&self, type_name: &str) -> Option<At<'_>> {
        let at = *self.by_name.get(type_name)?;
        Some(At { schema: self, node: &self.types[at].node })
    }

    /// The place of a whole object of a type; of a type that is not known,
    /// everything is allowed.
    pub fn get_or_any(&self, type_name: &str) -> At<'_> {
        self.get(type_name).unwrap_or(At { schema: self, node: &ANY })
    }

    /// Paths of fields that the type does not have (`spec.containers[0].foo`),
    /// in the order of the object.
    pub fn check_fields(&self, type_name: &str, object: &Value) -> Vec<String> {
        check::unknown_fields(self.get_or_any(type_name), object)
    }

    /// What cannot be decoded because it has the wrong JSON type, as the
    /// reference's decoder words it (`json: cannot unmarshal string into Go
    /// struct field PodSpec.spec.priority of type int32`). The reference stops
    /// at the first.
    pub fn check_types(&self, type_name: &str, object: &Value) -> Vec<String> {
        check::wrong_types(self.get_or_any(type_name), object)
    }

    /// Drops what would not survive being decoded and encoded: unknown fields,
    /// nulls, and lists and maps that are optional and empty.
    pub fn prune(&self, type_name: &str, object: &mut Value) {
        self.get_or_any(type_name).prune(object);
    }
}

impl<'s> At<'s> {
    /// What is here, references followed.
    pub fn kind(self) -> Kind {
        match self.target().node.shape {
            Shape::Scalar(scalar) => Kind::Scalar(scalar),
            Shape::List(_) => Kind::List,
            Shape::Map(_) => Kind::Map,
            Shape::Struct(_) => Kind::Struct,
            Shape::Any | Shape::Ref(_) => Kind::Any,
        }
    }

    /// The place of a struct's field or a map's value. `None` where no such
    /// thing can be.
    pub fn field(self, name: &str) -> Option<Self> {
        let node = match &self.target().node.shape {
            Shape::Struct(_) => &self.find(name)?.node,
            Shape::Map(values) => values,
            Shape::Any => &ANY,
            _ => return None,
        };
        Some(Self { node, ..self })
    }

    /// Whether this is a struct with a field of the name. A map has none.
    pub fn declares(self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Whether this is a struct that demands the field.
    pub fn requires(self, name: &str) -> bool {
        self.find(name).is_some_and(|field| field.required)
    }

    /// The place of a list's items.
    pub fn item(self) -> Option<Self> {
        let node = match &self.target().node.shape {
            Shape::List(items) => items,
            Shape::Any => &ANY,
            _ => return None,
        };
        Some(Self { node, ..self })
    }

    /// How lists merge here.
    pub fn list_merge(self) -> &'s ListMerge {
        &self.node.list
    }

    /// Whether the object here is always replaced as a whole. The place and its
    /// type may both say so.
    pub fn is_atomic(self) -> bool {
        self.node.atomic || self.target().node.atomic
    }

    /// What strategic merge patches do here.
    pub fn patch_strategy(self) -> &'s PatchStrategy {
        &self.node.patch
    }

    /// The value that an absent field stands for.
    pub fn default_value(self) -> Option<&'s Value> {
        self.node.default.as_ref()
    }

    /// [`Schema::prune`] from here on.
    pub(crate) fn prune(self, object: &mut Value) {
        prune::prune(self, object);
    }

    /// The name of the type that this place refers to or is: `v1.PodSpec`.
    fn type_name(self) -> Option<&'s str> {
        let mut types = self.schema.types.iter();
        let name = match self.node.shape {
            Shape::Ref(target) => &self.schema.types[target].name,
            _ => &types.find(|named| std::ptr::eq(&raw const named.node, self.node))?.name,
        };
        let before = name.rmatch_indices('.').nth(1).map_or(0, |(at, _)| at + 1);
        Some(&name[before..])
    }

    fn find(self, name: &str) -> Option<&'s Field> {
        let Shape::Struct(fields) = &self.target().node.shape else { return None };
        let at = fields.binary_search_by(|field| field.name.as_ref().cmp(name)).ok()?;
        Some(&fields[at])
    }

    fn target(self) -> Self {
        match self.node.shape {
            Shape::Ref(target) => Self { node: &self.schema.types[target].node, ..self },
            _ => self,
        }
    }
}
