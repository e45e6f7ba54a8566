//! Reads a KubeSchedulerConfiguration (`kubescheduler.config.k8s.io/v1`, and the
//! older v1beta1, v1beta2 and v1beta3, which are converted): YAML or JSON text
//! in, a checked [`Config`] with resolved profiles out, or every problem with its
//! path.
//!
//! The stages, one module each: `text` (text to JSON) → `wire` (the types of
//! the API) → `versions` (old ones to v1) → `gated` (what [`gates`] switch off) →
//! `defaults` → `validate` → `resolve` (which plugin runs where) → [`config`]
//! (the result). The crate reads no files and builds no plugins; what plugins
//! exist and what arguments they take comes from a [`Registry`]. Start with
//! [`load`].
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
mod gated;
mod minimal;
mod moved;
mod notices;
mod redact;
mod text;
mod validate;
mod versions;
mod wire;

pub mod changes;
pub mod config;
pub mod errors;
pub mod gates;
pub mod resolve;

use std::fmt;

use serde_json::Value;
use steersman_api::problem::{FieldPath, Problem};
use steersman_api::strict;
use steersman_framework::registry::Registry;

pub use changes::{Change, changes, differences};
pub use config::{Config, LeaderElection, Profile};
pub use errors::ConfigErrors;
pub use gates::{FeatureGates, Gate};
pub use redact::{REDACTED, redacted};

use versions::OldVersion;

/// What a good configuration text gives. Its `Debug` shows no keys.
#[derive(Clone, PartialEq)]
pub struct Loaded {
    /// The configuration to run with.
    pub config: Config,
    /// The document after defaulting, as the reference shows it. It may hold
    /// keys: [`redacted`] takes them out.
    pub document: Value,
    /// What was converted, has no effect or may surprise; nothing that keeps it
    /// from running.
    pub notices: Vec<Problem>,
}

/// A document in the version of today. Its `Debug` shows no keys.
#[derive(Clone, PartialEq)]
pub struct Migrated {
    /// What the user wrote, as v1; without defaults. It may hold keys, as
    /// [`Loaded::document`].
    pub document: Value,
    /// What became of what, one each. Empty for a document that was v1 already.
    pub notices: Vec<Problem>,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { config, document, notices } = self;
        let mut shown = f.debug_struct("Loaded");
        shown.field("config", config).field("document", &redacted(document));
        shown.field("notices", notices).finish()
    }
}

impl fmt::Debug for Migrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { document, notices } = self;
        let mut shown = f.debug_struct("Migrated");
        shown.field("document", &redacted(document)).field("notices", notices).finish()
    }
}

/// How to read a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Which versions are accepted.
    pub versions: Versions,
    /// Which features are on.
    pub gates: FeatureGates,
}

/// Which versions of the API are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// v1, and v1beta1, v1beta2 and v1beta3, which are converted.
    #[default]
    WithMigration,
    /// v1, as in kube-scheduler v1.36.
    OnlyV1,
}

/// Reads a configuration of any known version, with the features of the
/// reference.
///
/// # Errors
/// All problems at once: text that is no YAML (with line and column), another
/// API version or kind, unknown fields, values that are not allowed, plugins
/// that do not exist or cannot run where they are enabled. Paths are those of
/// the text, also when it is converted.
pub fn load(text: &str, registry: &Registry) -> Result<Loaded, ConfigErrors> {
    load_with(text, registry, &Options::default())
}

/// As [`load`], with a choice of versions and features.
///
/// # Errors
/// As [`load`].
pub fn load_with(
    text: &str,
    registry: &Registry,
    options: &Options,
) -> Result<Loaded, ConfigErrors> {
    finish(read(text, registry, options.versions)?, registry, &options.gates)
}

/// The configuration of a scheduler that was given none.
///
/// # Errors
/// When the registry's default profile cannot run: no plugin orders the queue,
/// or none binds.
pub fn load_default(registry: &Registry, gates: &FeatureGates) -> Result<Loaded, ConfigErrors> {
    let wire = wire::Configuration {
        api_version: wire::API_VERSION.to_owned(),
        kind: wire::KIND.to_owned(),
        ..wire::Configuration::default()
    };
    finish(Read { wire, problems: Vec::new(), notices: Vec::new() }, registry, gates)
}

/// The document after defaulting, exactly as the reference shows it, which
/// knows v1 only.
///
/// # Errors
/// As [`load`].
pub fn defaulted_document(text: &str, registry: &Registry) -> Result<Value, ConfigErrors> {
    let options = Options { versions: Versions::OnlyV1, ..Options::default() };
    load_with(text, registry, &options).map(|loaded| loaded.document)
}

