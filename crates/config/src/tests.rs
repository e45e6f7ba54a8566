//! Tests of the whole way from text to configuration.

mod changes;
mod corpus;
mod documents;
mod hostile;
mod resolution;
mod versions;

use steersman_framework::registry::Registry;

use crate::{ConfigErrors, Loaded};

fn registry() -> Registry {
    steersman_plugins::table::in_tree()
}

/// Loads `body` as a document of the right version and kind.
fn load_body(body: &str) -> Result<Loaded, ConfigErrors> {
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    crate::load(&format!("{head}{body}"), &registry())
}

fn problems_of(body: &str) -> Vec<String> {
    match load_body(body) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.problems().iter().map(ToString::to_string).collect(),
    }
}

#[track_caller]
fn check_problems(body: &str, expected: &[&str]) {
    assert_eq!(problems_of(body), expected, "{body}");
}
