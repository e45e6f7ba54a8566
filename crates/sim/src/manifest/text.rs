//! From text to JSON values: splits a file into documents and reads each one
//! by itself, so that a broken document spoils no other.

use rayon::prelude::*;
use serde_json::Value;
use serde_saphyr::{Error, Options, alias_limits, budget, options};

use super::{json, list};

/// Objects nest about fifteen levels deep. Deeper ones would only cost stack.
const MAX_DEPTH: usize = 64;
/// Values that aliases may add to a document: a bomb of aliases ends here.
const MAX_ALIASED_VALUES: usize = 100_000;
/// Bytes that aliases may add to a document.
const MAX_ALIASED_BYTES: usize = 64 << 20;

/// One document with content.
#[derive(Debug)]
pub(super) struct Document {
    /// The line where it starts, or where it is broken.
    pub(super) line: usize,
    /// Its value, or why it cannot be read.
    pub(super) value: Result<Value, String>,
    /// The items of a list object that was read item by item, in place of the
    /// ones in `value`.
    pub(super) items: Option<Vec<Document>>,
}

impl Document {
    pub(super) fn new(line: usize, value: Result<Value, String>) -> Self {
        Self { line, value, items: None }
    }
}

/// Reads all documents of `text`. `json`: the file's name says that it holds
/// JSON, so that what does not is not tried as YAML.
pub(super) fn documents(text: &str, json: bool) -> Vec<Document> {
    let chunks = split(text);
    let read: Vec<Vec<Document>> = chunks.par_iter().map(|chunk| chunk.read(json)).collect();
    read.into_iter().flatten().collect()
}

/// The text of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk<'t> {
    text: &'t str,
    /// The line of its file on which `text` starts, from 1.
    first_line: usize,
    /// The line of its file on which its content starts, from 1.
    line: usize,
}

/// Splits at the markers of YAML (`---` and `...`), which no content may hold
/// at the start of a line. Documents without content are left out.
fn split(text: &str) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let mut start = 0;
    let mut first_line = 1;
    let mut content_line = None;
    let mut offset = 0;
    let mut number = 0;
    let mut close = |range: std::ops::Range<usize>, first_line, content: &mut Option<usize>| {
        if let Some(line) = content.take() {
            chunks.push(Chunk { text: &text[range], first_line, line });
        }
    };
    for line in text.split_inclusive('\n') {
        number += 1;
        let after = match line.get(..3) {
            Some("---" | "...")
                if line[3..].is_empty() || line[3..].starts_with(char::is_whitespace) =>
            {
                close(start..offset, first_line, &mut content_line);
                // Content may follow the marker on its line.
                start = offset + 3;
                first_line = number;
                &line[3..]
            }
            _ => line,
        };
        let after = after.trim_start();
        // Directives say nothing that objects need, and only open documents.
        let directive = content_line.is_none() && line.starts_with('%');
        if directive {
            start = offset + line.len();
            first_line = number + 1;
        } else if content_line.is_none() && !after.is_empty() && !after.starts_with('#') {
            content_line = Some(number);
        }
        offset += line.len();
    }
    close(start..offset, first_line, &mut content_line);
    chunks
}

impl Chunk<'_> {
    fn read(self, json: bool) -> Vec<Document> {
        if json || self.text.trim_start().starts_with('{') {
            let documents = json::documents(self.text, self.first_line);
            // YAML's flow style looks like JSON at first.
            if json || documents.iter().all(|d| d.value.is_ok()) {
                return documents;
            }
        }
        let Some(parts) = list::cut(self.text) else { return vec![self.read_yaml()] };
        let document = self.read_parts(&parts);
        let items = document.items.as_deref().unwrap_or_default();
        if document.value.is_ok() && items.iter().all(|item| item.value.is_ok()) {
            return vec![document];
        }
        // When it cannot be read as a whole either, the parts say more.
        let whole = self.read_yaml();
        vec![if whole.value.is_ok() { whole } else { document }]
    }

    fn read_parts(self, parts: &list::Parts<'_>) -> Document {
        let rest = Chunk { text: &parts.rest, ..self }.read_yaml();
        let items = parts.items.par_iter().map(|(text, line)| {
            let first_line = self.first_line + line;
            let mut item = Chunk { text, first_line, line: first_line }.read_yaml();
            if let Ok(value) = &mut item.value {
                match value.as_array_mut().map(Vec::as_mut_slice) {
                    Some([only]) => *value = only.take(),
                    _ => item.value = Err("not valid YAML: not one item of a list".to_owned()),
                }
            }
            item
        });
        Document { items: Some(items.collect()), ..rest }
    }

    fn read_yaml(self) -> Document {
        match serde_saphyr::from_str_with_options::<Value>(self.text, limits(self.text.len())) {
            Ok(value) => Document::new(self.line, Ok(value)),
            Err(error) => {
                let (line, message) = describe(error.without_snippet());
                let line = line.map_or(self.line, |line| self.first_line + line - 1);
                Document::new(line, Err(message))
            }
        }
    }
}

