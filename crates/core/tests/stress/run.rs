//! One run: a seed gives a history of events, and after each of them the
//! checks. The parts: `actions.rs` what can happen, `effects.rs` what becomes
//! of the scheduler's effects, `checks.rs` what must be true.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;
use steersman_api::time::Time;
use steersman_core::{BindingReport, Eviction, Scheduler, Setup};
use steersman_framework::extender::Extender;

use crate::api::Api;
use crate::desk::Running;
use crate::extenders::extenders;
use crate::objects::{NAMESPACES, NODES, namespace, node, pod_templates};
use crate::plugins::{PANIC_MESSAGE, Reservation, config, registry};
use crate::promises::Promises;
use crate::rng::Rng;
use crate::told::Told;

/// Which history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) seed: u64,
    pub(crate) steps: usize,
    /// Whether to check everything after each step. That changes no history.
    pub(crate) checks: bool,
    /// Whether to print every step.
    pub(crate) trace: bool,
}

/// What came of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Every attempt and effect, in order.
    pub(crate) log: String,
    pub(crate) tally: Tally,
}

/// Counts, for looking at.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) attempts: u64,
    pub(crate) bound: u64,
    /// Pods with claims that got a node.
    pub(crate) with_claims: u64,
    /// Volumes and claims that binding cycles wrote.
    pub(crate) written: u64,
    /// Writes that were refused, as somebody else was faster.
    pub(crate) conflicts: u64,
    /// How often another scheduler was asked that knows of no promises.
    pub(crate) compared: u64,
    pub(crate) flushed: u64,
    pub(crate) panics: u64,
    /// Preemptions with evictions, and pods that lost a node before they were
    /// bound.
    pub(crate) evictions: u64,
    pub(crate) called_off: u64,
    /// Attempts that found their pod bound by somebody else.
    pub(crate) overtaken: u64,
    /// Attempts after which an extender was among those that said no, and
    /// extenders that failed and were passed over.
    pub(crate) refused: u64,
    pub(crate) left_out: u64,
    pub(crate) evaluated: u64,
    pub(crate) equal_pairs: u64,
    /// Useful and vain wake-ups by event and plugin.
    pub(crate) wakes: BTreeMap<(String, &'static str), (u64, u64)>,
}

pub(crate) struct Run {
    pub(crate) rng: Rng,
    /// For what to look at, so that looking more often changes no history.
    pub(crate) eyes: Rng,
    pub(crate) api: Api,
    pub(crate) told: Told,
    pub(crate) scheduler: Scheduler,
    pub(crate) extenders: Vec<Arc<dyn Extender>>,
    pub(crate) now: Time,
    /// How long an accepted binding may take to show.
    pub(crate) ttl: Option<Duration>,
    pub(crate) templates: Vec<Value>,
    /// Whether pods stay on their nodes for long, so that others have to fight
    /// for room.
    pub(crate) crowded: bool,
    /// Binding cycles that were started and have not ended.
    pub(crate) cycles: Vec<Running>,
    /// How many there were, and how many claims when each began.
    pub(crate) n_cycles: u64,
    pub(crate) claims_at_start: BTreeMap<u64, u32>,
    /// The latest binding cycle of each pod, and the one that bound it.
    pub(crate) latest_cycles: BTreeMap<String, u64>,
    pub(crate) bound_by: BTreeMap<String, u64>,
    /// Binding cycles that have ended and were not reported.
    pub(crate) reports: Vec<BindingReport>,
    /// What binding cycles have written for claims.
    pub(crate) promises: Promises,
    /// Evictions that were asked for and not tried.
    pub(crate) evictions: Vec<Eviction>,
    /// Evictions that were tried and not reported.
    pub(crate) eviction_reports: Vec<(Eviction, Result<(), String>)>,
    /// Pods that wait at Permit, and for whom.
    pub(crate) waiting: BTreeMap<String, Vec<&'static str>>,
    pub(crate) reservations: Receiver<Reservation>,
    /// Who holds reservations for which pod and where, in order.
    pub(crate) ledger: BTreeMap<String, Vec<Reservation>>,
    /// Objects that are neither pods nor nodes and that the scheduler knows.
    pub(crate) others: BTreeSet<(&'static str, String, String)>,
    pub(crate) outcome: Outcome,
    /// In how many of 100 cases a cycle that waits gives up.
    pub(crate) patience: usize,
    /// Whether the scheduler was asked or told anything since the last checks.
    pub(crate) touched: bool,
    pub(crate) checks: bool,
    trace: bool,
    recent: VecDeque<String>,
}

/// How many lines of history an error shows.
const SHOWN: usize = 40;

/// Runs a history; an error names the seed and the step.
pub(crate) fn run(options: Options) -> Result<Outcome, String> {
    let mut run = Run::new(options);
    for step in 0..options.steps {
        let stepped = catch_unwind(AssertUnwindSafe(|| {
            run.say(|| format!("-- step {step}"));
            run.act()?;
            run.check()
        }));
        run.settle(stepped, options.seed, step)?;
    }
    let finished = catch_unwind(AssertUnwindSafe(|| run.finish()));
    run.settle(finished, options.seed, options.steps)?;
    for count in run.scheduler.wake_counts() {
        let wakes = (count.useful, count.vain);
        run.outcome.tally.wakes.insert((count.event, count.plugin), wakes);
    }
    run.outcome.tally.flushed = run.scheduler.flushed_count();
    Ok(run.outcome)
}

/// Keeps the panics that are part of the test from filling the output.
pub(crate) fn hush_planned_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let planned = panic
            .payload()
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.payload().downcast_ref::<&str>().copied())
            .is_some_and(|message| message == PANIC_MESSAGE);
        if !planned {
            usual(panic);
        }
    }));
}

