use std::path::PathBuf;

use super::*;

fn testdata() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// The names of the files that the paths stand for, and the problems.
fn read(paths: &[PathBuf], stdin: &str) -> (Vec<String>, Vec<String>) {
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    read_paths(paths, &mut stdin.as_bytes(), &mut problems, |file, _| {
        files.push(file.name.replace(&format!("{}/", testdata().display()), ""));
    });
    let problems = problems.iter().map(ToString::to_string);
    let problems = problems.map(|p| p.replace(&testdata().display().to_string(), "testdata"));
    (files, problems.collect())
}

#[test]
fn directory_stands_for_the_manifests_below_it_by_path() {
    let (files, problems) = read(&[testdata().join("lists"), testdata().join("job")], "");
    assert_eq!(files, ["lists/input.json", "lists/input.yaml", "job/input.yaml"]);
    assert_eq!(problems, [""; 0]);
    let (files, _) = read(&[testdata()], "");
    assert!(files.is_sorted() && files.len() > 10, "{files:?}");
}

#[test]
fn path_that_cannot_be_read_spoils_no_other() {
    let paths = [testdata().join("absent.yaml"), testdata().join("job/input.yaml")];
    let (files, problems) = read(&paths, "");
    assert_eq!(files, ["job/input.yaml"]);
    assert_eq!(
        problems,
        ["testdata/absent.yaml: cannot be read: No such file or directory (os error 2)"]
    );
}

#[test]
fn dash_is_standard_input_and_a_path_counts_once() {
    let (files, problems) = read(&["-".into(), "-".into()], "a: b");
    assert_eq!((files, problems), (vec!["standard input".to_owned()], vec![]));
}

#[test]
fn directory_without_manifests_is_an_error() {
    let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src").join("manifest");
    let (files, problems) = read(&[sources], "");
    assert_eq!(files, [""; 0]);
    assert!(
        problems[0]
            .contains("the directory holds no manifest, allowed: files ending in yaml, yml, json")
    );
}

#[track_caller]
fn check_problem(text: &str, expected: &str) {
    let mut problems = Vec::new();
    Manifests::default().read(InputFile::new("f.yaml", text), &mut problems);
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.first().map_or("", String::as_str), expected, "{problems:?}");
}

#[test]
fn name_must_be_one_that_an_api_server_takes() {
    let check = |name: &str, good: bool| {
        let text = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: \"{name}\"}}}}");
        let mut problems = Vec::new();
        Manifests::default().read(InputFile::new("f.yaml", text), &mut problems);
        assert_eq!(problems.is_empty(), good, "{name}: {problems:?}");
    };
    for good in ["a", "a-b.c-1", "0", &"x".repeat(253)] {
        check(good, true);
    }
    for bad in ["A", "-a", "a-", "a..b", "a_b", "a b", "a/b", "ä", &"x".repeat(254)] {
        check(bad, false);
    }
}

#[test]
fn malformed_metadata_is_named() {
    check_problem(
        "{apiVersion: v1, kind: Pod, metadata: {name: 5}}",
        "f.yaml:1 (document 1): Pod without a name: metadata.name: found 5, allowed: a string",
    );
    check_problem(
        "{apiVersion: v1, kind: Pod, metadata: none}",
        "f.yaml:1 (document 1): Pod without a name: metadata.name: required: the object's name",
    );
    check_problem(
        "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: A}}",
        "f.yaml:1 (document 1): Pod A/a: metadata.namespace: found \"A\", allowed: up to 63 \
         lowercase letters, digits, '-' and '.', starting and ending with a letter or digit",
    );
}
