//! Rules for the crates' Cargo.toml: what is set once for the workspace is
//! inherited.
//!
//! The manifests are read line by line, not as TOML: they are written by hand
//! in one plain form, and this asks for that form.

use super::Violation;

/// Keys of `[package]` that a crate takes from the workspace.
const INHERITED: [&str; 3] = ["edition", "license", "rust-version"];

/// Checks one file; says nothing about files that are not a crate's manifest.
pub(super) fn check(path: &str, text: &str) -> Vec<Violation> {
    let parts: Vec<&str> = path.split('/').collect();
    let ["crates", _, "Cargo.toml"] = parts[..] else {
        return Vec::new();
    };
    let mut violations = Vec::new();
    for key in INHERITED {
        if !has_line(text, "[package]", &format!("{key}.workspace = true")) {
            let line = line_of(text, "[package]", key).unwrap_or(1);
            let message = format!("[package] needs the line `{key}.workspace = true`");
            violations.push(Violation::new(path, line, message));
        }
    }
    if !has_line(text, "[lints]", "workspace = true") {
        let message = "needs `[lints]` with the line `workspace = true`";
        violations.push(Violation::new(path, 1, message));
    }
    violations
}

/// The lines of a section, with their numbers.
fn section<'a>(text: &'a str, header: &str) -> impl Iterator<Item = (usize, &'a str)> {
    text.lines()
        .map(str::trim)
        .enumerate()
        .skip_while(move |(_, line)| *line != header)
        .skip(1)
        .take_while(|(_, line)| !line.starts_with('['))
        .map(|(index, line)| (index + 1, line))
}

fn has_line(text: &str, header: &str, wanted: &str) -> bool {
    section(text, header).any(|(_, line)| line == wanted)
}

/// Where a section sets `key` in whatever way.
fn line_of(text: &str, header: &str, key: &str) -> Option<usize> {
    section(text, header)
        .find(|(_, line)| line.split(['.', ' ', '=']).next() == Some(key))
        .map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/api/Cargo.toml";
    const GOOD: &str = "[package]\n\
                        name = \"steersman-api\"\n\
                        edition.workspace = true\n\
                        license.workspace = true\n\
                        rust-version.workspace = true\n\
                        \n\
                        [lints]\n\
                        workspace = true\n";

    #[track_caller]
    fn check_violation(text: &str, line: usize, message: &str) {
        assert_eq!(check(PATH, text), [Violation::new(PATH, line, message)]);
    }

    #[test]
    fn accepts_a_manifest_that_inherits() {
        assert_eq!(check(PATH, GOOD), []);
    }

    #[test]
    fn rejects_a_manifest_with_a_key_of_its_own() {
        check_violation(
            &GOOD.replace("edition.workspace = true", "edition = \"2021\""),
            3,
            "[package] needs the line `edition.workspace = true`",
        );
    }

    #[test]
    fn rejects_a_manifest_without_a_key() {
        for key in INHERITED {
            check_violation(
                &GOOD.replace(&format!("{key}.workspace = true\n"), ""),
                1,
                &format!("[package] needs the line `{key}.workspace = true`"),
            );
        }
    }

    #[test]
    fn rejects_a_manifest_without_the_workspace_lints() {
        let expected = "needs `[lints]` with the line `workspace = true`";
        check_violation(&GOOD.replace("[lints]", "[lints.rust]"), 1, expected);
        check_violation(&GOOD.replace("\nworkspace = true", "\nworkspace = false"), 1, expected);
    }

    #[test]
    fn looks_at_crates_only() {
        assert_eq!(check("Cargo.toml", "[workspace]\n"), []);
        assert_eq!(check("crates/api/testdata/Cargo.toml", ""), []);
    }
}
