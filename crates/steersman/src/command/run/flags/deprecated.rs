//! Flags for what the configuration file says better.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use serde_json::{Map, Value, json};
use steersman_api::duration::GoDuration;

use super::value::{file, given, rate, truth};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Deprecated flags")]
pub(in crate::command::run) struct DeprecatedFlags {
    /// DEPRECATED: accepted and without effect, as there are no locks to profile;
    /// see enableContentionProfiling in the configuration. [default: true]
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = truth
    )]
    contention_profiling: Option<bool>,
    /// DEPRECATED: how many requests may go out at once before --kube-api-qps
    /// counts; see clientConnection.burst in the configuration. No effect with
    /// --config. [default: 100]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    kube_api_burst: Option<i32>,
    /// DEPRECATED: accepted and without effect, as requests and answers are
    /// JSON.
    #[arg(long, value_name = "TYPE")]
    kube_api_content_type: Option<String>,
    /// DEPRECATED: requests a second to the API server, of which there may be
    /// any number if this is not given; see clientConnection.qps in the
    /// configuration. No effect with --config.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = rate)]
    kube_api_qps: Option<f32>,
    /// DEPRECATED: how to reach the API server; see clientConnection.kubeconfig
    /// in the configuration, which comes first. Without either: $KUBECONFIG,
    /// ~/.kube/config, and last the service account of the pod that this runs
    /// in.
    #[arg(long, value_name = "FILE", value_parser = file)]
    kubeconfig: Option<PathBuf>,
    /// DEPRECATED: after how long a pod that found no node is tried again
    /// though nothing has happened that could help it.
    #[arg(long, value_name = "DURATION", default_value = "5m0s", allow_hyphen_values = true)]
    pod_max_in_unschedulable_pods_duration: GoDuration,
    /// DEPRECATED: whether /debug pages that change the process are served; see
    /// enableProfiling in the configuration. No effect with --config.
    /// [default: true]
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = truth
    )]
    profiling: Option<bool>,
}

impl DeprecatedFlags {
    /// What is said about the flags that are given. `None` for a flag that is
    /// as good as its successor.
    pub(in crate::command::run) fn warnings(&self, has_file: bool) -> Vec<String> {
        let said = |(flag, field, is_given): (&str, &str, bool)| {
            let field = if field.is_empty() { return None } else { field };
            is_given.then(|| {
                if has_file {
                    format!("--{flag} has no effect with --config: set {field} in the file")
                } else {
                    format!("--{flag} is deprecated: set {field} in a file given with --config")
                }
            })
        };
        let mut warnings: Vec<String> = self.fields().into_iter().filter_map(said).collect();
        if self.pod_max_in_unschedulable_pods_duration != GoDuration::from_secs(300) {
            warnings.push(
                "--pod-max-in-unschedulable-pods-duration is deprecated and will go away"
                    .to_owned(),
            );
        }
        warnings
    }

    /// The flags that stand for a field, the field, and whether they are given.
    fn fields(&self) -> [(&'static str, &'static str, bool); 5] {
        [
            (
                "contention-profiling",
                "enableContentionProfiling",
                self.contention_profiling.is_some(),
            ),
            ("kube-api-burst", "clientConnection.burst", self.kube_api_burst.is_some()),
            (
                "kube-api-content-type",
                "clientConnection.contentType",
                self.kube_api_content_type.is_some(),
            ),
            ("kube-api-qps", "clientConnection.qps", self.kube_api_qps.is_some()),
            ("profiling", "enableProfiling", self.profiling.is_some()),
        ]
    }

    /// Puts what is given into a configuration that stands in no file.
    pub(in crate::command::run) fn apply(&self, document: &mut Map<String, Value>) {
        let mut set = |field: &str, value: Option<Value>| {
            document.extend(value.map(|value| (field.to_owned(), value)));
        };
        set("enableProfiling", self.profiling.map(Value::from));
        set("enableContentionProfiling", self.contention_profiling.map(Value::from));
        let mut connection = Map::new();
        let mut set = |field: &str, value: Option<Value>| {
            connection.extend(value.map(|value| (field.to_owned(), value)));
        };
        set("burst", self.kube_api_burst.map(Value::from));
        set("contentType", self.kube_api_content_type.clone().map(Value::from));
        set("qps", self.kube_api_qps.map(|qps| json!(qps)));
        set("kubeconfig", self.kubeconfig().map(|path| json!(path)));
        if !connection.is_empty() {
            document.insert("clientConnection".to_owned(), connection.into());
        }
    }

    /// After how long a pod is tried again though nothing has happened.
    ///
    /// # Errors
    /// When that would be all the time.
    pub(in crate::command::run) fn max_unschedulable(&self) -> anyhow::Result<Duration> {
        let given = self.pod_max_in_unschedulable_pods_duration;
        if given <= GoDuration::ZERO {
            bail!("--pod-max-in-unschedulable-pods-duration: found {given}, allowed: more than 0s");
        }
        Ok(given.to_std())
    }

    /// The kubeconfig that is given.
    pub(in crate::command::run) fn kubeconfig(&self) -> Option<&Path> {
        given(self.kubeconfig.as_ref())
    }
}