/// A document of any known version as v1, with what it says and no more.
///
/// # Errors
/// As [`load`]: what cannot be used is not migrated either.
pub fn migrate(text: &str, registry: &Registry) -> Result<Migrated, ConfigErrors> {
    let read = read(text, registry, Versions::WithMigration)?;
    let document = minimal::document(&read.wire);
    let notices = read.notices.clone();
    finish(read, registry, &FeatureGates::default())?;
    Ok(Migrated { document: document?, notices })
}

/// A document as YAML, in the order of the reference's `--write-config-to`.
pub fn to_yaml(document: &Value) -> String {
    serde_saphyr::to_string(document).unwrap_or_else(|_| document.to_string())
}

impl Config {
    /// The configuration of a scheduler that was given none.
    ///
    /// # Errors
    /// As [`load_default`].
    pub fn default_for(registry: &Registry) -> Result<Self, ConfigErrors> {
        load_default(registry, &FeatureGates::default()).map(|loaded| loaded.config)
    }
}

/// A v1 document before defaulting.
struct Read {
    wire: wire::Configuration,
    problems: Vec<Problem>,
    notices: Vec<Problem>,
}

fn read(text: &str, registry: &Registry, versions: Versions) -> Result<Read, ConfigErrors> {
    let mut document = text::parse(text)?;
    let old = check_type(&document, versions)?;
    let (mut problems, mut notices) = (Vec::new(), Vec::new());
    let old = old.map(|version| {
        versions::take_old_fields(version, &mut document, &mut problems, &mut notices)
    });
    let decoded = strict::decode(&document, &FieldPath::root(), &mut problems);
    let mut wire: wire::Configuration = decoded.unwrap_or_default();
    wire.number_entries();
    if let Some(old) = old {
        versions::name_allowed_fields(&old, &mut problems);
        let mut more = Vec::new();
        versions::convert(old, &mut wire, registry, &mut more, &mut notices);
        strict::append_independent(&mut problems, more);
    }
    Ok(Read { wire, problems, notices })
}

/// Checks `apiVersion` and `kind`; in another type no field means anything.
fn check_type(document: &Value, versions: Versions) -> Result<Option<OldVersion>, ConfigErrors> {
    if document["kind"] == "Policy" {
        return Err(policy().into());
    }
    let mut problems = Vec::new();
    let mut old = None;
    for (field, allowed) in [("apiVersion", wire::API_VERSION), ("kind", wire::KIND)] {
        let at = FieldPath::root().field(field);
        match &document[field] {
            Value::String(found) if found == allowed => {}
            Value::Null => problems.push(Problem::required(&at, format_args!("{allowed:?}"))),
            found => {
                let version = match versions {
                    Versions::WithMigration if field == "apiVersion" => {
                        found.as_str().and_then(OldVersion::of)
                    }
                    _ => None,
                };
                if version.is_none() {
                    let more = match versions {
                        Versions::WithMigration if field == "apiVersion" => {
                            "; v1beta3, v1beta2 and v1beta1 are converted"
                        }
                        _ => "",
                    };
                    problems.push(Problem::invalid(&at, found, format_args!("{allowed:?}{more}")));
                }
                old = old.or(version);
            }
        }
    }
    ConfigErrors::unless_clean(problems, old)
}

/// A document of the API that came before, whatever version it names.
fn policy() -> Problem {
    let allowed = format!(
        "{:?} of {}: the Policy API was removed in v1.23; predicates and priorities became \
         plugins, which profiles[].plugins enables and weighs, and extenders stand in extenders[]",
        wire::KIND,
        wire::API_VERSION
    );
    Problem::invalid(&FieldPath::root().field("kind"), "\"Policy\"", allowed)
}

fn finish(read: Read, registry: &Registry, gates: &FeatureGates) -> Result<Loaded, ConfigErrors> {
    let Read { mut wire, mut problems, mut notices } = read;
    let mut more = Vec::new();
    gated::leave_out(&mut wire, gates, &mut notices);
    defaults::apply(&mut wire, registry, gates, &mut more);
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
    notices.extend(notices::collect(&wire, &resolved, registry));
    let mut config = Config::from_wire(&wire, resolved, registry);
    config.gates = gates.clone();
    ConfigErrors::unless_clean(problems, Loaded { config, document, notices })
}

#[cfg(test)]
mod tests;
