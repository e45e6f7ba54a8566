//! Each plugin explains itself under the same headings, in the `//!` doc of
//! its `mod.rs`.

use std::collections::BTreeSet;

use super::Violation;

/// The headings, each of which needs text below it.
pub(crate) const HEADINGS: [&str; 5] =
    ["What it does", "Rejects or scores when", "Args", "Requeue events", "Parity"];

const PLUGINS: &str = "crates/plugins/src/";

/// The directory's name, for a path inside of a plugin's directory.
fn plugin_of(path: &str) -> Option<&str> {
    path.strip_prefix(PLUGINS)?.split_once('/').map(|(plugin, _)| plugin)
}

/// Checks that each plugin has a `mod.rs`.
pub(super) fn check_files(paths: &[&str]) -> Vec<Violation> {
    let plugins: BTreeSet<&str> = paths.iter().filter_map(|path| plugin_of(path)).collect();
    let module_paths = plugins.into_iter().map(|plugin| format!("{PLUGINS}{plugin}/mod.rs"));
    module_paths
        .filter(|path| !paths.contains(&path.as_str()))
        .map(|path| Violation::new(&path, 1, "a plugin's directory needs a mod.rs"))
        .collect()
}

/// Checks the docs of one plugin; says nothing about other files.
pub(super) fn check(path: &str, text: &str) -> Vec<Violation> {
    if plugin_of(path).is_none_or(|plugin| path != format!("{PLUGINS}{plugin}/mod.rs")) {
        return Vec::new();
    }
    let docs: Vec<&str> =
        text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    HEADINGS.iter().filter_map(|heading| problem(path, &docs, heading)).collect()
}

fn problem(path: &str, docs: &[&str], heading: &str) -> Option<Violation> {
    let Some(at) = docs.iter().position(|line| line.strip_prefix("# ") == Some(heading)) else {
        let message = format!("the plugin's docs need the heading `//! # {heading}`");
        return Some(Violation::new(path, 1, message));
    };
    let text = docs[at + 1..].iter().find(|line| !line.is_empty());
    match text {
        Some(line) if !line.starts_with("# ") => None,
        _ => Some(Violation::new(path, at + 1, format!("nothing stands below `# {heading}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/plugins/src/node_name/mod.rs";

    fn docs() -> String {
        let sections = HEADINGS.map(|heading| format!("//! # {heading}\n//!\n//! Text.\n//!\n"));
        format!("//! NodeName.\n//!\n{}\nuse a::b;\n", sections.concat())
    }

    #[test]
    fn accepts_docs_with_all_headings() {
        assert_eq!(check(PATH, &docs()), []);
    }

    #[test]
    fn rejects_docs_without_a_heading() {
        for heading in HEADINGS {
            let text = docs().replace(&format!("# {heading}\n"), "\n");
            let expected = format!("the plugin's docs need the heading `//! # {heading}`");
            assert_eq!(check(PATH, &text), [Violation::new(PATH, 1, expected)]);
        }
    }

    #[test]
    fn rejects_a_heading_outside_of_the_docs() {
        let text = docs().replace("//! # Parity", "\n//! # Parity");
        assert_eq!(check(PATH, &text).len(), 1);
    }

    #[test]
    fn rejects_a_heading_without_text() {
        for (index, heading) in HEADINGS.iter().enumerate() {
            let text = docs()
                .replace(&format!("# {heading}\n//!\n//! Text.\n"), &format!("# {heading}\n"));
            let expected = format!("nothing stands below `# {heading}`");
            assert_eq!(check(PATH, &text), [Violation::new(PATH, 3 + 4 * index, expected)]);
        }
    }

    #[test]
    fn looks_at_the_plugins_own_modules_only() {
        for path in [
            "crates/plugins/src/lib.rs",
            "crates/plugins/src/table.rs",
            "crates/plugins/src/node_name/hints/mod.rs",
            "crates/core/src/node_name/mod.rs",
        ] {
            assert_eq!(check(path, "//! Text.\n"), []);
        }
    }

    #[test]
    fn rejects_a_plugin_directory_without_a_module() {
        let paths = [PATH, "crates/plugins/src/lib.rs", "crates/plugins/src/fit/args.rs"];
        let path = "crates/plugins/src/fit/mod.rs";
        let expected = Violation::new(path, 1, "a plugin's directory needs a mod.rs");
        assert_eq!(check_files(&paths), [expected]);
    }
}
