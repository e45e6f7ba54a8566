//! `steersman config validate`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Value, json};
use steersman_api::problem::Problem;
use steersman_config::config::ExtenderConfig;
use steersman_config::{FeatureGates, Loaded, Options};
use steersman_extender::Files;
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

  # On the machine where it is used: every certificate has to be there as well
  steersman config validate /etc/kubernetes/scheduler.yaml --tls-files required

Files of v1beta1, v1beta2 and v1beta3 are valid, with notes about what becomes of
what; see `steersman config migrate`.

Certificates and keys of extenders (extenders[].tlsConfig) are looked at as `run`
does. A file that is not there, or not to be read by you, is only noted: it may be
on the machine where the configuration is used. Relative paths begin where the
program is started.

Exit codes: 0 all files are usable, 1 some are not.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// KubeSchedulerConfigurations; `-` is stdin.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    gates: GateArgs,
    /// What to do about the files with certificates and keys of extenders.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = TlsFiles::IfPresent)]
    tls_files: TlsFiles,
    /// How to print what was found.
    #[arg(short, long, value_enum, default_value_t = Report::Text)]
    output: Report,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TlsFiles {
    /// Look into those that are there, note those that are not.
    IfPresent,
    /// They have to be there.
    Required,
    /// Open none.
    Ignore,
}

/// What was found in a file.
struct Finding<'a> {
    file: &'a Path,
    problems: Vec<Problem>,
    notices: Vec<Problem>,
}

pub(super) fn run(registry: &Registry, args: &Args) -> anyhow::Result<u8> {
    let gates = args.gates.read()?;
    let look = |file| look_at(file, registry, &gates, args.tls_files);
    let findings: Vec<_> = args.files.iter().map(|file| look(file)).collect();
    let mut out = io::stdout().lock();
    match args.output {
        Report::Json => write_json(&mut out, &findings.iter().map(Finding::row).collect())?,
        Report::Text => findings.iter().try_for_each(|finding| finding.tell(&mut out))?,
    }
    let is_clean = findings.iter().all(|finding| finding.problems.is_empty());
    Ok(if is_clean { SUCCESS } else { FAILURE })
}

fn look_at<'a>(
    file: &'a Path,
    registry: &Registry,
    gates: &FeatureGates,
    tls_files: TlsFiles,
) -> Finding<'a> {
    let text = match read_text(file) {
        Ok(text) => text,
        Err(error) => {
            let unreadable = Problem::new(&"".into(), format!("{error:#}"));
            return Finding { file, problems: vec![unreadable], notices: Vec::new() };
        }
    };
    let options = Options { gates: gates.clone(), ..Options::default() };
    match steersman_config::load_with(&text, registry, &options) {
        Ok(Loaded { config, notices, .. }) => {
            let mut finding = Finding { file, problems: Vec::new(), notices };
            finding.add_extenders(&config.extenders, tls_files);
            finding
        }
        Err(errors) => Finding { file, problems: errors.problems().to_vec(), notices: Vec::new() },
    }
}

impl Finding<'_> {
    /// Adds what would keep extenders from being set up.
    fn add_extenders(&mut self, extenders: &[ExtenderConfig], tls_files: TlsFiles) {
        let files = match tls_files {
            TlsFiles::IfPresent | TlsFiles::Required => Files::Open,
            TlsFiles::Ignore => Files::Leave,
        };
        for error in steersman_extender::examine(extenders, files) {
            let mut problem = error.to_problem();
            if error.is_missing_file() && tls_files == TlsFiles::IfPresent {
                problem.message.push_str("; it is needed where the configuration is used");
                self.notices.push(problem);
            } else {
                self.problems.push(problem);
            }
        }
    }

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
