//! Which crate may depend on which.
//!
//! Two rules, both about what ends up in a build (dev-dependencies are free):
//! workspace crates depend on each other only as [`CRATES`] says, and pure
//! crates reach none of the crates that do IO or roll dice, however far away.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::shell;

/// One workspace crate and what it may use.
struct Crate {
    name: &'static str,
    uses: Uses,
    /// It decides and does no IO: see [`is_impure`].
    pure: bool,
}

/// The workspace crates that a crate may depend on.
enum Uses {
    Only(&'static [&'static str]),
    Anything,
}

const fn pure(name: &'static str, uses: &'static [&'static str]) -> Crate {
    Crate { name, uses: Uses::Only(uses), pure: true }
}

const fn driver(name: &'static str, uses: &'static [&'static str]) -> Crate {
    Crate { name, uses: Uses::Only(uses), pure: false }
}

/// Every crate of the workspace.
const CRATES: &[Crate] = &[
    pure("steersman-api", &[]),
    pure("steersman-framework", &["steersman-api"]),
    pure("steersman-plugins", &["steersman-api", "steersman-framework"]),
    pure("steersman-config", &["steersman-api", "steersman-framework"]),
    pure("steersman-core", &["steersman-api", "steersman-framework", "steersman-config"]),
    driver(
        "steersman-sim",
        &[
            "steersman-api",
            "steersman-framework",
            "steersman-config",
            "steersman-core",
            "steersman-plugins",
        ],
    ),
    driver(
        "steersman-conformance",
        &[
            "steersman-api",
            "steersman-framework",
            "steersman-config",
            "steersman-core",
            "steersman-plugins",
            "steersman-sim",
        ],
    ),
    pure("steersman-apimachinery", &[]),
    pure("steersman-apikinds", &["steersman-api", "steersman-apimachinery"]),
    driver("steersman-apiserver", &["steersman-apimachinery"]),
    driver("steersman-serving", &[]),
    driver("steersman-telemetry", &[]),
    driver("steersman-extender", &["steersman-api", "steersman-config", "steersman-framework"]),
    driver("steersman-sample-extender", &["steersman-extender"]),
    driver(
        "steersman-metrics",
        &["steersman-api", "steersman-core", "steersman-framework", "steersman-runtime"],
    ),
    driver("steersman-leader-election", &[]),
    driver(
        "steersman-runtime",
        &["steersman-api", "steersman-framework", "steersman-config", "steersman-core"],
    ),
    driver(
        "steersman-playground",
        &[
            "steersman-api",
            "steersman-apikinds",
            "steersman-apimachinery",
            "steersman-apiserver",
            "steersman-framework",
            "steersman-config",
            "steersman-core",
            "steersman-runtime",
        ],
    ),
    pure("steersman-testing", &["steersman-api", "steersman-framework"]),
    Crate { name: "steersman", uses: Uses::Anything, pure: false },
    driver("xtask", &[]),
];

/// Whether pure crates must not reach this one.
fn is_impure(name: &str) -> bool {
    matches!(name, "tokio" | "kube" | "hyper" | "reqwest" | "http" | "axum" | "rand")
        || name.starts_with("kube-")
}

/// Checks the dependencies of the workspace.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut metadata = shell::cargo(root, &["metadata", "--locked", "--format-version", "1"]);
    let metadata = shell::stdout(&mut metadata)?;
    let metadata: Metadata =
        serde_json::from_str(&metadata).context("cannot read the output of `cargo metadata`")?;
    let problems = check(&metadata, CRATES)?;
    for problem in &problems {
        println!("{problem}");
    }
    if !problems.is_empty() {
        bail!("the dependencies break {} rules", problems.len());
    }
    println!("the dependencies of {} crates point the right way", CRATES.len());
    Ok(())
}

/// The part of `cargo metadata` that matters here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DepKind>,
}

