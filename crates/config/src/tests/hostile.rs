//! Text that is no configuration, by accident or on purpose.

use std::fmt::Write as _;

use super::{check_problems, problems_of, registry};

fn error_of(text: &str) -> String {
    match crate::load(text, &registry()) {
        Ok(_) => panic!("accepted"),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn empty_text_is_refused() {
    let expected = "found nothing, allowed: a KubeSchedulerConfiguration of \
                    kubescheduler.config.k8s.io/v1";
    for text in ["", "\n\n", "# only a comment\n", "---\n", "null", "\u{feff}"] {
        assert_eq!(error_of(text), expected, "{text:?}");
    }
}

#[test]
fn other_shapes_are_refused() {
    let expected = "found no object, allowed: a KubeSchedulerConfiguration";
    for text in ["[]", "5", "text", "- a\n- b\n"] {
        assert_eq!(error_of(text), expected, "{text:?}");
    }
}

#[test]
fn wrong_shapes_inside_are_reported_without_consequences() {
    check_problems(
        "profiles: [1, a]\n",
        &[
            "profiles[0]: found 1, allowed: an object",
            "profiles[1]: found \"a\", allowed: an object",
        ],
    );
}

#[test]
fn several_documents_are_refused() {
    let one = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let found = error_of(&format!("{one}---\n{one}"));
    assert_eq!(found, "found 2 documents, allowed: one a file");
}

#[test]
fn empty_documents_beside_the_only_one_are_left_out() {
    let one = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    for text in [format!("{one}---\n"), format!("---\n---\n{one}---\n# the end\n")] {
        assert!(crate::load(&text, &registry()).is_ok(), "{text:?}");
    }
}

#[test]
fn what_the_yaml_reader_refuses_is_said_in_plain_words() {
    let deep = format!("a: {}{}", "[".repeat(80), "]".repeat(80));
    for (text, expected) in [
        (deep.as_str(), "found more levels than are allowed: 64"),
        ("a: .nan", "found \".nan\", allowed: a finite number"),
        ("a: &a [*a]", "found an alias of what it stands in"),
    ] {
        let found = error_of(text);
        assert!(found.contains(expected), "{text:?}: {found}");
    }
}

#[test]
fn syntax_errors_have_line_and_column() {
    for (text, place) in [
        ("a: [\n", "line 1, column 4: "),
        ("a: 1\na: 2\n", "line 2, column 1: "),
        ("a:\n\tb: 1\n", "line 2, column "),
        ("a: \"x\n", "line "),
        ("a: *nowhere\n", "line 1, column 4: "),
        ("%PDF-1.7\n\u{1}\u{2}", "line "),
    ] {
        let found = error_of(text);
        assert!(found.starts_with(place), "{text:?}: {found}");
        assert!(!found.contains('\n'), "{found}");
        assert_eq!(found.matches("line ").count(), 1, "{found}");
    }
}

#[test]
fn binary_garbage_is_refused() {
    let mut state = 1_u32;
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..64)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        error_of(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    for (written, shown) in [
        ("1e99", "1e+99"),
        ("\"70\"", "\"70\""),
        ("2147483648", "2147483648"),
        ("99999999999999999999999", "1e+23"),
        ("0.5", "0.5"),
        ("true", "true"),
        ("[70]", "[70]"),
    ] {
        let found = problems_of(&format!("percentageOfNodesToScore: {written}\n"));
        let [found] = found.as_slice() else { panic!("{written}: {found:?}") };
        assert!(
            found.starts_with(&format!("percentageOfNodesToScore: found {shown}, allowed: ")),
            "{found}"
        );
    }
    check_problems(
        "percentageOfNodesToScore: -1\n",
        &["percentageOfNodesToScore: found -1, allowed: 0 to 100, where 0 means a share that \
           depends on the number of nodes"],
    );
    for text in ["clientConnection: {qps: .nan}\n", "clientConnection: {qps: .inf}\n"] {
        assert!(!problems_of(text).is_empty(), "{text}");
    }
    assert!(!problems_of("clientConnection: {qps: 1e40}\n").is_empty());
    check_problems("podMaxBackoffSeconds: 9223372036854775807\n", &[]);
}

#[test]
fn alias_bombs_end_early() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{aliases}]").expect("a string takes any text");
    }
    let found = error_of(&bomb);
    assert!(found.starts_with("line ") && found.len() < 500, "{found}");

    let mut merges = "m0: &m0 {k0: v}\n".to_owned();
    for level in 1..40 {
        let before = level - 1;
        writeln!(merges, "m{level}: &m{level} {{<<: [*m{before}, *m{before}], k{level}: v}}")
            .expect("a string takes any text");
    }
    let found = error_of(&merges);
    assert!(found.starts_with("line ") && found.len() < 500, "{found}");
}

#[test]
fn aliases_and_merge_keys_work() {
    check_problems(
        "profiles:\n- &p {schedulerName: a, percentageOfNodesToScore: 5}\n\
         - {<<: *p, schedulerName: b}\n",
        &[],
    );
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", "")] {
        for depth in [100, 100_000] {
            let text = format!("a: {}x{}\n", open.repeat(depth), close.repeat(depth));
            let found = error_of(&text);
            assert!(found.starts_with("line ") && found.len() < 500, "{found}");
        }
    }
}

#[test]
fn thousands_of_mistakes_take_no_time() {
    let mut body = "leaderElection:\n".to_owned();
    for i in 0..5000 {
        writeln!(body, "  field{i}: 1").expect("a string takes any text");
    }
    assert_eq!(problems_of(&body).len(), 5000);
    let plugins = "{name: X, weight: w}, ".repeat(2000);
    problems_of(&format!("profiles: [{{plugins: {{score: {{enabled: [{plugins}]}}}}}}]\n"));
}
