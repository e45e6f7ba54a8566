//! What is logged, and how.

use clap::Args;
use steersman_api::duration::GoDuration;
use steersman_telemetry::logs::{Format, Size, Verbosity, Vmodule};

use super::value::{told, truth};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Logs flags")]
pub(in crate::command::run) struct LogFlags {
    /// At the latest after this time what was logged is written.
    #[arg(long, value_name = "DURATION", default_value = "5s")]
    pub(in crate::command::run) log_flush_frequency: GoDuration,
    /// [Alpha] With --log-json-split-stream: how many bytes of messages that
    /// are no errors are gathered before they are written, such as 512, 1K or
    /// 2Mi. Needs the feature LoggingAlphaOptions.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = told::<Size>)]
    pub(in crate::command::run) log_json_info_buffer_size: Size,
    /// [Alpha] In JSON: errors to stderr and the rest to stdout. Needs the
    /// feature LoggingAlphaOptions.
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value = "false", value_parser = truth,
        action = clap::ArgAction::Set
    )]
    pub(in crate::command::run) log_json_split_stream: bool,
    /// [Alpha] With --log-text-split-stream: as --log-json-info-buffer-size.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = told::<Size>)]
    pub(in crate::command::run) log_text_info_buffer_size: Size,
    /// [Alpha] In text: errors and warnings to stderr and the rest to stdout.
    /// Needs the feature LoggingAlphaOptions.
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value = "false", value_parser = truth,
        action = clap::ArgAction::Set
    )]
    pub(in crate::command::run) log_text_split_stream: bool,
    /// text (klog's), json, or human, which kube-scheduler has not.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = told::<Format>)]
    pub(in crate::command::run) logging_format: Format,
    /// How much to log: from 2 on the pods that were bound, from 4 on every
    /// attempt, from 7 on every detail.
    #[arg(
        short = 'v',
        long = "v",
        value_name = "LEVEL",
        default_value = "0",
        allow_negative_numbers = true,
        value_parser = told::<Verbosity>
    )]
    pub(in crate::command::run) verbosity: Verbosity,
    /// Other levels for the files or modules that patterns name, as
    /// PATTERN=LEVEL,….
    #[arg(
        long, value_name = "PATTERN=LEVEL", default_value = "", hide_default_value = true,
        value_parser = told::<Vmodule>
    )]
    pub(in crate::command::run) vmodule: Vmodule,
}
