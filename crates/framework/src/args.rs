//! Plugin arguments: how a plugin describes what its `pluginConfig` entry may
//! hold, so that the configuration parser can check and default it without
//! knowing any plugin.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use steersman_api::problem::{FieldPath, Problem};
use steersman_api::strict;

/// The arguments of one plugin, as written under `pluginConfig[].args`.
///
/// Implementors use `#[serde(rename_all = "camelCase", default)]` and a
/// `Default` that is the reference's default, so that a field holds its default
/// when it is absent or `null` and "zero" stays what it is. Unknown fields are
/// found by [`strict::decode`]. The fields `apiVersion` and `kind` are taken off
/// before decoding and put back after.
pub trait PluginArgs: Serialize + DeserializeOwned {
    /// The `kind` of the arguments: `NodeResourcesFitArgs`.
    const KIND: &'static str;

    /// Replaces what the reference takes for "not set" though it is written:
    /// empty lists and strings, weights of zero.
    fn set_defaults(&mut self) {}

    /// Reports every value that is not allowed. Runs after
    /// [`PluginArgs::set_defaults`].
    fn validate(&self, at: &FieldPath, problems: &mut Vec<Problem>);
}

/// A [`PluginArgs`] type without its type, for tables of plugins.
#[derive(Clone, Copy, Debug)]
pub struct ArgsKind {
    /// See [`PluginArgs::KIND`].
    pub kind: &'static str,
    /// Decodes, defaults and validates a JSON object of arguments (without
    /// `apiVersion` and `kind`); returns the defaulted object, in which values
    /// that are among the problems may be replaced by defaults. `None` when
    /// nothing can be made of it.
    pub complete: fn(Value, &FieldPath, &mut Vec<Problem>) -> Option<Value>,
}

impl ArgsKind {
    /// The table entry for `A`.
    pub const fn of<A: PluginArgs>() -> Self {
        Self { kind: A::KIND, complete: complete::<A> }
    }
}

fn complete<A: PluginArgs>(
    raw: Value,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) -> Option<Value> {
    let mut found = Vec::new();
    let args = strict::decode(&raw, at, &mut found).map(|mut args: A| {
        args.set_defaults();
        let mut more = Vec::new();
        args.validate(at, &mut more);
        strict::append_independent(&mut found, more);
        args
    });
    problems.append(&mut found);
    let args = args?;
    match serde_json::to_value(&args) {
        Ok(value) => Some(value),
        Err(error) => {
            problems.push(Problem::new(at, format!("cannot be written back as JSON: {error}")));
            None
        }
    }
}
