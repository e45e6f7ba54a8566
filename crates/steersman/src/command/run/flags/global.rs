//! What the program is.

use clap::Args;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global flags")]
pub(in crate::command::run) struct GlobalFlags {
    /// Print the version and exit; with =raw, in all detail.
    #[arg(
        long, value_name = "BOOL|raw", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = wish
    )]
    pub(in crate::command::run) version: Option<VersionWish>,
}

/// What somebody wants to know about the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::command::run) enum VersionWish {
    /// Nothing.
    No,
    /// A line for people.
    Line,
    /// All there is to know, for programs.
    Raw,
}

fn wish(text: &str) -> Result<VersionWish, String> {
    if text == "raw" {
        return Ok(VersionWish::Raw);
    }
    match super::value::truth(text) {
        Ok(true) => Ok(VersionWish::Line),
        Ok(false) => Ok(VersionWish::No),
        Err(_) => Err("allowed: true, false, raw".to_owned()),
    }
}
