//! Configuration documents: what the reference makes of them, and what this
//! scheduler does.

use serde::Deserialize;
use serde_json::Value;
use steersman_config::ConfigErrors;
use steersman_framework::registry::Registry;

use crate::difference::Difference;

/// A document of the corpus.
#[derive(Debug, Deserialize)]
#[serde(try_from = "DocumentFields")]
pub(crate) struct Document {
    pub(crate) name: String,
    yaml: String,
    expect: Expect,
}

#[derive(Debug)]
enum Expect {
    /// The document after defaulting.
    Defaulted(Value),
    /// It is refused; the reference's words.
    Refused(String),
    /// The reference does not know the version any more; this scheduler may.
    OldVersion(&'static str),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DocumentFields {
    name: String,
    yaml: String,
    defaulted: Option<Value>,
    error: Option<String>,
    startup_error: Option<String>,
}

impl TryFrom<DocumentFields> for Document {
    type Error = &'static str;

    fn try_from(fields: DocumentFields) -> Result<Self, Self::Error> {
        let expect = match (fields.error, fields.defaulted, fields.startup_error) {
            (Some(error), None, None) => match old_version(&error) {
                Some(version) => Expect::OldVersion(version),
                None => Expect::Refused(error),
            },
            (None, Some(_), Some(error)) => Expect::Refused(error),
            (None, Some(defaulted), None) => Expect::Defaulted(defaulted),
            _ => {
                return Err("one of the fields `error` and `defaulted` must be there, and only \
                            one; `startupError` belongs to `defaulted`");
            }
        };
        Ok(Self { name: fields.name, yaml: fields.yaml, expect })
    }
}

fn old_version(error: &str) -> Option<&'static str> {
    ["v1beta1", "v1beta2", "v1beta3"]
        .into_iter()
        .find(|v| error.contains(&format!("for version \"kubescheduler.config.k8s.io/{v}\"")))
}

impl Document {
    /// What differs from the reference.
    pub(crate) fn compare(&self, registry: &Registry) -> Vec<Difference> {
        let found = steersman_config::defaulted_document(&self.yaml, registry);
        match (&self.expect, found) {
            (Expect::Defaulted(expected), Ok(actual)) => {
                let mut differences = Vec::new();
                compare_json("", Some(expected), Some(&actual), &mut differences);
                differences
            }
            (Expect::Defaulted(_), Err(errors)) => {
                vec![difference("defaulted", "", "accepted", errors.to_string())]
            }
            (Expect::Refused(reference), Err(errors)) => missing_paths(reference, &errors),
            (Expect::Refused(reference), Ok(_)) => {
                vec![difference("error", "", reference, "accepted")]
            }
            (Expect::OldVersion(_), Ok(_)) => Vec::new(),
            (Expect::OldVersion(version), Err(errors)) => {
                let text = errors.to_string();
                if text.contains(version) {
                    return Vec::new();
                }
                let expected = format!("accepted, or refused with the version {version} named");
                vec![difference("error", "", expected, text)]
            }
        }
    }
}

fn difference(
    field: &'static str,
    at: &str,
    expected: impl Into<String>,
    actual: impl Into<String>,
) -> Difference {
    Difference { field, at: at.to_owned(), expected: expected.into(), actual: actual.into() }
}

/// One difference for each smallest part that differs.
fn compare_json(
    at: &str,
    expected: Option<&Value>,
    actual: Option<&Value>,
    differences: &mut Vec<Difference>,
) {
    match (expected, actual) {
        (Some(Value::Object(expected)), Some(Value::Object(actual))) => {
            let surplus = actual.keys().filter(|key| !expected.contains_key(*key));
            for key in expected.keys().chain(surplus) {
                let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                compare_json(&path, expected.get(key), actual.get(key), differences);
            }
        }
        (Some(Value::Array(expected)), Some(Value::Array(actual))) => {
            for i in 0..expected.len().max(actual.len()) {
                let path = format!("{at}[{i}]");
                compare_json(&path, expected.get(i), actual.get(i), differences);
            }
        }
        (expected, actual) if expected == actual => {}
        (expected, actual) => {
            let text =
                |value: Option<&Value>| value.map_or("absent".to_owned(), ToString::to_string);
            differences.push(difference("defaulted", at, text(expected), text(actual)));
        }
    }
}

/// Paths that the reference names and none of our problems does.
fn missing_paths(reference: &str, errors: &ConfigErrors) -> Vec<Difference> {
    let named = |path: &String| errors.problems().iter().any(|p| is_at(p.path.as_str(), path));
    paths_in(reference)
        .into_iter()
        .filter(|path| !named(path))
        .map(|path| difference("error", &path, "a problem at this path", errors.to_string()))
        .collect()
}

/// Whether `found` is the place that the reference calls `path`, or inside of
/// it. When a plugin complains, the reference names the place in the plugin's
/// arguments only.
fn is_at(found: &str, path: &str) -> bool {
    let in_args = found.split_once(".args.").map(|(_, rest)| rest);
    let mut rests =
        [Some(found), in_args].into_iter().flatten().filter_map(|p| p.strip_prefix(path));
    rests.any(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The kinds of complaints before which the reference writes a path.
const COMPLAINTS: [&str; 5] =
    ["Invalid value", "Required value", "Duplicate value", "Unsupported value", "Forbidden"];

/// What stands before a path and after it in the reference's decoding errors.
const AROUND_PATHS: [(&str, char); 3] =
    [("unknown field \"", '"'), ("decoding .", ':'), ("LeaderElectionConfiguration.", ' ')];

/// The paths that an error message of the reference names.
fn paths_in(message: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for complaint in COMPLAINTS {
        for (end, _) in message.match_indices(&format!(": {complaint}")) {
            let word = message[..end].rsplit(' ').next().unwrap_or_default();
            // The first of several comes after the bracket that opens the list.
            paths.push(word.trim_start_matches('[').to_owned());
        }
    }
    for (before, after) in AROUND_PATHS {
        for (start, _) in message.match_indices(before) {
            let rest = &message[start + before.len()..];
            paths.extend(rest.split(after).next().map(str::to_owned));
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_messages() {
        assert_eq!(
            paths_in(
                "[profiles[0].a: Required value, p[1]: Duplicate value: {}, decoding \
                 .profiles[0].b[0]: x"
            ),
            ["profiles[0].a", "p[1]", "profiles[0].b[0]"]
        );
        assert_eq!(
            paths_in("strict decoding error: unknown field \"leaderElection.leaderElects\""),
            ["leaderElection.leaderElects"]
        );
        assert_eq!(paths_in("yaml: line 3: did not find expected node content"), [""; 0]);
    }

    #[test]
    fn a_place_is_named_by_itself_by_what_is_inside_and_from_a_plugins_arguments() {
        for (found, path, expected) in [
            ("a.b", "a.b", true),
            ("a.b[0].c", "a.b", true),
            ("a.bc", "a.b", false),
            ("a", "a.b", false),
            ("profiles[0].pluginConfig[0].args.shape[1]", "shape", true),
            ("profiles[0].shape", "shape", false),
        ] {
            assert_eq!(is_at(found, path), expected, "{found} {path}");
        }
    }
}
