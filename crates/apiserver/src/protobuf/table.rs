//! What messages consist of.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::special::Special;

const MESSAGES: &str = include_str!("messages.txt");

/// A message's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageId(usize);

/// All messages.
pub(super) struct Table {
    messages: Vec<BTreeMap<u64, Field>>,
    by_name: BTreeMap<&'static str, MessageId>,
}

/// A field of a message.
pub(super) struct Field {
    /// Its name in JSON; empty when its own fields take its place.
    pub(super) name: Box<str>,
    pub(super) kind: Kind,
    /// Whether JSON leaves it out when it is zero.
    pub(super) omits_zero: bool,
}

/// The type of a field.
pub(super) enum Kind {
    Text,
    Bytes,
    Bool,
    Int,
    Double,
    Message(MessageId),
    Special(Special),
    Repeated(Box<Kind>),
    Map(Box<Kind>),
    /// A message around a list.
    Named(Box<Kind>),
}

impl Table {
    /// The table of the built-in kinds.
    pub(super) fn kubernetes() -> &'static Self {
        static TABLE: LazyLock<Table> = LazyLock::new(|| Table::parse(MESSAGES));
        &TABLE
    }

    /// The message of a kind. Options come in the version of any group.
    pub(super) fn of_kind(&self, api_version: &str, kind: &str) -> Option<MessageId> {
        let (group, version) = match api_version.split_once('/') {
            Some((group, version)) => (group.split('.').next().unwrap_or(group), version),
            None => ("core", api_version),
        };
        let name = format!("{group}.{version}.{kind}");
        let meta = || self.by_name.get(format!("meta.v1.{kind}").as_str());
        self.by_name.get(name.as_str()).or_else(meta).copied()
    }

    pub(super) fn field(&self, message: MessageId, number: u64) -> Option<&Field> {
        self.messages[message.0].get(&number)
    }

    fn parse(text: &'static str) -> Self {
        let lines = || text.lines().filter(|line| !line.starts_with('#'));
        let names = lines().filter(|line| !line.starts_with(' '));
        let by_name: BTreeMap<_, _> =
            names.enumerate().map(|(at, name)| (name, MessageId(at))).collect();
        let mut messages: Vec<BTreeMap<u64, Field>> = Vec::new();
        for line in lines() {
            let Some(line) = line.strip_prefix(' ') else {
                messages.push(BTreeMap::new());
                continue;
            };
            let mut words = line.split(' ');
            let mut word = || words.next().expect("a line of the table has three words");
            let number = word().parse().expect("the table's fields begin with a number");
            let name = word();
            let written = word();
            let plain = written.strip_prefix('?');
            let field = Field {
                name: if name == "-" { "" } else { name }.into(),
                kind: kind(plain.unwrap_or(written), &by_name),
                omits_zero: plain.is_some(),
            };
            messages.last_mut().expect("fields follow a message").insert(number, field);
        }
        Self { messages, by_name }
    }
}

fn kind(written: &str, by_name: &BTreeMap<&'static str, MessageId>) -> Kind {
    if let Some(item) = written.strip_prefix('*') {
        return Kind::Repeated(Box::new(kind(item, by_name)));
    }
    if let Some(item) = written.strip_prefix("map:") {
        return Kind::Map(Box::new(kind(item, by_name)));
    }
    if let Some(item) = written.strip_prefix("list:") {
        return Kind::Named(Box::new(kind(item, by_name)));
    }
    match written {
        "string" => Kind::Text,
        "bytes" => Kind::Bytes,
        "bool" => Kind::Bool,
        "int" => Kind::Int,
        "double" => Kind::Double,
        other => match Special::of(other) {
            Some(special) => Kind::Special(special),
            None => Kind::Message(*by_name.get(other).expect("the table names its own messages")),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use steersman_apimachinery::schema::Schema;

    use super::{Kind, Table};

    #[test]
    fn every_kind_that_is_served_is_there() {
        for resource in steersman_apikinds::resources() {
            let found = Table::kubernetes().of_kind(&resource.api_version(), resource.kind);
            assert!(found.is_some(), "{resource:?}");
        }
    }

    /// The table and the OpenAPI document come from different sources; names
    /// that only one of them has would be lost.
    #[test]
    fn names_are_those_of_the_schema() {
        let (table, schema) = (Table::kubernetes(), Schema::kubernetes());
        let mut checked = 0;
        for (name, message) in &table.by_name {
            let Some(short) = name.strip_prefix("core.v1.") else { continue };
            let schema_name = format!("io.k8s.api.core.v1.{short}");
            let Some(known) = schema.get(&schema_name) else { continue };
            for field in table.messages[message.0].values() {
                let is_inlined = field.name.is_empty();
                assert!(is_inlined == matches!(&field.kind, Kind::Message(_) if is_inlined));
                if !is_inlined {
                    let object = serde_json::json!({ &*field.name: Value::Null });
                    assert!(known.declares(&field.name), "{name} {object}");
                    checked += 1;
                }
            }
        }
        assert!(checked > 800, "{checked}");
    }
}
