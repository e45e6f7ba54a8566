//! `steersman simulate`.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::bail;
use clap::ValueEnum;
use steersman_framework::registry::Registry;
use steersman_sim::input::Input;
use steersman_sim::report::{Detail, ReportData, write_text};
use steersman_sim::run::{Options, Preemption, Simulated, simulate};

use super::config_file::{self, say};
use super::output::{write_json, write_yaml};
use super::progress::Progress;
use super::{FAILURE, SOME_UNPLACED, SUCCESS};

const EXAMPLES: &str = "\
Examples:
  # Where would these workloads go?
  steersman simulate -f nodes.yaml -f workloads/

  # A dump of a real cluster, and the scores behind each decision
  kubectl get -A -o yaml nodes,namespaces,priorityclasses,services,pods,\\
deployments,replicasets,replicationcontrollers,statefulsets,daemonsets,jobs,\\
pdb,pv,pvc,storageclasses,csinodes,csidrivers,csistoragecapacities,\\
volumeattachments | steersman simulate -f - --explain

  # With a configuration of your own, for a script
  steersman simulate -f cluster/ --config scheduler.yaml --output json

Exit codes: 0 every pod has a node, 2 some have none, 1 bad input.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Manifests: a file, a directory (searched for .yaml, .yml and .json) or
    /// `-` for stdin. May be given several times.
    #[arg(short = 'f', long = "filename", value_name = "PATH", required = true)]
    filenames: Vec<PathBuf>,
    /// A KubeSchedulerConfiguration; the defaults if not given.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Show the scores of the best nodes and the rejections for every pod.
    #[arg(long)]
    explain: bool,
    /// For drawing among equally good nodes; the same seed gives the same
    /// result.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// What to make of pods that are in the way of more important ones.
    #[arg(long, value_enum, default_value_t = PreemptionArg::Report, value_name = "MODE")]
    preemption: PreemptionArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PreemptionArg {
    /// Do not mention them.
    Off,
    /// Evict nobody; say whose eviction would make room.
    Report,
    /// Evict them; they do not come back.
    Apply,
}

impl From<PreemptionArg> for Preemption {
    fn from(arg: PreemptionArg) -> Self {
        match arg {
            PreemptionArg::Off => Self::Off,
            PreemptionArg::Report => Self::Report,
            PreemptionArg::Apply => Self::Apply,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Wide,
    Json,
    Yaml,
}

pub(super) fn run(registry: &Registry, args: &Args) -> anyhow::Result<u8> {
    let (config, _) = config_file::load(args.config.as_deref(), registry)?;
    let input = Input::from_paths(&args.filenames, &mut io::stdin());
    input.notices.iter().for_each(|notice| say("note", notice));
    input.problems.iter().for_each(|problem| say("error", problem));
    let n_problems = input.problems.len();
    if n_problems > 0 && input.objects.is_empty() {
        return Ok(FAILURE);
    }
    let options = Options {
        config: &config,
        registry,
        seed: args.seed,
        explain: args.explain,
        preemption: args.preemption.into(),
    };
    let mut progress = Progress::new("scheduled");
    let simulated =
        simulate(input.objects, options, &mut |done, total| progress.tell(done, total))?;
    drop(progress);
    simulated.notices.iter().for_each(|notice| say("note", notice));
    let mut out = BufWriter::new(io::stdout().lock());
    let notices = [&input.notices[..], &simulated.notices].concat();
    let problems = input.problems.iter().map(ToString::to_string).collect();
    write(&mut out, &simulated, args, notices, problems)?;
    out.flush()?;
    if n_problems > 0 {
        let s = if n_problems == 1 { "" } else { "s" };
        bail!(
            "{n_problems} problem{s} in the input, see above; the result is without what was wrong"
        );
    }
    Ok(if simulated.all_placed() { SUCCESS } else { SOME_UNPLACED })
}

fn write(
    out: &mut dyn Write,
    simulated: &Simulated,
    args: &Args,
    notices: Vec<String>,
    problems: Vec<String>,
) -> anyhow::Result<()> {
    let data = || serde_json::to_value(ReportData::new(simulated, notices, problems));
    match args.output {
        Output::Table | Output::Wide => {
            let wide = args.output == Output::Wide;
            write_text(out, simulated, Detail { wide, explain: args.explain })?;
        }
        Output::Json => write_json(out, &data()?)?,
        Output::Yaml => write_yaml(out, &data()?)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::EXAMPLES;

    #[test]
    fn the_dump_of_the_help_is_the_one_of_the_guides() {
        // As a shell reads it.
        let list = |text: &str| {
            let text = text.replace("\\\n", "");
            let get = text.lines().find(|line| line.trim().starts_with("kubectl get "))?;
            get.split_whitespace().find(|word| word.contains(',')).map(str::to_owned)
        };
        let guides =
            [include_str!("../../../../README.md"), include_str!("../../../../docs/migrating.md")];
        let help = list(EXAMPLES);
        assert!(
            help.as_ref().is_some_and(|list| list.contains(",csistoragecapacities,")),
            "{help:?}"
        );
        for guide in guides {
            assert_eq!(list(guide), help);
        }
    }
}
