//! Makes the schema data of the `apimachinery` crate from Kubernetes' published
//! definitions.
//!
//! The input is a JSON file with all definitions under `$defs` or
//! `definitions`, as Kubernetes' OpenAPI document has them or as collections of
//! JSON schemas for validators carry them. Those collections bend types so that
//! nulls pass and pin `apiVersion` and `kind`; both are undone here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};

/// Where the result goes, from the root of the workspace.
const TARGET: &str = "crates/apimachinery/schema/kubernetes-1.36.json.gz";

/// Packages whose kinds a scheduler's API server serves. Whatever these refer
/// to comes along.
const ROOTS: &[&str] = &[
    "io.k8s.api.admissionregistration.v1.",
    "io.k8s.api.apps.v1.",
    "io.k8s.api.authentication.v1.",
    "io.k8s.api.authorization.v1.",
    "io.k8s.api.autoscaling.v1.",
    "io.k8s.api.autoscaling.v2.",
    "io.k8s.api.batch.v1.",
    "io.k8s.api.coordination.v1.",
    "io.k8s.api.core.v1.",
    "io.k8s.api.discovery.v1.",
    "io.k8s.api.events.v1.",
    "io.k8s.api.networking.v1.",
    "io.k8s.api.node.v1.",
    "io.k8s.api.policy.v1.",
    "io.k8s.api.rbac.v1.",
    "io.k8s.api.resource.v1.",
    "io.k8s.api.scheduling.v1.",
    "io.k8s.api.scheduling.v1alpha2.",
    "io.k8s.api.storage.v1.",
    "io.k8s.apimachinery.pkg.",
];

/// Defaults that complete the keys of list entries. Field management needs
/// them, and published definitions leave them out.
const KEY_DEFAULTS: &[(&str, &str, &str)] = &[
    ("io.k8s.api.core.v1.ContainerPort", "protocol", "TCP"),
    ("io.k8s.api.core.v1.ServicePort", "protocol", "TCP"),
];

/// Types that accept more than one JSON type, which has no place in `type`.
const SCALARS: &[(&str, &str, &str)] = &[
    (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        "int-or-string",
        "A whole number, or text such as a percentage or the name of a port.",
    ),
    (
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        "",
        "An amount of something: a decimal number, optionally with a suffix such as m, k, M, G, \
         Ki, Mi or Gi, or an exponent. 100m is a tenth, 1Ki is 1024.",
    ),
];

/// Writes the compressed data and says how much it is.
pub(crate) fn run(root: &Path, input: &Path) -> Result<()> {
    let text = fs::read_to_string(input).with_context(|| format!("read {}", input.display()))?;
    let document: Value = serde_json::from_str(&text).context("the file is not JSON")?;
    let definitions = ["$defs", "definitions"]
        .iter()
        .find_map(|key| document.get(key)?.as_object())
        .context("the file has neither $defs nor definitions")?;
    let kept = reachable(definitions)?;
    let mut result = BTreeMap::new();
    for name in kept {
        result.insert(name, tidy_definition(name, &definitions[name]));
    }
    let text = serde_json::to_vec(&json!({ "definitions": result }))?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&text)?;
    let packed = encoder.finish()?;
    let target = root.join(TARGET);
    fs::write(&target, &packed).with_context(|| format!("write {}", target.display()))?;
    println!("{TARGET}: {} definitions, {} bytes packed", result.len(), packed.len());
    Ok(())
}

/// The names of what the roots refer to, directly or not.
fn reachable(definitions: &Map<String, Value>) -> Result<BTreeSet<&str>> {
    let mut open: Vec<&str> = definitions
        .keys()
        .map(String::as_str)
        .filter(|name| ROOTS.iter().any(|root| name.starts_with(root)))
        .collect();
    if open.is_empty() {
        bail!("the file has no definitions of Kubernetes' kinds");
    }
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        if !seen.insert(name) {
            continue;
        }
        let definition =
            definitions.get(name).with_context(|| format!("{name} is referred to and missing"))?;
        references(definition, &mut open);
    }
    Ok(seen)
}

fn references<'a>(node: &'a Value, into: &mut Vec<&'a str>) {
    match node {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str() {
                    Some(target) if key == "$ref" => into.push(referred(target)),
                    _ => references(value, into),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, into)),
        _ => {}
    }
}

/// The name at the end of a reference, whichever file it points into.
fn referred(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

fn tidy_definition(name: &str, definition: &Value) -> Value {
    if let Some((_, format, description)) = SCALARS.iter().find(|(scalar, ..)| *scalar == name) {
        let mut scalar = json!({ "type": "string", "description": description });
        if !format.is_empty() {
            scalar["format"] = Value::from(*format);
        }
        return scalar;
    }
    let mut tidied = tidy_node(definition);
    for (of, field, default) in KEY_DEFAULTS {
        if *of == name
            && let Some(field) = tidied.pointer_mut(&format!("/properties/{field}"))
        {
            field["default"] = Value::from(*default);
        }
    }
    tidied
}

fn tidy_node(node: &Value) -> Value {
    let Value::Object(fields) = node else { return node.clone() };
    let mut tidied = Map::new();
    for (key, value) in fields {
        let value = match (key.as_str(), value) {
            ("$ref", Value::String(target)) => {
                Value::from(format!("#/definitions/{}", referred(target)))
            }
            ("type", Value::Array(types)) => {
                types.iter().find(|name| *name != "null").cloned().unwrap_or_default()
            }
            ("properties", Value::Object(properties)) => {
                let properties = properties.iter();
                Value::Object(properties.map(|(name, of)| (name.clone(), tidy_node(of))).collect())
            }
            ("items" | "additionalProperties", of) => tidy_node(of),
            // Pinned by collections of schemas, not in the original.
            ("enum", _) => continue,
            _ => value.clone(),
        };
        tidied.insert(key.clone(), value);
    }
    Value::Object(tidied)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{reachable, tidy_definition};

    #[test]
    fn nullable_types_and_foreign_references_are_undone() {
        let given = json!({
            "type": ["object", "null"],
            "properties": {
                "kind": { "type": ["string", "null"], "enum": ["Pod"] },
                "spec": { "$ref": "_definitions.json#/definitions/io.k8s.api.core.v1.PodSpec" },
            },
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "kind": { "type": "string" },
                "spec": { "$ref": "#/definitions/io.k8s.api.core.v1.PodSpec" },
            },
        });
        assert_eq!(tidy_definition("io.k8s.api.core.v1.Pod", &given), expected);
    }

    #[test]
    fn what_nothing_refers_to_is_left_out() {
        let all = json!({
            "io.k8s.api.core.v1.Pod": { "properties": { "a": { "$ref": "#/$defs/x.A" } } },
            "x.A": {},
            "x.B": {},
        });
        let kept = reachable(all.as_object().expect("an object")).expect("complete");
        assert_eq!(kept.into_iter().collect::<Vec<_>>(), ["io.k8s.api.core.v1.Pod", "x.A"]);
    }

    #[test]
    fn a_dangling_reference_is_an_error() {
        let all = json!({ "io.k8s.api.core.v1.Pod": { "$ref": "#/$defs/x.A" } });
        assert!(reachable(all.as_object().expect("an object")).is_err());
    }
}
