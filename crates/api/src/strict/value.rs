//! The deserializer behind [`decode`](super::decode).

use serde::Deserializer;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

use super::{Error, Sink};
use crate::problem::{FieldPath, Problem};

/// Longer values are cut in messages.
const MAX_SHOWN: usize = 60;

/// One value of the document.
pub(super) struct Decoder<'a> {
    value: &'a Value,
    at: FieldPath,
    sink: &'a Sink<'a>,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(value: &'a Value, at: FieldPath, sink: &'a Sink<'a>) -> Self {
        let value = if sink.unset.contains(&at) { &Value::Null } else { value };
        Self { value, at, sink }
    }

    /// Reports that the value is of the wrong kind; `null` never is.
    fn mismatch(&self, allowed: &str) {
        if !self.value.is_null() {
            self.sink.report(Problem::invalid(&self.at, shown(self.value), allowed));
        }
    }

    /// The whole number that the value is, if it lies between the bounds. YAML
    /// writes some of them with a fraction or an exponent (`1.0`, `1e1`).
    fn integer(&self, min: i128, max: i128) -> i128 {
        let number = match self.value {
            Value::Number(n) => n
                .as_i64()
                .map(i128::from)
                .or_else(|| n.as_u64().map(i128::from))
                .or_else(|| n.as_f64().filter(|f| f.fract() == 0.0).map(|f| f as i128)),
            _ => None,
        };
        match number {
            Some(number) if (min..=max).contains(&number) => number,
            _ => {
                self.mismatch(&format!("a whole number from {min} to {max}"));
                0
            }
        }
    }

    fn text(&self) -> &'a str {
        let Value::String(text) = self.value else {
            self.mismatch("a string");
            return "";
        };
        text
    }

    fn object(&self) -> Option<&'a Map<String, Value>> {
        let object = self.value.as_object();
        if object.is_none() {
            self.mismatch("an object");
        }
        object
    }
}

/// A value as messages show it.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The methods for whole numbers differ in their bounds only.
macro_rules! integers {
    ($($method:ident $type:ty => $visit:ident $wide:ty;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let number = self.integer(i128::from(<$type>::MIN), i128::from(<$type>::MAX));
            let number = <$wide>::try_from(number).map_err(Error::custom)?;
            visitor.$visit(number)
        }
    )*};
}

impl<'de> Deserializer<'de> for Decoder<'_> {
    type Error = Error;

    integers! {
        deserialize_i8 i8 => visit_i64 i64;
        deserialize_i16 i16 => visit_i64 i64;
        deserialize_i32 i32 => visit_i64 i64;
        deserialize_i64 i64 => visit_i64 i64;
        deserialize_u8 u8 => visit_u64 u64;
        deserialize_u16 u16 => visit_u64 u64;
        deserialize_u32 u32 => visit_u64 u64;
        deserialize_u64 u64 => visit_u64 u64;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.value.clone().deserialize_any(visitor).map_err(Error::custom)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if !self.value.is_boolean() {
            self.mismatch("true or false");
        }
        visitor.visit_bool(self.value == &Value::Bool(true))
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.as_f64().is_some_and(|f| f.abs() > f64::from(f32::MAX)) {
            self.mismatch("a number of single precision");
            return visitor.visit_f32(0.0);
        }
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if !self.value.is_number() {
            self.mismatch("a number");
        }
        visitor.visit_f64(self.value.as_f64().unwrap_or_default())
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.text())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if !self.value.is_array() {
            self.mismatch("a list");
        }
        let items = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        visitor.visit_seq(Items { items, next: 0, at: self.at, sink: self.sink })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let fields = self.object().into_iter().flatten().rev().collect();
        visitor.visit_map(Fields { fields, value: None, at: self.at, sink: self.sink })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut fields = Vec::new();
        // The entries are popped from the end: the reverse keeps their order.
        for (name, value) in self.object().into_iter().flatten().rev() {
            let at = self.at.field(name);
            if !known.contains(&name.as_str()) {
                self.sink.report(Problem::unknown_field(&at, known));
            } else if !value.is_null() && !self.sink.unset.contains(&at) {
                fields.push((name, value));
            }
        }
        visitor.visit_map(Fields { fields, value: None, at: self.at, sink: self.sink })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let refuse = |found: &str| {
            // A variant may have the empty string as another name, for "not set".
            let names: Vec<&str> = variants.iter().copied().filter(|v| !v.is_empty()).collect();
            let allowed = names.join(", ");
            Error::custom(format_args!("found {found}, allowed: {allowed}"))
        };
        let Value::String(name) = self.value else { return Err(refuse(&shown(self.value))) };
        if !variants.contains(&name.as_str()) {
            return Err(refuse(&shown(self.value)));
        }
        let name: StrDeserializer<'_, Error> = name.as_str().into_deserializer();
        visitor.visit_enum(name)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct
    }
}

/// The elements of a list.
struct Items<'a> {
    items: &'a [Value],
    next: usize,
    at: FieldPath,
    sink: &'a Sink<'a>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some(item) = self.items.get(self.next) else { return Ok(None) };
        let at = self.at.index(self.next);
        self.next += 1;
        let item = seed.deserialize(Decoder::new(item, at.clone(), self.sink));
        item.map(Some).map_err(|error| error.located(&at))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

/// The entries of an object, the next one last.
struct Fields<'a> {
    fields: Vec<(&'a String, &'a Value)>,
    value: Option<(&'a String, &'a Value)>,
    at: FieldPath,
    sink: &'a Sink<'a>,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.value = self.fields.pop();
        let Some((name, _)) = self.value else { return Ok(None) };
        let name: StrDeserializer<'_, Error> = name.as_str().into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        let (name, value) =
            self.value.take().ok_or_else(|| Error::custom("a value was read before its key"))?;
        let at = self.at.field(name);
        let value = seed.deserialize(Decoder::new(value, at.clone(), self.sink));
        value.map_err(|error| error.located(&at))
    }
}
