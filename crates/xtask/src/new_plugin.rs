//! Starts a new in-tree plugin from the template.
//!
//! What it writes compiles and is not yet in the plugin table. Its doc
//! headings have nothing below them, so `cargo xtask tidy` lists them until
//! they are filled.

use std::path::Path;

use anyhow::{Context, Result, ensure};

const TEMPLATE: &str = include_str!("../templates/plugin.rs.txt");

/// Writes `crates/plugins/src/<name>/mod.rs` and says what is left to do.
pub(crate) fn run(root: &Path, name: &str) -> Result<()> {
    let module = module_name(name)?;
    let directory = format!("crates/plugins/src/{module}");
    ensure!(!root.join(&directory).exists(), "{directory} exists already");
    std::fs::create_dir(root.join(&directory))
        .with_context(|| format!("cannot create {directory}"))?;
    let path = format!("{directory}/mod.rs");
    std::fs::write(root.join(&path), render(name))
        .with_context(|| format!("cannot write {path}"))?;
    println!("wrote {path}\n\n{}", next_steps(name, &module));
    Ok(())
}

fn render(name: &str) -> String {
    TEMPLATE.replace("{{Name}}", name)
}

fn next_steps(name: &str, module: &str) -> String {
    format!(
        "Next:\n\
         1. Add `pub mod {module};` to crates/plugins/src/lib.rs.\n\
         2. Write what the plugin does under the headings of its docs.\n\
         3. Write the rule as a pure function; serve the extension points that it needs.\n\
         4. Add one row, `{module}::descriptor()`, to crates/plugins/src/table.rs.\n\
         5. Add cases to its tests; name its requeue events and its signature fragment.\n\
         6. Run `cargo fmt` and `cargo xtask ci`.\n\
         CONTRIBUTING.md, \"Adding a plugin\", says more. The name in configurations is {name}."
    )
}

/// `NodeResourcesFit` as a module's name: `node_resources_fit`. A run of
/// capitals is one word: `CSILimits` is `csi_limits`.
fn module_name(name: &str) -> Result<String> {
    ensure!(
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(|c| c.is_ascii_alphanumeric()),
        "{name:?} is not a plugin's name: it takes letters and digits, and starts with a capital \
         (NodeName)"
    );
    let chars: Vec<char> = name.chars().collect();
    let mut module = String::new();
    for (index, c) in chars.iter().enumerate() {
        let after_lower = index > 0 && !chars[index - 1].is_ascii_uppercase();
        let before_lower = chars.get(index + 1).is_some_and(char::is_ascii_lowercase);
        if c.is_ascii_uppercase() && index > 0 && (after_lower || before_lower) {
            module.push('_');
        }
        module.push(c.to_ascii_lowercase());
    }
    Ok(module)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::plugin_docs::HEADINGS;

    #[test]
    fn names_the_module_by_the_words_of_the_plugin() {
        for (name, module) in [
            ("NodeName", "node_name"),
            ("NodeResourcesFit", "node_resources_fit"),
            ("CSILimits", "csi_limits"),
            ("NodeVolumeLimitsCSI", "node_volume_limits_csi"),
            ("Top3Nodes", "top3_nodes"),
            ("X", "x"),
        ] {
            assert_eq!(module_name(name).unwrap(), module);
        }
    }

    #[test]
    fn rejects_what_cannot_name_a_plugin() {
        for name in ["", "nodeName", "Node-Name", "../Name", "3Nodes", "Nöde"] {
            let error = module_name(name).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name:?} is not a plugin's name")), "{error}");
        }
    }

    #[test]
    fn fills_the_whole_template() {
        let source = render("NodeName");
        assert!(!source.contains("{{") && !source.contains("}}"), "{source}");
        assert!(source.contains("\"NodeName\", PointSet"), "{source}");
    }

    #[test]
    fn the_template_has_the_headings_in_order() {
        let source = render("NodeName");
        let headings: Vec<&str> =
            source.lines().filter_map(|line| line.strip_prefix("//! # ")).collect();
        assert_eq!(headings, HEADINGS);
    }

    #[test]
    fn does_not_overwrite_a_plugin() {
        let root = std::env::temp_dir().join(format!("new-plugin-{}", std::process::id()));
        std::fs::create_dir_all(root.join("crates/plugins/src")).unwrap();
        run(&root, "NodeName").unwrap();
        let written = std::fs::read_to_string(root.join("crates/plugins/src/node_name/mod.rs"));
        let again = run(&root, "NodeName").unwrap_err().to_string();
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(written.unwrap(), render("NodeName"));
        assert_eq!(again, "crates/plugins/src/node_name exists already");
    }
}
