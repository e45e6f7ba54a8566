//! The scheduler's metrics, under kube-scheduler v1.36's names where it has
//! them, in Prometheus' text format.
//!
//! What can be counted from the scheduler's state (how many pods wait where) is
//! counted from it when somebody scrapes, so it cannot drift. What happens
//! (attempts, durations) is observed as it happens, by a `Listener` of the
//! driver. The crate serves nothing: [`SchedulerMetrics::render`] makes the page.
//!
//! Start with [`SchedulerMetrics`]; `families.rs` lists every family.
//!
//! ```
//! use steersman_metrics::{Options, SchedulerMetrics};
//! use steersman_runtime::{Counters, Inspector};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let metrics = SchedulerMetrics::new(Options::default());
//! let inspector = Inspector::default();
//! metrics.attach(inspector.clone(), std::sync::Arc::new(Counters::default()));
//! // To `steersman_runtime::Scheduling`: `desk: inspector.desk()`, the same counters, and
//! let _listener = metrics.listener();
//! assert!(metrics.render().await.contains("scheduler_schedule_attempts_total") == false, "no attempt yet");
//! # }
//! ```
#![warn(missing_docs)]

mod allow;
mod define;
mod extenders;
mod families;
mod process;
mod resources;
mod rest_client;
mod scrape;
mod watcher;

use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::Registry;
use steersman_framework::extender::Extender;
use steersman_runtime::{Counters, Inspector, Listener};

pub use allow::{AllowList, Choice, ChoiceError, check_hidden_version};
pub use define::{Definition, Stability};
pub use rest_client::{Measured, RestClientLayer};

use define::Definer;
use extenders::MeasuredExtender;
use scrape::Sources;
use watcher::Watcher;

/// The media type of what [`SchedulerMetrics::render`] makes.
pub const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// What runs, for the metrics that say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// The version of this program: `0.1.0`.
    pub version: String,
    /// The commit that it was built from; may be empty.
    pub commit: String,
    /// The compiler: `1.95.0`; may be empty.
    pub rust_version: String,
}

impl Default for Build {
    fn default() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: String::new(),
            rust_version: String::new(),
        }
    }
}

/// What to show.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which families and values of labels.
    pub choice: Choice,
    /// What runs.
    pub build: Build,
}

/// All metrics of one process.
pub struct SchedulerMetrics {
    registry: Registry,
    /// What `/metrics/slis` shows.
    slis: Registry,
    choice: Choice,
    definitions: Vec<Definition>,
    pub(crate) scheduler: families::Scheduler,
    pub(crate) plugins: families::Plugins,
    pub(crate) component: families::Component,
    pub(crate) checks: families::Checks,
    pub(crate) process: families::Process,
    pub(crate) ours: families::Ours,
    /// Where numbers come from at a scrape. Locked while a page is made: two
    /// scrapes at once must not mix what they set.
    sources: Mutex<Sources>,
}

impl SchedulerMetrics {
    /// All families, empty.
    pub fn new(options: Options) -> Arc<Self> {
        let Options { choice, build } = options;
        let registry = Registry::new();
        let mut definer = Definer { registry: &registry, definitions: Vec::new() };
        let scheduler = families::Scheduler::new(&mut definer);
        let plugins = families::Plugins::new(&mut definer);
        let component = families::Component::new(&mut definer);
        let process = families::Process::new(&mut definer);
        let ours = families::Ours::new(&mut definer);
        let mut definitions = definer.definitions;
        let slis = Registry::new();
        let mut definer = Definer { registry: &slis, definitions: Vec::new() };
        let checks = families::Checks::new(&mut definer);
        definitions.append(&mut definer.definitions);
        let metrics = Self {
            registry,
            slis,
            choice,
            definitions,
            scheduler,
            plugins,
            component,
            checks,
            process,
            ours,
            sources: Mutex::default(),
        };
        metrics.describe(&build);
        Arc::new(metrics)
    }

