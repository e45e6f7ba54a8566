//! Reading and writing manifests as JSON values.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_saphyr::{Options, alias_limits, budget, options};
use thiserror::Error;

/// Objects nest about fifteen levels deep. Deeper ones would only cost stack.
const MAX_DEPTH: usize = 64;
/// Values that aliases may add: a bomb of aliases ends here.
const MAX_ALIASED_VALUES: usize = 100_000;
/// Bytes that aliases may add.
const MAX_ALIASED_BYTES: usize = 64 << 20;
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Why manifests cannot be had.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// A file or directory cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// Which one.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file is not text.
    #[error("{path} is not UTF-8 text")]
    NotText {
        /// Which one.
        path: String,
    },
    /// A document is neither YAML nor JSON.
    #[error("{path}: document {document}: {message}")]
    Syntax {
        /// In which file.
        path: String,
        /// Which one, from 1.
        document: usize,
        /// What is wrong.
        message: String,
    },
    /// A document is no object of the API.
    #[error("{origin}: {message}")]
    NoObject {
        /// File, document and item.
        origin: String,
        /// What is wrong.
        message: String,
    },
    /// A directory without manifests, or a file without objects.
    #[error("there are no objects in {path}")]
    Empty {
        /// Which one.
        path: String,
    },
}

/// An object, and where it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// `web.yaml: document 2: items[3]`
    pub origin: String,
    /// The object.
    pub object: Value,
}

/// Reads files, directories (with what is in them) and stdin (`-`).
///
/// # Errors
/// At the first thing that cannot be read.
pub fn read(paths: &[PathBuf], stdin: &mut dyn Read) -> Result<Vec<Manifest>, ManifestError> {
    let mut manifests = Vec::new();
    for path in paths {
        let before = manifests.len();
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            stdin.read_to_end(&mut bytes).map_err(|source| unreadable(path, source))?;
            manifests.extend(read_bytes("stdin", bytes)?);
        } else {
            for file in files(path)? {
                let bytes = fs::read(&file).map_err(|source| unreadable(&file, source))?;
                manifests.extend(read_bytes(&file.display().to_string(), bytes)?);
            }
        }
        if manifests.len() == before {
            let stdin = path.as_os_str() == "-";
            let path = if stdin { "stdin".to_owned() } else { path.display().to_string() };
            return Err(ManifestError::Empty { path });
        }
    }
    Ok(manifests)
}

/// Reads the text of a file. Lists are taken apart.
///
/// # Errors
/// When it is not YAML or JSON, or holds something that is no object.
pub fn parse(path: &str, text: &str) -> Result<Vec<Manifest>, ManifestError> {
    let mut manifests = Vec::new();
    for (index, document) in documents(text).into_iter().enumerate() {
        let number = index + 1;
        let limits = limits(document.len());
        let value: Value =
            serde_saphyr::from_str_with_options(document, limits).map_err(|error| {
                let message = error.without_snippet().to_string();
                ManifestError::Syntax { path: path.to_owned(), document: number, message }
            })?;
        let origin = format!("{path}: document {number}");
        if !value.is_null() {
            flatten(origin, value, &mut manifests)?;
        }
    }
    Ok(manifests)
}

/// Writes objects as YAML documents.
///
/// # Errors
/// When an object has no YAML form, which does not happen to objects of the API.
pub fn write(objects: &[Value]) -> Result<String, serde_saphyr::ser_error::Error> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(serde_saphyr::to_string(object)?.trim_end());
        text.push('\n');
    }
    Ok(text)
}

fn read_bytes(path: &str, bytes: Vec<u8>) -> Result<Vec<Manifest>, ManifestError> {
    let text =
        String::from_utf8(bytes).map_err(|_| ManifestError::NotText { path: path.to_owned() })?;
    parse(path, &text)
}

/// The texts of the documents of a file that hold more than comments.
fn documents(text: &str) -> Vec<&str> {
    let mut documents = Vec::new();
    let (mut start, mut offset) = (0, 0);
    for line in text.split_inclusive('\n') {
        let marks = line
            .strip_prefix("---")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        if marks {
            documents.push(&text[start..offset]);
            start = offset + 3;
        }
        offset += line.len();
    }
    documents.push(&text[start..]);
    let has_content = |document: &&str| {
        let mut lines = document.lines().map(str::trim);
        lines.any(|line| !line.is_empty() && !line.starts_with('#'))
    };
    documents.retain(has_content);
    documents
}

