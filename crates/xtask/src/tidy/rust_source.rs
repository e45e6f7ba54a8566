//! Rules for Rust sources: size, crate docs, and what tests may not do.

use super::Violation;

/// Lines that a file may have, not counting its tests.
const MAX_LINES: usize = 600;

/// What no source may hold, and what to do about it. The patterns are put
/// together here so that this file does not break its own rule.
const BANNED: &[(&str, &str)] = &[
    (concat!("#[", "ignore"), "a test that does not run proves nothing: run it or remove it"),
    (concat!("#[", "should_panic"), "match the error instead of expecting a panic"),
    (concat!("todo", "!("), "write it, or return an error that says what is not supported"),
    (
        concat!("unimplemented", "!("),
        "write it, or return an error that says what is not supported",
    ),
];

/// Checks one file; says nothing about files that are not Rust.
pub(super) fn check(path: &str, text: &str) -> Vec<Violation> {
    if !path.ends_with(".rs") {
        return Vec::new();
    }
    let tests_start = tests_start(path, text);
    let mut violations = Vec::new();
    if tests_start > MAX_LINES {
        let message =
            format!("{tests_start} lines without tests; {MAX_LINES} are allowed: split it");
        violations.push(Violation::new(path, MAX_LINES + 1, message));
    }
    if is_crate_root(path) && !text.starts_with("//!") {
        let message = "a crate begins with a //! doc: what it is and where to start reading";
        violations.push(Violation::new(path, 1, message));
    }
    let virtual_time = text.contains("start_paused");
    let mut explained = false;
    for (index, line) in text.lines().enumerate() {
        let explains = std::mem::replace(&mut explained, is_explanation(line));
        if line.trim_start().starts_with("//") {
            continue;
        }
        for (pattern, advice) in BANNED.iter().filter(|(pattern, _)| line.contains(pattern)) {
            violations.push(Violation::new(path, index + 1, format!("{pattern}: {advice}")));
        }
        if index >= tests_start && calls_sleep(line) && !virtual_time && !explains {
            let message = "a test does not sleep: make time an argument, wait for the event, \
                           or say why in a line `// Real time: …` above";
            violations.push(Violation::new(path, index + 1, message));
        }
    }
    violations
}

/// The number of lines before the file's tests.
fn tests_start(path: &str, text: &str) -> usize {
    let mut parts = path.rsplit('/');
    let is_test_file = parts.next() == Some("tests.rs") || parts.any(|part| part == "tests");
    if is_test_file {
        return 0;
    }
    let lines: Vec<&str> = text.lines().collect();
    lines
        .iter()
        .enumerate()
        .position(|(index, line)| {
            line.starts_with("#[cfg(test)]") && !is_one_line_item(&lines[index + 1..])
        })
        .unwrap_or(lines.len())
}

/// Whether the item that an attribute stands before is a single line, as
/// `mod tests;` is: the file goes on after it.
fn is_one_line_item(after: &[&str]) -> bool {
    let mut items = after.iter().filter(|line| !line.starts_with("#["));
    items.next().is_some_and(|item| item.ends_with(';'))
}

/// Whether `path` is `crates/NAME/src/lib.rs`, or the `main.rs` of a binary.
fn is_crate_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["crates", _, "src", "lib.rs" | "main.rs"])
}

/// Whether a line says why the next one lets real time pass.
fn is_explanation(line: &str) -> bool {
    line.trim_start().starts_with("// Real time: ")
}

/// Whether the line calls a function named `sleep`, by whatever path.
fn calls_sleep(line: &str) -> bool {
    let name_ends_before =
        |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    line.match_indices(concat!("sleep", "(")).any(|(at, _)| name_ends_before(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/core/src/queue.rs";

    #[track_caller]
    fn check_lines(path: &str, text: &str, expected: &[usize]) {
        let violations = check(path, text);
        let lines: Vec<usize> = violations.iter().map(|violation| violation.line).collect();
        assert_eq!(lines, expected, "{violations:?}");
    }

    #[test]
    fn rejects_a_file_with_too_many_lines() {
        check_lines(PATH, &"a();\n".repeat(600), &[]);
        check_lines(PATH, &"a();\n".repeat(601), &[601]);
        assert_eq!(
            check(PATH, &"a();\n".repeat(700))[0].message,
            "700 lines without tests; 600 are allowed: split it"
        );
    }

    #[test]
    fn does_not_count_the_tests_of_a_file() {
        let tests = "#[cfg(test)]\nmod tests {\n".to_owned() + &"    a();\n".repeat(600) + "}\n";
        check_lines(PATH, &("a();\n".repeat(600) + &tests), &[]);
        check_lines(PATH, &("a();\n".repeat(601) + &tests), &[601]);
    }

    #[test]
    fn counts_on_after_a_test_module_in_another_file() {
        let text = "#[cfg(test)]\nmod tests;\n".to_owned() + &"a();\n".repeat(600);
        check_lines(PATH, &text, &[601]);
    }

    #[test]
    fn does_not_count_test_files() {
        let text = "a();\n".repeat(900);
        check_lines("crates/core/src/queue/tests.rs", &text, &[]);
        check_lines("crates/core/tests/decisions.rs", &text, &[]);
        check_lines("crates/core/src/contests.rs", &text, &[601]);
    }

    #[test]
    fn looks_at_rust_only() {
        check_lines("docs/big.md", &"a\n".repeat(900), &[]);
    }

    #[test]
    fn rejects_banned_code_wherever_it_stands() {
        for (pattern, advice) in BANNED {
            let text = format!("fn a() {{}}\n    {pattern}\n");
            check_lines(PATH, &text, &[2]);
            check_lines("crates/core/tests/decisions.rs", &text, &[2]);
            assert_eq!(check(PATH, &text)[0].message, format!("{pattern}: {advice}"));
        }
    }

    #[test]
    fn comments_may_name_banned_code() {
        for (pattern, _) in BANNED {
            check_lines(PATH, &format!("/// Not {pattern}\n"), &[]);
        }
    }

    #[test]
    fn rejects_sleeping_in_tests() {
        let sleep = concat!("sleep", "(second)");
        for call in [format!("thread::{sleep}"), format!("std::thread::{sleep}"), sleep.to_owned()]
        {
            check_lines(PATH, &format!("{call};\n#[cfg(test)]\nmod tests {{\n{call};\n}}\n"), &[4]);
            check_lines("crates/core/tests/decisions.rs", &format!("    {call};\n"), &[1]);
        }
        check_lines("crates/core/tests/decisions.rs", &format!("never_{sleep};\n"), &[]);
        let explained = format!("// Real time: the network is slow.\n{sleep};\n{sleep};\n");
        check_lines("crates/core/tests/faults.rs", &explained, &[3]);
        let paused = format!("#[tokio::test(start_paused = true)]\nfn a() {{\n{sleep};\n}}\n");
        check_lines("crates/core/tests/time.rs", &paused, &[]);
    }

    #[test]
    fn a_crate_begins_with_a_doc() {
        for root in ["crates/core/src/lib.rs", "crates/xtask/src/main.rs"] {
            check_lines(root, "//! The core.\n", &[]);
            check_lines(root, "mod a;\n", &[1]);
        }
        check_lines("crates/core/src/queue/lib.rs", "mod a;\n", &[]);
    }
}
