//! The scheduler's core: a deterministic state machine, events in, effects out.
//!
//! It does no IO and reads no clock: drivers (the live scheduler, the
//! simulator, tests) hand in events and times, and carry out the effects.
//! Start with [`Scheduler`]; `queue/mod.rs` has the states of a pending pod,
//! `pods.rs` those of a placed one, `cycle.rs` the judging, `scheduler/attempt.rs`
//! what follows from it.
//!
//! ```
//! use steersman_api::time::Time;
//! use steersman_config::Config;
//! use steersman_core::{Scheduler, Setup};
//! use steersman_framework::observer::Unobserved;
//!
//! let registry = steersman_plugins::table::in_tree();
//! let config = Config::default_for(&registry)?;
//! let setup = Setup::new(&config, &registry);
//! let (mut scheduler, _notices) = Scheduler::new(setup)?;
//! assert!(scheduler.schedule_next(Time::ZERO, &mut Unobserved).is_none(), "no pod, no decision");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

mod binding;
mod cycle;
mod evaluate;
mod event;
mod eviction;
mod pods;
mod profile;
mod queue;
mod record;
mod runner;
mod scheduler;

pub use binding::{BindingCycle, BindingReport};
pub use evaluate::{Evaluation, NodeEvaluation};
pub use event::{Attempt, Effect, Event, FailureReason, Outcome};
pub use eviction::{Eviction, EvictionReport, preempted_note};
pub use profile::ProfileError;
pub use queue::{Cause, Incoming, Place, QueueCounts};
pub use record::Record;
pub use scheduler::{
    BindingState, EventLabel, PendingPod, PodState, PodStates, Scheduler, Setup, SetupError, Stats,
    WaitState, WakeCount,
};
