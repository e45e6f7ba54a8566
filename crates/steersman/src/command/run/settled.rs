//! What the configuration file and the flags say together.
//!
//! As in the reference, flags of the leader election replace what the file
//! says, and deprecated flags count only without a file. One of them counts
//! more here: `--kubeconfig` is used with a file that names none, as nobody
//! means to schedule another cluster.

use std::path::Path;

use serde_json::{Map, Value, json};
use steersman_config::{Config, FeatureGates, Loaded};
use steersman_framework::registry::Registry;

use super::super::config_file::read_file;
use super::flags::Flags;

/// Where the configuration comes from, each time it is read.
pub(super) struct Source {
    pub(super) flags: Flags,
    pub(super) registry: Registry,
    pub(super) gates: FeatureGates,
}

/// A configuration to run with. Not for printing: the document may hold keys.
#[derive(Clone)]
pub(super) struct Settled {
    pub(super) config: Config,
    /// The same as a document of version v1, with all defaults.
    pub(super) document: Value,
    /// The rate of requests, if somebody asked for one.
    pub(super) qps: Option<f32>,
    /// What has no effect, or not the one that may be expected.
    pub(super) warnings: Vec<String>,
}

/// Why a configuration cannot be run with: a line each, without the file's name.
#[derive(Debug)]
pub(super) struct Unusable {
    pub(super) problems: Vec<String>,
}

impl Source {
    /// The configuration file, if one is given.
    pub(super) fn file(&self) -> Option<&Path> {
        super::flags::value::given(self.flags.misc.config.as_ref())
    }

    /// What the file holds now.
    pub(super) fn read(&self) -> anyhow::Result<Option<String>> {
        let Some(file) = self.file() else { return Ok(None) };
        read_file(file).map(Some)
    }

    /// The configuration that a file's text and the flags give.
    pub(super) fn settle(&self, text: Option<&str>) -> Result<Settled, Unusable> {
        let mut warnings = self.flags.deprecated.warnings(text.is_some());
        let (text, said) = match text {
            Some(text) => self.over_file(text),
            None => (self.without_file(), Vec::new()),
        };
        warnings.extend(said);
        let options = steersman_config::Options { gates: self.gates.clone(), ..Default::default() };
        let loaded = steersman_config::load_with(&text, &self.registry, &options);
        let Loaded { config, document, notices } = loaded.map_err(|errors| Unusable {
            problems: errors.problems().iter().map(ToString::to_string).collect(),
        })?;
        warnings.extend(notices.iter().map(ToString::to_string));
        // Only a rate that somebody asked for limits: otherwise the API
        // server's own fairness governs, and not the default of client
        // libraries.
        let qps = sets_qps(&text).then_some(config.client_connection.qps);
        Ok(Settled { config, document, qps, warnings })
    }

    fn without_file(&self) -> String {
        let mut document = Map::new();
        let head = [
            ("apiVersion", "kubescheduler.config.k8s.io/v1"),
            ("kind", "KubeSchedulerConfiguration"),
        ];
        document.extend(head.map(|(field, value)| (field.to_owned(), json!(value))));
        self.flags.deprecated.apply(&mut document);
        self.flags.election.apply(&mut document);
        Value::from(document).to_string()
    }

    /// The file's text with what flags replace, and what is to be said about
    /// it. Text that cannot be read is left alone: reading it gives an error
    /// that names line and column.
    fn over_file(&self, text: &str) -> (String, Vec<String>) {
        let Ok(Value::Object(mut document)) = serde_saphyr::from_str(text) else {
            return (text.to_owned(), Vec::new());
        };
        let before = document.clone();
        let mut warnings = self.flags.election.apply(&mut document);
        if let Some(kubeconfig) = self.flags.deprecated.kubeconfig() {
            let connection = document.entry("clientConnection").or_insert_with(|| json!({}));
            match connection.as_object_mut() {
                Some(connection) if names_kubeconfig(connection) => warnings.push(
                    "--kubeconfig has no effect: the file sets clientConnection.kubeconfig"
                        .to_owned(),
                ),
                Some(connection) => {
                    connection.insert("kubeconfig".to_owned(), json!(kubeconfig));
                }
                None => {}
            }
        }
        if document == before {
            return (text.to_owned(), warnings);
        }
        (Value::from(document).to_string(), warnings)
    }
}

fn names_kubeconfig(connection: &Map<String, Value>) -> bool {
    connection.get("kubeconfig").is_some_and(|name| !name.is_null() && name != "")
}

/// Whether a configuration, which is known to be good, sets a rate itself.
fn sets_qps(text: &str) -> bool {
    let document: Option<Value> = serde_saphyr::from_str(text).ok();
    document.is_some_and(|d| d["clientConnection"]["qps"].as_f64().is_some_and(|qps| qps != 0.0))
}

#[cfg(test)]
mod tests;
