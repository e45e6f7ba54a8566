//! Documents with what the reference makes of them.

use serde::Deserialize;
use serde_json::Value;

use super::registry;
use crate::{Options, Versions};

const CORPUS: &str = include_str!("../../../../testdata/conformance/config/config.jsonl");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    yaml: String,
    defaulted: Option<Value>,
    error: Option<String>,
    startup_error: Option<String>,
}

fn cases() -> Vec<Case> {
    CORPUS.lines().map(|line| serde_json::from_str(line).expect("a case of the corpus")).collect()
}

#[test]
fn good_documents_default_as_in_the_reference() {
    let mut compared = 0;
    for case in cases() {
        let Case { name, yaml, defaulted: Some(expected), startup_error: None, .. } = case else {
            continue;
        };
        match crate::defaulted_document(&yaml, &registry()) {
            Ok(found) => assert_eq!(
                serde_json::to_string_pretty(&found).expect("JSON"),
                serde_json::to_string_pretty(&expected).expect("JSON"),
                "{name}"
            ),
            Err(errors) => panic!("{name}: {errors}"),
        }
        compared += 1;
    }
    assert_eq!(compared, 17);
}

#[test]
fn bad_documents_are_refused_with_the_paths_that_the_reference_names() {
    let mut compared = 0;
    for case in cases() {
        let Some(reference) = case.error.as_deref().or(case.startup_error.as_deref()) else {
            continue;
        };
        let Err(errors) = crate::load_with(&case.yaml, &registry(), &only_v1()) else {
            panic!("{} was accepted; the reference says: {reference}", case.name);
        };
        for path in paths_in(reference) {
            assert!(
                errors.problems().iter().any(|problem| names(problem.path.as_str(), &path)),
                "{}: no problem at {path}:\n{errors}",
                case.name
            );
        }
        compared += 1;
    }
    assert_eq!(compared, 34);
}

/// Whether `found` is the place that the reference calls `path`, or inside of
/// it. When a plugin complains, the reference names the place in the arguments.
fn names(found: &str, path: &str) -> bool {
    let at = found.strip_prefix(path).or_else(|| {
        let (_, in_args) = found.split_once(".args.")?;
        in_args.strip_prefix(path)
    });
    at.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The paths in an error message of the reference.
fn paths_in(message: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for kind in
        ["Invalid value", "Required value", "Duplicate value", "Unsupported value", "Forbidden"]
    {
        for (end, _) in message.match_indices(&format!(": {kind}")) {
            let word = message[..end].rsplit(' ').next().unwrap_or_default();
            // The first of several comes after the bracket that opens the list.
            paths.push(word.trim_start_matches('[').to_owned());
        }
    }
    for (before, after) in
        [("unknown field \"", '"'), ("decoding .", ':'), ("LeaderElectionConfiguration.", ' ')]
    {
        for (start, _) in message.match_indices(before) {
            let rest = &message[start + before.len()..];
            paths.extend(rest.split(after).next().map(str::to_owned));
        }
    }
    paths
}

#[test]
fn paths_are_found_in_messages() {
    assert_eq!(
        paths_in(
            "[profiles[0].a: Required value, p[1]: Duplicate value: {}, decoding .profiles[0].b[0]: x"
        ),
        ["profiles[0].a", "p[1]", "profiles[0].b[0]"]
    );
    let with_paths =
        cases().into_iter().filter_map(|c| c.error).filter(|e| !paths_in(e).is_empty());
    assert_eq!(with_paths.count(), 22);
}

/// As the reference.
fn only_v1() -> Options {
    Options { versions: Versions::OnlyV1, ..Options::default() }
}

#[test]
fn other_versions_are_refused_with_the_one_that_is_allowed() {
    for (version, options) in [
        ("v1beta1", only_v1()),
        ("v1beta2", only_v1()),
        ("v1beta3", only_v1()),
        ("v2", Options::default()),
        ("v1alpha1", Options::default()),
        ("v1alpha2", Options::default()),
    ] {
        let text = format!(
            "apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n"
        );
        let errors = crate::load_with(&text, &registry(), &options).expect_err("another version");
        let converted = match options.versions {
            Versions::OnlyV1 => "",
            Versions::WithMigration => "; v1beta3, v1beta2 and v1beta1 are converted",
        };
        assert_eq!(
            errors.to_string(),
            format!(
                "apiVersion: found \"kubescheduler.config.k8s.io/{version}\", allowed: \
                 \"kubescheduler.config.k8s.io/v1\"{converted}"
            )
        );
    }
}
