//! The pages: what kube-scheduler serves, and where.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};
use steersman_config::{FeatureGates, Gate};
use steersman_leader_election::Monitor;
use steersman_metrics::SchedulerMetrics;
use steersman_runtime::Inspector;
use steersman_serving::{Flagz, Setting, Site, SiteError, Statusz, configz, flagz, statusz};
use steersman_telemetry::logs::Control;
use tokio::sync::watch;

use super::flags::value::Release;
use super::health::Checks;
use super::settled::Settled;
use super::{debug, measured};

/// What there is to show.
pub(super) struct Shown {
    pub(super) checks: Checks,
    pub(super) metrics: Arc<SchedulerMetrics>,
    pub(super) monitor: Option<Monitor>,
    pub(super) inspector: Inspector,
    pub(super) configs: watch::Receiver<Arc<Settled>>,
    pub(super) flags: BTreeMap<String, String>,
    pub(super) gates: FeatureGates,
    pub(super) logs: Control,
    pub(super) started: Timestamp,
}

/// The name under which the pages show the program.
const COMPONENT: &str = "kube-scheduler";

impl Shown {
    /// The site with all pages.
    pub(super) fn site(self) -> Result<Site, SiteError> {
        let profiling = self.configs.borrow().config.enable_profiling;
        let configs = self.configs;
        let counted = |endpoint, checks| measured::counted(endpoint, checks, &self.metrics);
        let mut site = Site::new()
            .health("/healthz", counted("healthz", self.checks.healthz))?
            .health("/livez", counted("livez", self.checks.livez))?
            .health("/readyz", counted("readyz", self.checks.readyz))?
            .page("/configz", configz(move || current(&configs)))?;
        site = measured::pages(site, &self.metrics, self.monitor)?;
        site = debug::pages(site, &self.inspector)?;
        if self.gates.enabled(Gate::ComponentStatusz) {
            site = site.page("/statusz", statusz(status(self.started)))?;
        }
        if self.gates.enabled(Gate::ComponentFlagz) {
            let shown = Flagz {
                component: COMPONENT.to_owned(),
                flags: self.flags,
                // An address may hold a password.
                classified: BTreeSet::from(["master".to_owned()]),
            };
            site = site.page("/flagz", flagz(shown))?;
        }
        if profiling {
            site = site.setting("/debug/flags/v", Arc::new(Level(self.logs)))?;
        }
        Ok(site)
    }
}

/// What is in force, without keys.
fn current(configs: &watch::Receiver<Arc<Settled>>) -> Map<String, Value> {
    let document = steersman_config::redacted(&configs.borrow().document);
    Map::from_iter([("componentconfig".to_owned(), document)])
}

fn status(started: Timestamp) -> Statusz {
    Statusz {
        component: COMPONENT.to_owned(),
        started,
        binary_version: env!("CARGO_PKG_VERSION").to_owned(),
        emulation_version: Some(Release::REFERENCE.to_string()),
        rust_version: None,
    }
}

/// The verbosity of the log, to be read and set while the program runs.
struct Level(Control);

impl Setting for Level {
    fn show(&self) -> String {
        self.0.verbosity().to_string()
    }

    fn set(&self, text: &str) -> Result<String, String> {
        let level = text.trim().parse().map_err(|error| format!("{error}"))?;
        self.0.set_verbosity(level);
        Ok(format!("the verbosity is {level} now"))
    }
}

#[cfg(test)]
mod tests {
    use steersman_config::Loaded;

    use super::*;

    #[test]
    fn configz_shows_no_keys() {
        let text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                    extenders: [{urlPrefix: 'https://a/', tlsConfig: {keyData: c2VjcmV0, certData: \
                    Y2VydA==}}]\n";
        let Loaded { config, document, .. } =
            steersman_config::load(text, &steersman_plugins::table::in_tree()).unwrap();
        let settled = Settled { config, document, qps: None, warnings: Vec::new() };
        let (_sender, configs) = watch::channel(Arc::new(settled));
        let shown = Value::from(current(&configs));
        let tls = &shown["componentconfig"]["extenders"][0]["tlsConfig"];
        assert_eq!((&tls["keyData"], &tls["certData"]), (&"<redacted>".into(), &"Y2VydA==".into()));
    }
}
