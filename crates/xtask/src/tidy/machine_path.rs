//! No file names a place that exists on one machine only.

use super::Violation;

/// Where people and tools keep their files. Put together here so that this
/// file does not break its own rule.
const DIRECTORIES: &[&str] =
    &[concat!("/", "home/"), concat!("/", "root/"), concat!("/", "work/"), concat!("/", "Users/")];

/// Checks one text file.
pub(super) fn check(path: &str, text: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for directory in DIRECTORIES {
            if line.match_indices(directory).any(|(at, _)| starts_a_path(line, at)) {
                let message = format!("{directory} is a path of one machine: write a relative one");
                violations.push(Violation::new(path, index + 1, message));
            }
        }
    }
    violations
}

/// Whether the `/` at `at` is the first of its path: `a/home/b` and
/// `https://host/home/` are not absolute paths.
fn starts_a_path(line: &str, at: usize) -> bool {
    !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_-.~/{}<>$*".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_each_directory_wherever_a_path_may_start() {
        for directory in DIRECTORIES {
            for line in [
                format!("{directory}me/notes"),
                format!("see `{directory}me`"),
                format!("path=\"{directory}x\""),
                format!("file:{directory}x"),
            ] {
                let violations = check("a.md", &format!("first\n{line}\n"));
                let expected =
                    format!("{directory} is a path of one machine: write a relative one");
                assert_eq!(violations, [Violation::new("a.md", 2, expected)], "{line}");
            }
        }
    }

    #[test]
    fn accepts_the_same_names_inside_of_other_paths() {
        for directory in DIRECTORIES {
            for line in [
                format!("docs{directory}x"),
                format!("https://example.com{directory}x"),
                format!("..{directory}x"),
                format!("{}ly/x", directory.trim_end_matches('/')),
            ] {
                assert_eq!(check("a.md", &line), [], "{line}");
            }
        }
    }
}
