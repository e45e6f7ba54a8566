//! Which features of the reference are on.

use anyhow::{Context, bail};
use clap::Args;
use steersman_config::{FeatureGates, gates};

use super::value::{CommaList, Release};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Feature gate flags")]
pub(in crate::command::run) struct FeatureFlags {
    /// The version of Kubernetes whose behaviour is wanted, as [kube=]1.36.
    /// There is only that one. [default: kube=1.36]
    #[arg(long, value_name = "VERSIONS")]
    emulated_version: Vec<CommaList>,
    /// Switches features on and off, as [kube:]NAME=true,…; may be repeated.
    /// `--help` lists the names at its end.
    #[arg(long, value_name = "GATES")]
    feature_gates: Vec<String>,
    /// The oldest version of the control plane's other parts, as [kube=]1.35.
    /// What it would change concerns API servers. [default: kube=1.35]
    #[arg(long, value_name = "VERSIONS")]
    min_compatibility_version: Vec<CommaList>,
}

impl FeatureFlags {
    /// The features, and what is to be said about them.
    pub(in crate::command::run) fn gates(&self) -> anyhow::Result<(FeatureGates, Vec<String>)> {
        self.check_versions()?;
        let text = self.feature_gates.join(",");
        let (gates, notices) = FeatureGates::parse(&text).context("--feature-gates")?;
        Ok((gates, notices.iter().map(ToString::to_string).collect()))
    }

    fn check_versions(&self) -> anyhow::Result<()> {
        let newest = Release::REFERENCE;
        let emulated = kube_version(&self.emulated_version).context("--emulated-version")?;
        if let Some(version) = emulated.filter(|version| *version != newest) {
            bail!("--emulated-version: found {version}, allowed: {newest}");
        }
        let oldest = newest.before(3);
        let compatible =
            kube_version(&self.min_compatibility_version).context("--min-compatibility-version")?;
        if let Some(version) = compatible.filter(|version| !(oldest..=newest).contains(version)) {
            bail!("--min-compatibility-version: found {version}, allowed: {oldest} to {newest}");
        }
        Ok(())
    }
}

/// The version that is given for the component `kube`; there is no other.
fn kube_version(lists: &[CommaList]) -> anyhow::Result<Option<Release>> {
    let mut found = None;
    for written in CommaList::all(lists) {
        let (component, version) = written.split_once('=').unwrap_or(("kube", &written));
        if component.trim() != "kube" {
            bail!("found component {component:?}, allowed: kube");
        }
        let version = version.trim().parse().map_err(anyhow::Error::msg)?;
        if found.replace(version).is_some() {
            bail!("the version of kube is given twice");
        }
    }
    Ok(found)
}

/// The features as the end of the help shows them.
pub(in crate::command::run) fn list_features() -> String {
    let lines: Vec<String> = gates::help().map(|line| format!("  kube:{line}")).collect();
    lines.join("\n")
}
