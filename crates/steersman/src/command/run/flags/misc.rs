//! Where the configuration is and what to do with it.

use std::path::PathBuf;

use clap::Args;

use super::value::file;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Misc flags")]
pub(in crate::command::run) struct MiscFlags {
    /// A KubeSchedulerConfiguration; the defaults if not given. It is read
    /// again when it changes and on SIGHUP.
    #[arg(long, value_name = "FILE", value_parser = file)]
    pub(in crate::command::run) config: Option<PathBuf>,
    /// Write the complete configuration, with all defaults and what flags set,
    /// to this file and exit.
    #[arg(long, value_name = "FILE", value_parser = file)]
    pub(in crate::command::run) write_config_to: Option<PathBuf>,
    /// The API server's address, instead of the kubeconfig's.
    #[arg(long, value_name = "URL")]
    pub(in crate::command::run) master: Option<String>,
}
