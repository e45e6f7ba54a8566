//! Which metrics are shown, and how finely.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Value, json};
use steersman_metrics::{AllowList, Choice, check_hidden_version};

use super::value::{file, given};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Metrics flags")]
pub(in crate::command::run) struct MetricsFlags {
    /// Which values of a metric's label are told apart, as
    /// METRIC,LABEL=VALUE,VALUE; others count as "unexpected". May be repeated.
    #[arg(long, value_name = "METRIC,LABEL=VALUES")]
    allow_metric_labels: Vec<String>,
    /// A YAML file with the same: a map from "METRIC,LABEL" to "VALUE,VALUE".
    #[arg(long, value_name = "FILE", value_parser = file)]
    allow_metric_labels_manifest: Option<PathBuf>,
    /// Metrics not to show, by their full names.
    #[arg(long, value_name = "METRICS")]
    disabled_metrics: Vec<String>,
    /// Show metrics that were hidden since this version; only the last one
    /// before v1.36 is allowed, 1.35.
    #[arg(long, value_name = "VERSION")]
    show_hidden_metrics_for_version: Option<String>,
}

impl MetricsFlags {
    /// What the flags say together.
    ///
    /// # Errors
    /// When one of them is no good, or both kinds of allow lists are given.
    pub(in crate::command::run) fn choice(&self) -> anyhow::Result<Choice> {
        let mut choice = Choice { allowed: self.allowed()?, ..Choice::default() };
        for names in &self.disabled_metrics {
            choice.disable(names).context("--disabled-metrics")?;
        }
        if let Some(name) = choice.disabled.iter().find(|name| !is_name(name)) {
            bail!("--disabled-metrics: {name:?} cannot be the name of a metric");
        }
        match self.show_hidden_metrics_for_version.as_deref() {
            None | Some("") => {}
            Some(version) => {
                check_hidden_version(version).context("--show-hidden-metrics-for-version")?;
            }
        }
        Ok(choice)
    }

    fn allowed(&self) -> anyhow::Result<AllowList> {
        let flag = "--allow-metric-labels";
        let mut allowed = AllowList::default();
        for text in &self.allow_metric_labels {
            allowed = allowed.overridden_by(AllowList::parse(text).context(flag)?);
        }
        let Some(file) = given(self.allow_metric_labels_manifest.as_ref()) else {
            return Ok(allowed);
        };
        if !self.allow_metric_labels.is_empty() {
            bail!("{flag} and {flag}-manifest cannot be given together");
        }
        let context = || format!("{flag}-manifest: {}", file.display());
        let text = fs::read_to_string(file).with_context(context)?;
        AllowList::parse_manifest(&in_full(text)).with_context(context)
    }
}

/// Whether a metric can be called so.
fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    text.chars().all(fits) && text.chars().next().is_some_and(|c| !c.is_ascii_digit())
}

/// The manifest with its head, as the reference's help shows it. What the
/// reference reads has none.
fn in_full(text: String) -> String {
    match serde_saphyr::from_str::<Value>(&text) {
        Ok(Value::Object(map)) if !map.contains_key(MAPPING) => json!({ MAPPING: map }).to_string(),
        _ => text,
    }
}

/// What a manifest has its map under.
const MAPPING: &str = "allowListMapping";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_may_lack_its_head() {
        let read = |text: &str| AllowList::parse_manifest(&in_full(text.to_owned()));
        let full = read("allowListMapping: {'m,l': 'a,b'}").unwrap();
        assert_eq!(full, AllowList::parse("m,l='a,b'").unwrap());
        assert_eq!(read("{'m,l': 'a,b'}").unwrap(), full);
        assert!(read("[m]").is_err());
    }
}
