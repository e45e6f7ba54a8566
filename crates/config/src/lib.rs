//! Reads a KubeSchedulerConfiguration (`kubescheduler.config.k8s.io/v1`): YAML
//! or JSON text in, a checked [`Config`] with resolved profiles out, or every
//! problem with its path.
//!
//! The stages, one module each: `text` (text to JSON) → `wire` (the types of
//! the API) → `defaults` → `validate` → `resolve` (which plugin runs where) →
//! [`config`] (the result). The crate reads no files and builds no plugins; what
//! plugins exist and what arguments they take comes from a [`Registry`]. Start
//! with [`load`].
//!
//! ```
//! let registry = steersman_plugins::table::in_tree();
//! let errors = steersman_config::load(
//!     "apiVersion: kubescheduler.config.k8s.io/v1
//! kind: KubeSchedulerConfiguration
//! parallelism: 0
//! leaderElection: {leaderElects: true}",
//!     &registry,
//! )
//! .unwrap_err();
//! assert_eq!(errors.problems()[0].path.as_str(), "leaderElection.leaderElects");
//! assert_eq!(errors.problems()[1].to_string(), "parallelism: found 0, allowed: 1 or more");
//! ```

mod agreement;
mod args;
mod defaults;
mod moved;
mod notices;
mod text;
mod validate;
mod wire;

pub mod config;
pub mod errors;
pub mod resolve;

use serde_json::Value;
use steersman_api::problem::{FieldPath, Problem};
use steersman_api::strict;
use steersman_framework::registry::Registry;

pub use config::{Config, LeaderElection, Profile};
pub use errors::ConfigErrors;

/// What a good configuration text gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The configuration to run with.
    pub config: Config,
    /// The document after defaulting, as the reference shows it.
    pub document: Value,
    /// What has no effect or may surprise; nothing that keeps it from running.
    pub notices: Vec<Problem>,
}

/// Reads a configuration.
///
/// # Errors
/// All problems at once: text that is no YAML (with line and column), another
/// API version or kind, unknown fields, values that are not allowed, plugins
/// that do not exist or cannot run where they are enabled.
pub fn load(text: &str, registry: &Registry) -> Result<Loaded, ConfigErrors> {
    let document = text::parse(text)?;
    check_type(&document)?;
    load_document(&document, registry)
}

/// The document after defaulting, exactly as the reference shows it.
///
/// # Errors
/// As [`load`].
pub fn defaulted_document(text: &str, registry: &Registry) -> Result<Value, ConfigErrors> {
    load(text, registry).map(|loaded| loaded.document)
}

impl Config {
    /// The configuration of a scheduler that was given none.
    ///
    /// # Errors
    /// When the registry's default profile cannot run: no plugin orders the
    /// queue, or none binds.
    pub fn default_for(registry: &Registry) -> Result<Self, ConfigErrors> {
        let document = serde_json::json!({"apiVersion": wire::API_VERSION, "kind": wire::KIND});
        load_document(&document, registry).map(|loaded| loaded.config)
    }
}

/// Checks `apiVersion` and `kind`; in another type no field means anything.
fn check_type(document: &Value) -> Result<(), ConfigErrors> {
    let mut problems = Vec::new();
    for (field, allowed) in [("apiVersion", wire::API_VERSION), ("kind", wire::KIND)] {
        let at = FieldPath::root().field(field);
        match &document[field] {
            Value::String(found) if found == allowed => {}
            Value::Null => problems.push(Problem::required(&at, format_args!("{allowed:?}"))),
            found => {
                let mut problem = Problem::invalid(&at, found, format_args!("{allowed:?}"));
                if is_old_version(found) {
                    problem.message.push_str("; beta versions are not accepted yet");
                }
                problems.push(problem);
            }
        }
    }
    ConfigErrors::unless_clean(problems, ())
}

fn is_old_version(found: &Value) -> bool {
    let version = found.as_str().and_then(|v| v.strip_prefix(wire::GROUP));
    version.is_some_and(|v| matches!(v, "/v1beta1" | "/v1beta2" | "/v1beta3"))
}

fn load_document(document: &Value, registry: &Registry) -> Result<Loaded, ConfigErrors> {
    let mut problems = Vec::new();
    let decoded = strict::decode(document, &FieldPath::root(), &mut problems);
    let mut wire: wire::Configuration = decoded.unwrap_or_default();

    let mut more = Vec::new();
    defaults::apply(&mut wire, registry, &mut more);
    validate::check(&wire, &mut more);
    let profiles = FieldPath::root().field("profiles");
    let resolved: Vec<_> = wire
        .profiles
        .iter()
        .enumerate()
        .map(|(i, p)| resolve::resolve(&p.plugins, &profiles.index(i), registry, &mut more))
        .collect();
    agreement::check(&wire.profiles, &resolved, &mut more);
    strict::append_independent(&mut problems, more);

    let document = serde_json::to_value(&wire)
        .map_err(|error| Problem::new(&FieldPath::root(), error.to_string()))?;
    let notices = notices::collect(&wire, &resolved, registry);
    let config = Config::from_wire(&wire, resolved, registry);
    ConfigErrors::unless_clean(problems, Loaded { config, document, notices })
}

#[cfg(test)]
mod tests;
