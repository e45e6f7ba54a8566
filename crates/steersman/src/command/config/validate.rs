//! `steersman config validate`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steersman_api::problem::Problem;
use steersman_config::{FeatureGates, Options};
use steersman_framework::registry::Registry;

use super::super::config_file::{read_text, say};
use super::super::output::write_json;
use super::super::{FAILURE, SUCCESS};
use super::{GateArgs, Report, rows};

const EXAMPLES: &str = "\
Examples:
  # Is this what kube-scheduler was given as --config usable here?
  steersman config validate /etc/kubernetes/scheduler.yaml

  # Everything that is wrong with several files, for a script
  steersman config validate configs/*.yaml --output json

Files of v1beta1, v1beta2 and v1beta3 are valid, with notes about what becomes of
what; see `steersman config migrate`.

Exit codes: 0 all files are usable, 1 some are not.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// KubeSchedulerConfigurations; `-` is stdin.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    gates: GateArgs,
    /// How to print what was found.
    #[arg(short, long, value_enum, default_value_t = Report::Text)]
    output: Report,
}

/// What was found in a file.
struct Finding<'a> {
    file: &'a Path,
    problems: Vec<Problem>,
    notices: Vec<Problem>,
}

pub(super) fn run(registry: &Registry, args: &Args) -> anyhow::Result<u8> {
    let gates = args.gates.read()?;
    let findings: Vec<_> = args.files.iter().map(|file| look_at(file, registry, &gates)).collect();
    let mut out = io::stdout().lock();
    match args.output {
        Report::Json => write_json(&mut out, &findings.iter().map(Finding::row).collect())?,
        Report::Text => findings.iter().try_for_each(|finding| finding.tell(&mut out))?,
    }
    let is_clean = findings.iter().all(|finding| finding.problems.is_empty());
    Ok(if is_clean { SUCCESS } else { FAILURE })
}

fn look_at<'a>(file: &'a Path, registry: &Registry, gates: &FeatureGates) -> Finding<'a> {
    let text = match read_text(file) {
        Ok(text) => text,
        Err(error) => {
            let unreadable = Problem::new(&"".into(), format!("{error:#}"));
            return Finding { file, problems: vec![unreadable], notices: Vec::new() };
        }
    };
    let options = Options { gates: gates.clone(), ..Options::default() };
    let (problems, notices) = match steersman_config::load_with(&text, registry, &options) {
        Ok(loaded) => (Vec::new(), loaded.notices),
        Err(errors) => (errors.problems().to_vec(), Vec::new()),
    };
    Finding { file, problems, notices }
}

impl Finding<'_> {
    fn tell(&self, out: &mut dyn Write) -> io::Result<()> {
        let name = self.file.display();
        for problem in &self.problems {
            say("error", &format_args!("{name}: {problem}"));
        }
        for notice in &self.notices {
            say("note", &format_args!("{name}: {notice}"));
        }
        match self.problems.len() {
            0 => writeln!(out, "{name}: usable"),
            1 => writeln!(out, "{name}: 1 problem"),
            n => writeln!(out, "{name}: {n} problems"),
        }
    }

    fn row(&self) -> Value {
        json!({
            "file": self.file.display().to_string(),
            "usable": self.problems.is_empty(),
            "problems": rows(&self.problems),
            "notices": rows(&self.notices),
        })
    }
}
