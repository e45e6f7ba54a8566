//! Traces of scheduling and binding. The reference has none.

use clap::Args;
use steersman_telemetry::traces::{Endpoint, SamplingRate};

use super::value::told;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Tracing flags, which kube-scheduler has not")]
pub(in crate::command::run) struct TracingFlags {
    /// Where to send traces by OTLP over HTTP, such as http://localhost:4318.
    /// Without it there are none.
    #[arg(long, value_name = "URL", value_parser = told::<Endpoint>)]
    pub(in crate::command::run) tracing_endpoint: Option<Endpoint>,
    /// How many attempts of a million are traced.
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = told::<SamplingRate>)]
    pub(in crate::command::run) tracing_sampling_rate_per_million: SamplingRate,
}