#[derive(Deserialize)]
struct DepKind {
    /// `None` is a normal dependency; otherwise `dev` or `build`.
    kind: Option<String>,
}

/// Normal dependencies between packages, by id.
struct Graph<'a> {
    names: BTreeMap<&'a str, &'a str>,
    edges: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Graph<'a> {
    fn new(metadata: &'a Metadata) -> Self {
        let names = metadata.packages.iter().map(|p| (p.id.as_str(), p.name.as_str())).collect();
        let edges = metadata.resolve.nodes.iter().map(|node| {
            let normal = node.deps.iter().filter(|d| d.dep_kinds.iter().any(|k| k.kind.is_none()));
            (node.id.as_str(), normal.map(|d| d.pkg.as_str()).collect())
        });
        Self { names, edges: edges.collect() }
    }

    fn name(&self, id: &str) -> Result<&'a str> {
        self.names.get(id).copied().with_context(|| format!("`cargo metadata` lacks package {id}"))
    }

    fn uses(&self, id: &str) -> &[&'a str] {
        self.edges.get(id).map_or(&[], Vec::as_slice)
    }

    /// For each impure package within reach of `start`, a shortest way there.
    fn ways_to_impure(&self, start: &'a str) -> Result<Vec<String>> {
        let mut came_from = BTreeMap::from([(start, None)]);
        let mut queue = VecDeque::from([start]);
        let mut ways = Vec::new();
        while let Some(id) = queue.pop_front() {
            if is_impure(self.name(id)?) {
                ways.push(self.way(&came_from, id)?);
                continue;
            }
            for &next in self.uses(id) {
                came_from.entry(next).or_insert_with(|| {
                    queue.push_back(next);
                    Some(id)
                });
            }
        }
        Ok(ways)
    }

    fn way(&self, came_from: &BTreeMap<&'a str, Option<&'a str>>, end: &'a str) -> Result<String> {
        let mut way = vec![self.name(end)?];
        let mut at = end;
        while let Some(Some(previous)) = came_from.get(at) {
            way.push(self.name(previous)?);
            at = previous;
        }
        way.reverse();
        Ok(way.join(" -> "))
    }
}

/// Everything that breaks the rules, one line each.
fn check(metadata: &Metadata, crates: &[Crate]) -> Result<Vec<String>> {
    let graph = Graph::new(metadata);
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for id in &metadata.workspace_members {
        let name = graph.name(id)?;
        seen.insert(name);
        let Some(rule) = crates.iter().find(|c| c.name == name) else {
            problems.push(format!(
                "{name} is in no row of the table in crates/xtask/src/graph.rs: add it"
            ));
            continue;
        };
        for &used in graph.uses(id) {
            let used_name = graph.name(used)?;
            if metadata.workspace_members.contains(used) && !rule.uses.allows(used_name) {
                problems.push(format!("{name} must not depend on {used_name}"));
            }
        }
        if rule.pure {
            let ways = graph.ways_to_impure(id)?;
            problems.extend(ways.into_iter().map(|way| format!("{name} must stay pure: {way}")));
        }
    }
    for row in crates.iter().filter(|c| !seen.contains(c.name)) {
        problems.push(format!(
            "{} is not in the workspace: remove it from the table in crates/xtask/src/graph.rs",
            row.name
        ));
    }
    problems.sort();
    Ok(problems)
}