/// Limits that text without aliases never reaches, however long it is.
fn limits(length: usize) -> Options {
    options! {
        budget: budget! {
            max_depth: MAX_DEPTH,
            max_nodes: length.saturating_add(MAX_ALIASED_VALUES),
            max_events: length.saturating_mul(2).saturating_add(2 * MAX_ALIASED_VALUES),
            // The limits below hold whatever the share of aliases is.
            enforce_alias_anchor_ratio: false,
            max_recorded_anchor_events: length.saturating_add(MAX_ALIASED_VALUES),
            max_total_scalar_bytes: length.saturating_add(MAX_ALIASED_BYTES),
        },
        alias_limits: alias_limits! { max_total_replayed_events: MAX_ALIASED_VALUES },
        legacy_octal_numbers: true,
        with_snippet: false,
    }
}

/// The line within the text, from 1, and what is wrong there.
fn describe(error: &Error) -> (Option<usize>, String) {
    let place = error.location().map(|at| (at.line(), at.column()));
    let what = match error {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key {key:?} stands twice in one object; each may be set once")
        }
        other => other.to_string(),
    };
    // The lines that the parser writes are the document's, not the file's.
    let what = match what.split(" at line ").next().unwrap_or_default() {
        limit if limit.starts_with("budget breached") => format!(
            "too large, allowed: {MAX_ALIASED_VALUES} values from aliases, {MAX_DEPTH} levels"
        ),
        what => what.to_owned(),
    };
    let Some((line, column)) = place else {
        return (None, format!("not valid YAML: {what}"));
    };
    (usize::try_from(line).ok(), format!("not valid YAML: {what} (column {column})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_split(text: &str, expected: &[(&str, usize)]) {
        let chunks: Vec<_> = split(text).iter().map(|c| (c.text.trim(), c.line)).collect();
        assert_eq!(chunks, expected, "{text:?}");
    }

    #[test]
    fn splits_at_markers_and_leaves_out_documents_without_content() {
        check_split("", &[]);
        check_split("---\n# only a comment\n---\n", &[]);
        check_split("a: b", &[("a: b", 1)]);
        check_split("# c\na: b\n---\nc: d\n", &[("# c\na: b", 2), ("c: d", 4)]);
        check_split("---\na: b\n...\n---\nc: d", &[("a: b", 2), ("c: d", 5)]);
        check_split("%YAML 1.2\n---\na: b\n", &[("a: b", 3)]);
        check_split("--- {a: b}\n--- # c\nc: d", &[("{a: b}", 1), ("# c\nc: d", 3)]);
        check_split("a: b\r\n---\r\nc: d\r\n", &[("a: b", 1), ("c: d", 3)]);
        check_split("a: |\n  ---\n  x\n----\n", &[("a: |\n  ---\n  x\n----", 1)]);
    }

    #[track_caller]
    fn check_read(text: &str, json: bool, expected: &[(usize, &str)]) {
        let read: Vec<_> = documents(text, json)
            .into_iter()
            .map(|d| (d.line, d.value.map_or_else(|error| error, |value| value.to_string())))
            .collect();
        let expected: Vec<_> = expected.iter().map(|(l, t)| (*l, (*t).to_owned())).collect();
        assert_eq!(read, expected, "{text:?}");
    }

    #[test]
    fn broken_document_spoils_no_other_and_its_line_is_the_files() {
        check_read(
            "a: b\n---\nc: d\nc: e\n---\nf:\n\t- g\n---\nh: [i]\n",
            false,
            &[
                (1, r#"{"a":"b"}"#),
                (
                    4,
                    "not valid YAML: the key \"c\" stands twice in one object; each may be set \
                     once (column 1)",
                ),
                (
                    7,
                    "not valid YAML: tabs disallowed within this context (block indentation) (column 2)",
                ),
                (9, r#"{"h":["i"]}"#),
            ],
        );
    }

    #[test]
    fn reads_concatenated_json_and_flow_style_yaml() {
        check_read("{\"a\": 1}\n{\"b\": 2}\n", false, &[(1, r#"{"a":1}"#), (2, r#"{"b":2}"#)]);
        check_read("{a: 1, b: [x]}", false, &[(1, r#"{"a":1,"b":["x"]}"#)]);
        check_read(
            "\n{\"a\": 1}\n{\"a\": {\"b\": 1,\n \"b\": 2}}",
            true,
            &[
                (2, r#"{"a":1}"#),
                (
                    4,
                    "not valid JSON: the key \"b\" stands twice in one object; each may be set \
                     once (column 4)",
                ),
            ],
        );
    }

    #[test]
    fn alias_bomb_is_an_error() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..12 {
            let last = n - 1;
            let items = vec![format!("*a{last}"); 10].join(", ");
            text += &format!("a{n}: &a{n} [{items}]\n");
        }
        let read = documents(&text, false);
        assert!(read[0].value.as_ref().is_err_and(|e| e.contains("alias")), "{read:?}");
    }
}
