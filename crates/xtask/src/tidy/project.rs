//! Rules for the project as a whole: the files that it needs at its root.

use std::collections::BTreeSet;

use super::Violation;

const NEEDED: [&str; 6] =
    ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "Cargo.lock", "LICENSE", "README.md"];

const ARCHITECTURE: &str = "ARCHITECTURE.md";
/// What one can read in one go.
const MAX_ARCHITECTURE_LINES: usize = 300;

/// Checks which files there are, and that git tracks Cargo.lock.
pub(super) fn check_files(paths: &[&str], tracked: &BTreeSet<String>) -> Vec<Violation> {
    let missing = NEEDED.iter().filter(|needed| !paths.contains(needed));
    let mut violations: Vec<Violation> =
        missing.map(|path| Violation::new(path, 1, "the project needs this file")).collect();
    if paths.contains(&"Cargo.lock") && !tracked.contains("Cargo.lock") {
        violations.push(Violation::new("Cargo.lock", 1, "not tracked: `git add Cargo.lock`"));
    }
    violations
}

/// Checks the length of ARCHITECTURE.md; says nothing about other files.
pub(super) fn check(path: &str, text: &str) -> Option<Violation> {
    let lines = text.lines().count();
    (path == ARCHITECTURE && lines > MAX_ARCHITECTURE_LINES).then(|| {
        let message = format!("{lines} lines; {MAX_ARCHITECTURE_LINES} are allowed: shorten it");
        Violation::new(path, MAX_ARCHITECTURE_LINES + 1, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracked(paths: &[&str]) -> BTreeSet<String> {
        paths.iter().map(|&path| path.to_owned()).collect()
    }

    #[test]
    fn accepts_a_project_with_all_files() {
        assert_eq!(check_files(&NEEDED, &tracked(&NEEDED)), []);
    }

    #[test]
    fn rejects_a_project_without_one_of_them() {
        for missing in NEEDED {
            let paths: Vec<&str> = NEEDED.into_iter().filter(|path| *path != missing).collect();
            let expected = Violation::new(missing, 1, "the project needs this file");
            assert_eq!(check_files(&paths, &tracked(&NEEDED)), [expected]);
        }
    }

    #[test]
    fn rejects_a_lock_file_that_git_does_not_track() {
        let expected = Violation::new("Cargo.lock", 1, "not tracked: `git add Cargo.lock`");
        assert_eq!(check_files(&NEEDED, &tracked(&["README.md"])), [expected]);
    }

    #[test]
    fn rejects_a_long_architecture_document() {
        assert_eq!(check(ARCHITECTURE, &"a\n".repeat(300)), None);
        let expected = Violation::new(ARCHITECTURE, 301, "301 lines; 300 are allowed: shorten it");
        assert_eq!(check(ARCHITECTURE, &"a\n".repeat(301)), Some(expected));
        assert_eq!(check("docs/parity.md", &"a\n".repeat(301)), None);
    }
}