    fn describe(&self, build: &Build) {
        let Build { version, commit, rust_version } = build;
        let ours = [version.as_str(), commit, rust_version];
        self.ours.build.with_label_values(&ours).set(1);
        let git_version = format!("v1.36.0+steersman-{version}");
        let platform = format!("{}/{}", std::env::consts::OS, go_arch(std::env::consts::ARCH));
        let labels = ["1", "36", &git_version, commit, "", "", "", "rustc", &platform];
        self.component.build.with_label_values(&labels).set(1);
        for definition in &self.definitions {
            if !definition.stability.level().is_empty() {
                let labels = [definition.stability.level(), ""];
                self.component.registered.with_label_values(&labels).inc();
            }
        }
        let known = |name: &&String| self.definitions.iter().any(|d| d.name == name.as_str());
        self.component.disabled.inc_by(self.choice.disabled.iter().filter(known).count() as u64);
        // No metric of this release is deprecated.
        self.component.hidden.reset();
        self.ours.generation.set(1);
        self.ours.last_reload.set(1);
    }

    /// From now on numbers are asked of this scheduler and read from these
    /// counters.
    pub fn attach(&self, inspector: Inspector, counters: Arc<Counters>) {
        self.sources.lock().attach(inspector, counters);
    }

    /// Listens to the driver. One for each scheduler that is started.
    pub fn listener(self: &Arc<Self>) -> Box<dyn Listener> {
        Box::new(Watcher::new(self.clone()))
    }

    /// Measures a client's requests. `host` names the API server where a request
    /// does not: `host:port`.
    pub fn rest_client(self: &Arc<Self>, host: &str) -> RestClientLayer {
        RestClientLayer { metrics: self.clone(), host: host.into() }
    }

    /// The same extenders, measured.
    pub fn extenders(
        self: &Arc<Self>,
        extenders: Vec<Arc<dyn Extender>>,
    ) -> Vec<Arc<dyn Extender>> {
        let measure = |inner| -> Arc<dyn Extender> {
            Arc::new(MeasuredExtender { inner, metrics: self.clone() })
        };
        extenders.into_iter().map(measure).collect()
    }

    /// Whether this process holds the lock of that name, and how often renewing
    /// it took more than one request so far.
    pub fn leader_election(&self, name: &str, is_leader: bool, slowpath: u64) {
        self.component.leader.with_label_values(&[name]).set(i64::from(is_leader));
        let counter = self.component.slowpath.with_label_values(&[name]);
        counter.inc_by(slowpath.saturating_sub(counter.get()));
    }

    /// A feature gate; `stage` as the reference writes it: `ALPHA`, `BETA`, empty
    /// when it is settled, `DEPRECATED`.
    pub fn feature(&self, name: &str, stage: &str, is_enabled: bool) {
        self.component.feature.with_label_values(&[name, stage]).set(i64::from(is_enabled));
    }

    /// A health check was made; `kind` is `healthz`, `livez` or `readyz`.
    pub fn health_checked(&self, name: &str, kind: &str, passed: bool) {
        self.checks.latest.with_label_values(&[name, kind]).set(i64::from(passed));
        let status = if passed { "success" } else { "error" };
        self.checks.all.with_label_values(&[name, kind, status]).inc();
    }

    /// The configuration was read again.
    pub fn config_reloaded(&self, result: Reload) {
        let label = match result {
            Reload::Success => "success",
            Reload::Unchanged => "unchanged",
            Reload::Error => "error",
        };
        self.ours.reloads.with_label_values(&[label]).inc();
        self.ours.last_reload.set(i64::from(result != Reload::Error));
        if result == Reload::Success {
            self.ours.generation.inc();
        }
    }

    /// Every family there is, in the order of definition.
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }
}

/// A processor architecture as the reference names it.
fn go_arch(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// What came of reading the configuration again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// Another one is in force now.
    Success,
    /// It says the same.
    Unchanged,
    /// It cannot be used; the one before stays in force.
    Error,
}