impl Run {
    fn new(options: Options) -> Self {
        let (sender, reservations) = channel();
        let registry = registry(&sender);
        let config = config(&registry);
        let ttl = (options.seed % 2 == 1).then_some(Duration::from_secs(120));
        let extenders = extenders(options.seed);
        let setup = Setup {
            seed: options.seed,
            assumed_pod_ttl: ttl,
            extenders: &extenders,
            ..Setup::new(&config, &registry)
        };
        let (scheduler, _) = Scheduler::new(setup).expect("a scheduler");
        let mut rng = Rng::new(options.seed);
        let mut api = Api::default();
        for name in NAMESPACES {
            api.put_other("Namespace", namespace(&mut rng, name));
        }
        api.furnish(&mut rng);
        for name in &NODES[..rng.below(6)] {
            api.put_node(node(&mut rng, name));
        }
        let templates = pod_templates(&mut rng, 60);
        Self {
            rng,
            eyes: Rng::new(options.seed),
            api,
            told: Told::default(),
            scheduler,
            extenders,
            now: Time::ZERO,
            ttl,
            templates,
            crowded: options.seed % 4 >= 2,
            cycles: Vec::new(),
            n_cycles: 0,
            claims_at_start: BTreeMap::new(),
            latest_cycles: BTreeMap::new(),
            bound_by: BTreeMap::new(),
            promises: Promises::default(),
            patience: 4,
            touched: false,
            checks: options.checks,
            reports: Vec::new(),
            evictions: Vec::new(),
            eviction_reports: Vec::new(),
            waiting: BTreeMap::new(),
            reservations,
            ledger: BTreeMap::new(),
            others: BTreeSet::new(),
            outcome: Outcome::default(),
            trace: options.trace,
            recent: VecDeque::new(),
        }
    }

    /// A line of the history.
    pub(crate) fn say(&mut self, line: impl FnOnce() -> String) {
        let line = line();
        if self.trace {
            // A closed pipe ends the reader's interest, not the run.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
        if self.recent.len() == SHOWN {
            self.recent.pop_front();
        }
        self.recent.push_back(line);
    }

    /// A line of the history that two runs must have in common.
    pub(crate) fn record(&mut self, line: String) {
        self.outcome.log.push_str(&line);
        self.outcome.log.push('\n');
        self.say(|| line);
    }

    fn settle(
        &self,
        stepped: std::thread::Result<Result<(), String>>,
        seed: u64,
        step: usize,
    ) -> Result<(), String> {
        let what = match stepped {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(what)) => what,
            Err(_) => "it panicked, see above".to_owned(),
        };
        let recent: Vec<&str> = self.recent.iter().map(String::as_str).collect();
        Err(format!("seed {seed}, step {step}: {what}\nwhat came before:\n{}", recent.join("\n")))
    }
}
