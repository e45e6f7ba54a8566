//! The house rules that can be read off the files.
//!
//! Each rule is a pure function over paths and texts; only [`Tree::read`]
//! looks at the disk. All violations are reported at once.

mod machine_path;
mod manifest;
pub(crate) mod plugin_docs;
mod project;
mod rust_source;

use std::collections::BTreeSet;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::shell;

/// A file that breaks a rule. Ordered by place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    path: String,
    /// Counted from 1.
    line: usize,
    message: String,
}

impl Violation {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// The project's files: those that git tracks or would track.
struct Tree {
    files: Vec<File>,
    tracked: BTreeSet<String>,
}

struct File {
    /// From the workspace's root, with `/`.
    path: String,
    /// `None` when it is not UTF-8.
    text: Option<String>,
}

impl Tree {
    fn read(root: &Path) -> Result<Self> {
        let tracked = git_files(root, &["ls-files", "-z", "--cached"])?;
        let mut all = git_files(root, &["ls-files", "-z", "--others", "--exclude-standard"])?;
        all.extend(tracked.iter().cloned());
        let mut files = Vec::new();
        for path in all {
            match std::fs::read(root.join(&path)) {
                Ok(bytes) => files.push(File { path, text: String::from_utf8(bytes).ok() }),
                // Removed from the disk and not yet from git's index.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| format!("cannot read {path}")),
            }
        }
        Ok(Self { files, tracked })
    }

    fn violations(&self) -> Vec<Violation> {
        let paths: Vec<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
        let mut violations = project::check_files(&paths, &self.tracked);
        violations.extend(plugin_docs::check_files(&paths));
        for File { path, text } in &self.files {
            let Some(text) = text else { continue };
            violations.extend(rust_source::check(path, text));
            violations.extend(manifest::check(path, text));
            violations.extend(machine_path::check(path, text));
            violations.extend(plugin_docs::check(path, text));
            violations.extend(project::check(path, text));
        }
        violations.sort();
        violations
    }
}

fn git_files(root: &Path, args: &[&str]) -> Result<BTreeSet<String>> {
    let mut git = std::process::Command::new("git");
    let list = shell::stdout(git.current_dir(root).args(args))?;
    Ok(list.split_terminator('\0').map(str::to_owned).collect())
}

/// Checks all files.
pub(crate) fn run(root: &Path) -> Result<()> {
    let tree = Tree::read(root)?;
    let violations = tree.violations();
    for violation in &violations {
        println!("{violation}");
    }
    if !violations.is_empty() {
        bail!("{} places break the house rules", violations.len());
    }
    println!("{} files follow the house rules", tree.files.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_looks_at_every_file() {
        let file =
            |path: &str, text: &str| File { path: path.to_owned(), text: Some(text.to_owned()) };
        let secret = format!("see {}home/me/notes\n", '/');
        let tree = Tree {
            files: vec![
                file("crates/api/Cargo.toml", "[package]\n"),
                file("crates/api/src/lib.rs", "mod a;\n"),
                file("crates/plugins/src/foo/mod.rs", "//! Foo.\n"),
                file("docs/notes.md", &secret),
                file("ARCHITECTURE.md", &"line\n".repeat(301)),
                File { path: "image.png".to_owned(), text: None },
            ],
            tracked: BTreeSet::new(),
        };
        let violations = tree.violations();
        let found: BTreeSet<&str> = violations.iter().map(|v| v.path.as_str()).collect();
        let expected = [
            "ARCHITECTURE.md",
            "CHANGELOG.md",
            "CONTRIBUTING.md",
            "Cargo.lock",
            "LICENSE",
            "README.md",
            "crates/api/Cargo.toml",
            "crates/api/src/lib.rs",
            "crates/plugins/src/foo/mod.rs",
            "docs/notes.md",
        ];
        assert_eq!(found, BTreeSet::from(expected));
        assert!(violations.is_sorted());
    }

    #[test]
    fn a_violation_shows_its_place() {
        assert_eq!(Violation::new("a/b.rs", 3, "too odd").to_string(), "a/b.rs:3: too odd");
    }
}
