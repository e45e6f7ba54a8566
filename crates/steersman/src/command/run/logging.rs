//! Logs and traces, as the flags want them.

use anyhow::{Context, bail};
use steersman_config::FeatureGates;
use steersman_telemetry::logs::{self, Gates, Routing};
use steersman_telemetry::{Guard, Options, init, traces};

use super::flags::Flags;
use super::identity::host_name;

/// Starts logging; the guard is to be kept until the end.
pub(super) fn start(flags: &Flags, gates: &FeatureGates) -> anyhow::Result<Guard> {
    let logs = log_options(flags)?;
    let is_on = |name| gates.iter().any(|gate| gate.name == name && gate.enabled);
    let on = Gates { alpha: is_on("LoggingAlphaOptions"), beta: is_on("LoggingBetaOptions") };
    if let Some(gated) = logs.gated(on).first() {
        bail!("{gated}");
    }
    let tracing = &flags.tracing;
    let traces = tracing.tracing_endpoint.clone().map(|endpoint| traces::Options {
        sampling: tracing.tracing_sampling_rate_per_million,
        instance_id: host_name(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..traces::Options::new(endpoint, "kube-scheduler")
    });
    init(Options { logs, traces }).context("cannot start logging")
}

fn log_options(flags: &Flags) -> anyhow::Result<logs::Options> {
    let flags = &flags.logs;
    if flags.log_flush_frequency.as_nanos() <= 0 {
        let found = flags.log_flush_frequency;
        bail!("--log-flush-frequency: found {found}, allowed: more than 0s");
    }
    Ok(logs::Options {
        format: flags.logging_format,
        verbosity: flags.verbosity,
        vmodule: flags.vmodule.clone(),
        flush_frequency: flags.log_flush_frequency.to_std(),
        text: Routing {
            split_stream: flags.log_text_split_stream,
            info_buffer_size: flags.log_text_info_buffer_size,
        },
        json: Routing {
            split_stream: flags.log_json_split_stream,
            info_buffer_size: flags.log_json_info_buffer_size,
        },
        colour: logs::is_colour_welcome(),
        ..logs::Options::default()
    })
}
