//! JSON with an eye on fields that are given twice.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads a JSON text. Beside the value, in which the last of equal fields
/// counts, come the paths of fields that are given more than once
/// (`spec.containers[0].name`).
///
/// # Errors
/// When the text is not JSON; the message is the parser's.
pub fn parse(bytes: &[u8]) -> Result<(Value, Vec<String>), String> {
    let duplicates = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let seed = Node { parent: None, step: Step::Root, duplicates: &duplicates };
    let value = seed.deserialize(&mut deserializer).map_err(|error| error.to_string())?;
    deserializer.end().map_err(|error| error.to_string())?;
    Ok((value, duplicates.into_inner()))
}

/// The place of a value, as a chain to the root.
#[derive(Clone, Copy)]
struct Node<'a> {
    parent: Option<&'a Node<'a>>,
    step: Step<'a>,
    duplicates: &'a RefCell<Vec<String>>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Index(usize),
}

impl<'a> Node<'a> {
    fn child(&'a self, step: Step<'a>) -> Self {
        Node { parent: Some(self), step, duplicates: self.duplicates }
    }

    fn path(&self) -> String {
        let mut path = self.parent.map(Node::path).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Field(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
            Step::Index(at) => path.push_str(&format!("[{at}]")),
        }
        path
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value);
        number.map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.child(Step::Index(list.len())))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let child = self.child(Step::Field(&name));
            if object.contains_key(&name) {
                self.duplicates.borrow_mut().push(child.path());
            }
            let value = fields.next_value_seed(child)?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::parse;
    use crate::testing::any_json;

    #[test]
    fn duplicates_are_named_and_the_last_counts() {
        let text = br#"{"a":1,"b":{"c":[{"d":1,"d":2}]},"a":{"x":null}}"#;
        let (value, duplicates) = parse(text).expect("JSON");
        assert_eq!(value, json!({ "a": { "x": null }, "b": { "c": [{ "d": 2 }] } }));
        assert_eq!(duplicates, ["b.c[0].d", "a"]);
    }

    #[test]
    fn values_read_as_without_the_check() {
        for text in [
            r#"{"a":[1,-2,3.5,1e3,true,false,null,"x\n\u00e4"],"b":{}}"#,
            "18446744073709551615",
            "[]",
        ] {
            let plain: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(parse(text.as_bytes()).expect("JSON"), (plain, Vec::new()));
        }
    }

    #[test]
    fn what_is_not_json_is_an_error() {
        let deep = "[".repeat(100_000);
        for text in ["", "{", "{} x", "{\"a\" 1}", deep.as_str(), "\u{0}"] {
            parse(text.as_bytes()).expect_err("not JSON");
        }
    }

    proptest! {
        #[test]
        fn written_values_read_back(value in any_json()) {
            let read = parse(value.to_string().as_bytes());
            prop_assert_eq!(read, Ok((value, Vec::new())));
        }
    }
}
