//! Runs conformance corpora: recorded decisions of kube-scheduler, and
//! configuration documents with what it makes of them. Each is put to this
//! scheduler, and what differs is reported line by line.
//!
//! The format is that of `testdata/conformance`: one JSON object a line, gzip
//! or not. A line with `yaml` is a configuration document, one with `pod` and
//! `expect` a scenario. Nothing is scheduled: a scenario's objects are handed
//! to a fresh [`steersman_core::Scheduler`], which then evaluates the pod on
//! every node.
//!
//! The crate reads files and prints nothing. Start with [`run`].
//!
//! ```
//! use steersman_conformance::{Options, Show, run};
//!
//! let corpus = concat!(
//!     env!("CARGO_MANIFEST_DIR"),
//!     "/../../testdata/conformance/config/config.jsonl"
//! );
//! let report = run(&[corpus.into()], &Options::default())?;
//! assert!(report.render(Show::default()).to_string().ends_with(" passed, 0 failed\n"));
//! # Ok::<(), steersman_conformance::RunError>(())
//! ```
#![warn(missing_docs)]

mod compare;
mod corpus;
mod decide;
mod difference;
mod document;
mod field;
mod judge;
mod render;
mod report;
mod scenario;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use steersman_config::ConfigErrors;
use thiserror::Error;

pub use corpus::ReadError;
pub use difference::Difference;
pub use field::{Field, UnknownField};
pub use render::{Rendered, Show};
pub use report::{Cause, Failure, FamilyReport, Report};

use corpus::Line;
use judge::Judge;

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What not to compare in scenarios; documents are always compared whole.
    /// [`Field::Preemption`] leaves out [`Field::FullMessage`] as well.
    pub ignore: BTreeSet<Field>,
    /// How many threads to use, up to 64; by default one a core.
    pub jobs: Option<NonZeroUsize>,
}

/// Why a run cannot start. What is wrong with a single line is a failure in
/// the [`Report`] instead.
#[derive(Debug, Error)]
pub enum RunError {
    /// There is nothing to run.
    #[error("no corpus file was given")]
    NoFiles,
    /// A corpus cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The default configuration of the in-tree plugins is refused.
    #[error("the default configuration is refused")]
    DefaultConfig(#[source] ConfigErrors),
    /// No threads.
    #[error("cannot start threads")]
    Threads(#[source] rayon::ThreadPoolBuildError),
}

/// Scenarios only compute: more threads than any machine has cores do harm.
const MAX_THREADS: usize = 64;

/// Runs every line of `files`. The report is the same for any number of
/// threads.
///
/// # Errors
/// When there is no file, or one cannot be read or is empty.
pub fn run(files: &[PathBuf], options: &Options) -> Result<Report, RunError> {
    if files.is_empty() {
        return Err(RunError::NoFiles);
    }
    let mut lines: Vec<Line> = Vec::new();
    for file in files {
        lines.extend(corpus::read(file)?);
    }
    let judge = Judge::new(&options.ignore).map_err(RunError::DefaultConfig)?;
    let threads = options.jobs.map_or(0, |jobs| jobs.get().min(lines.len()).min(MAX_THREADS));
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(RunError::Threads)?;
    let judged: Vec<_> =
        pool.install(|| lines.into_par_iter().map(|line| judge.judge(line)).collect());
    let mut report = Report::default();
    for one in judged {
        report.add(one);
    }
    Ok(report)
}