impl Uses {
    fn allows(&self, name: &str) -> bool {
        match self {
            Self::Only(names) => names.contains(&name),
            Self::Anything => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &[Crate] = &[
        pure("low", &[]),
        pure("high", &["low"]),
        Crate { name: "app", uses: Uses::Anything, pure: false },
    ];

    /// Metadata of a workspace: `members`, and edges `user used [kind]`.
    fn metadata(members: &str, edges: &[&str]) -> Metadata {
        let mut nodes: BTreeMap<String, Vec<Dependency>> = BTreeMap::new();
        for member in members.split_whitespace() {
            nodes.entry(member.to_owned()).or_default();
        }
        for edge in edges {
            let words: Vec<&str> = edge.split_whitespace().collect();
            let kind = words.get(2).map(|&kind| kind.to_owned());
            let dep_kinds = vec![DepKind { kind }];
            nodes.entry(words[1].to_owned()).or_default();
            nodes
                .entry(words[0].to_owned())
                .or_default()
                .push(Dependency { pkg: words[1].to_owned(), dep_kinds });
        }
        Metadata {
            packages: nodes.keys().map(|id| Package { id: id.clone(), name: id.clone() }).collect(),
            workspace_members: members.split_whitespace().map(str::to_owned).collect(),
            resolve: Resolve {
                nodes: nodes.into_iter().map(|(id, deps)| Node { id, deps }).collect(),
            },
        }
    }

    #[track_caller]
    fn check_problems(members: &str, edges: &[&str], expected: &[&str]) {
        assert_eq!(check(&metadata(members, edges), RULES).unwrap(), expected);
    }

    #[test]
    fn allows_what_the_table_lists_and_crates_from_outside() {
        check_problems("low high app", &["high low", "app high", "low serde"], &[]);
    }

    #[test]
    fn rejects_an_edge_that_the_table_does_not_list() {
        check_problems("low high app", &["low high"], &["low must not depend on high"]);
    }

    #[test]
    fn a_build_dependency_alone_does_not_end_up_in_the_crate() {
        check_problems("low high app", &["low rand build"], &[]);
    }

    #[test]
    fn dev_dependencies_are_free() {
        check_problems("low high app", &["low high dev", "low rand dev"], &[]);
    }

    #[test]
    fn rejects_an_impure_crate_far_away_and_shows_the_way() {
        check_problems(
            "low high app",
            &["high low", "low a", "a b", "b tokio", "a b2", "b2 tokio", "tokio http"],
            &[
                "high must stay pure: high -> low -> a -> b -> tokio",
                "low must stay pure: low -> a -> b -> tokio",
            ],
        );
    }

    #[test]
    fn every_crate_of_the_kube_family_is_impure() {
        check_problems(
            "low high app",
            &["low kube-client"],
            &["low must stay pure: low -> kube-client"],
        );
    }

    #[test]
    fn drivers_may_do_io() {
        check_problems("low high app", &["app tokio"], &[]);
    }

    #[test]
    fn a_workspace_crate_needs_a_row() {
        check_problems(
            "low high app new",
            &[],
            &["new is in no row of the table in crates/xtask/src/graph.rs: add it"],
        );
    }

    #[test]
    fn a_row_needs_its_crate() {
        check_problems(
            "low app",
            &[],
            &["high is not in the workspace: remove it from the table in \
               crates/xtask/src/graph.rs"],
        );
    }

    #[test]
    fn reads_what_cargo_writes() {
        let text = r#"{
            "packages": [{"id": "path+x#low@0.1.0", "name": "low", "version": "0.1.0"},
                         {"id": "reg+y#rand@0.9.0", "name": "rand", "version": "0.9.0"}],
            "workspace_members": ["path+x#low@0.1.0"],
            "resolve": {"root": null, "nodes": [
                {"id": "path+x#low@0.1.0", "dependencies": ["reg+y#rand@0.9.0"], "deps": [
                    {"name": "rand", "pkg": "reg+y#rand@0.9.0", "dep_kinds": [
                        {"kind": "dev", "target": null}, {"kind": null, "target": "cfg(unix)"}]}],
                 "features": []},
                {"id": "reg+y#rand@0.9.0", "dependencies": [], "deps": [], "features": []}]}
        }"#;
        let metadata: Metadata = serde_json::from_str(text).unwrap();
        let problems = check(&metadata, &[pure("low", &[])]).unwrap();
        assert_eq!(problems, ["low must stay pure: low -> rand"]);
    }
}