fn flatten(
    origin: String,
    mut value: Value,
    manifests: &mut Vec<Manifest>,
) -> Result<(), ManifestError> {
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let items = value.get_mut("items").filter(|_| kind.ends_with("List")).map(Value::take);
    if let Some(items) = items {
        let Value::Array(items) = items else {
            let message = "items of a list must be a sequence".to_owned();
            return Err(ManifestError::NoObject { origin, message });
        };
        for (index, mut item) in items.into_iter().enumerate() {
            inherit(&mut item, &value, &kind);
            flatten(format!("{origin}: items[{index}]"), item, manifests)?;
        }
        return Ok(());
    }
    let missing = ["apiVersion", "kind"]
        .into_iter()
        .find(|field| value.get(field).and_then(Value::as_str).is_none_or(str::is_empty));
    if let Some(field) = missing {
        let message = format!("{field} must be given: this is no object of the API");
        return Err(ManifestError::NoObject { origin, message });
    }
    manifests.push(Manifest { origin, object: value });
    Ok(())
}

/// The items of a `NodeList` as the API itself writes it do not say that they
/// are nodes.
fn inherit(item: &mut Value, list: &Value, list_kind: &str) {
    let Some(kind) = list_kind.strip_suffix("List").filter(|kind| !kind.is_empty()) else { return };
    let Some(fields) = item.as_object_mut() else { return };
    if !fields.contains_key("kind") && !fields.contains_key("apiVersion") {
        fields.insert("kind".to_owned(), Value::from(kind));
        fields.insert("apiVersion".to_owned(), list["apiVersion"].clone());
    }
}

/// A file, or the manifests in a directory and below, in order of their names.
fn files(path: &Path) -> Result<Vec<PathBuf>, ManifestError> {
    let is_dir = fs::metadata(path).map_err(|source| unreadable(path, source))?.is_dir();
    if !is_dir {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(|source| unreadable(path, source))? {
        entries.push(entry.map_err(|source| unreadable(path, source))?.path());
    }
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        // Links to directories are not followed: they can go in circles.
        let kind = fs::symlink_metadata(&entry).map_err(|source| unreadable(&entry, source))?;
        let extension = entry.extension().and_then(|extension| extension.to_str());
        if kind.is_dir() {
            found.extend(files(&entry)?);
        } else if extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) {
            found.push(entry);
        }
    }
    Ok(found)
}

fn unreadable(path: &Path, source: io::Error) -> ManifestError {
    ManifestError::Read { path: path.display().to_string(), source }
}

/// Limits that text without aliases never reaches, however long it is.
fn limits(length: usize) -> Options {
    options! {
        budget: budget! {
            max_depth: MAX_DEPTH,
            max_nodes: length.saturating_add(MAX_ALIASED_VALUES),
            max_events: length.saturating_mul(2).saturating_add(2 * MAX_ALIASED_VALUES),
            enforce_alias_anchor_ratio: false,
            max_recorded_anchor_events: length.saturating_add(MAX_ALIASED_VALUES),
            max_total_scalar_bytes: length.saturating_add(MAX_ALIASED_BYTES),
        },
        alias_limits: alias_limits! { max_total_replayed_events: MAX_ALIASED_VALUES },
        legacy_octal_numbers: true,
        with_snippet: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(text: &str) -> Vec<String> {
        match parse("f.yaml", text) {
            Ok(manifests) => manifests.into_iter().map(|m| m.origin).collect(),
            Err(error) => vec![format!("error: {error}")],
        }
    }

    #[test]
    fn documents_and_lists_are_taken_apart() {
        let pod = "apiVersion: v1\nkind: Pod\n";
        let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node}\n- {apiVersion: v1, kind: Pod}\n";
        let text = format!("# nothing\n---\n{pod}---\n{list}---\n");
        assert_eq!(
            origins(&text),
            ["f.yaml: document 1", "f.yaml: document 2: items[0]", "f.yaml: document 2: items[1]"]
        );
    }

    #[test]
    fn what_is_no_object_is_named() {
        assert_eq!(
            origins("apiVersion: v1\nkind: List\nitems: [{kind: Pod}]"),
            ["error: f.yaml: document 1: items[0]: apiVersion must be given: \
              this is no object of the API"]
        );
        assert!(origins("a: [")[0].starts_with("error: f.yaml: document 1: "));
    }

    #[test]
    fn items_of_a_list_of_one_kind_need_not_name_it() {
        let text = r#"{"apiVersion":"v1","kind":"NodeList","items":[{"metadata":{"name":"a"}}]}"#;
        let node = parse("f", text).unwrap().remove(0).object;
        assert_eq!((&node["apiVersion"], &node["kind"]), (&"v1".into(), &"Node".into()));
    }

    #[test]
    fn what_is_written_can_be_read() {
        let object = serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "yes", "b": "1e3", "c": "x: y\n"},
        });
        let text = write(&[object.clone(), object.clone()]).unwrap();
        let read: Vec<Value> = parse("f", &text).unwrap().into_iter().map(|m| m.object).collect();
        assert_eq!(read, [object.clone(), object]);
    }
}
