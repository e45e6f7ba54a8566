//! The one place from which plugins are called. It gives every call the same
//! treatment: observers are told, panics are caught and fail only the pod at
//! hand, and an answer is attributed to its plugin. One file per phase says
//! what a phase does with the answers.

mod bind;
mod extend;
mod filter;
mod gate;
mod post_filter;
mod prepare;
mod reserve;
mod score;
mod witness;

use std::panic::{AssertUnwindSafe, catch_unwind};

use steersman_api::pod::PodInfo;
use steersman_framework::observer::{Call, Observer, Outcome, Phase};
use steersman_framework::point::ExtensionPoint;
use steersman_framework::verdict::{
    FilterVerdict, PermitVerdict, PluginError, PostFilterVerdict, PreBindVerdict, PreFilterVerdict,
    PreScoreVerdict, Rejection, ReserveVerdict,
};

pub(crate) use bind::{BindOutcome, run_binding};
pub(crate) use extend::{Asked, AttemptError, Extenders};
pub(crate) use filter::{FilterSet, NodeAnswer, Trials};
pub(crate) use gate::{Gate, pre_enqueue};
pub(crate) use post_filter::{Plight, Remedy, post_filter};
pub(crate) use prepare::{NoNodes, Prepared, pre_filter};
pub(crate) use reserve::{Permitted, permit, reserve, unreserve};
pub(crate) use score::score;

/// A plugin failed; where, which, and how. People find this in the events of
/// their pods, so it reads as the reference's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("running {point} plugin {plugin:?}: {error}")]
pub(crate) struct Failed {
    pub(crate) point: ExtensionPoint,
    pub(crate) plugin: &'static str,
    pub(crate) error: PluginError,
}

/// What observers are told of an answer.
pub(crate) trait Answer {
    fn outcome(&self) -> Outcome<'_>;
}

impl Answer for () {
    fn outcome(&self) -> Outcome<'_> {
        Outcome::Success
    }
}

impl<T: Answer> Answer for Result<T, Failed> {
    fn outcome(&self) -> Outcome<'_> {
        match self {
            Ok(answer) => answer.outcome(),
            Err(failed) => Outcome::Error(&failed.error.0),
        }
    }
}

impl Answer for i64 {
    fn outcome(&self) -> Outcome<'_> {
        Outcome::Success
    }
}

impl Answer for PreFilterVerdict {
    fn outcome(&self) -> Outcome<'_> {
        match self {
            Self::Proceed | Self::Narrow(_) => Outcome::Success,
            Self::Skip => Outcome::Skip,
            Self::Reject(rejection) => Outcome::Rejected(rejection),
        }
    }
}

impl Answer for FilterVerdict {
    fn outcome(&self) -> Outcome<'_> {
        match self {
            Self::Fit => Outcome::Success,
            Self::Reject(rejection) => Outcome::Rejected(rejection),
        }
    }
}

impl Answer for PreScoreVerdict {
    fn outcome(&self) -> Outcome<'_> {
        match self {
            Self::Proceed => Outcome::Success,
            Self::Skip => Outcome::Skip,
        }
    }
}

impl Answer for ReserveVerdict {
    fn outcome(&self) -> Outcome<'_> {
        match self {
            Self::Reserved => Outcome::Success,
            Self::Reject(rejection) => Outcome::Rejected(rejection),
        }
    }
}

impl Answer for PermitVerdict {
    fn outcome(&self) -> Outcome<'_> {
        match self {
            Self::Allow => Outcome::Success,
            Self::Reject(rejection) => Outcome::Rejected(rejection),
            Self::Wait(_) => Outcome::Wait,
        }
    }
}

impl Answer for PreBindVerdict {
    fn outcome(&self) -> Outcome<'_> {
        match self {
            Self::Done => Outcome::Success,
            Self::Reject(rejection) => Outcome::Rejected(rejection),
        }
    }
}

impl Answer for PostFilterVerdict {
    fn outcome(&self) -> Outcome<'_> {
        match self {
            Self::Nominate(_) | Self::Preempt(_) => Outcome::Success,
            Self::Wait { .. } => Outcome::Wait,
            Self::Unhelpful { .. } => Outcome::Skip,
        }
    }
}

/// Asks the plugins of one extension point, and tells the observer so. Nothing
/// is told when there are none.
pub(crate) fn phase<T: Answer>(
    point: ExtensionPoint,
    pod: &PodInfo,
    n_plugins: usize,
    observer: &mut dyn Observer,
    ask: impl FnOnce(&mut dyn Observer) -> T,
) -> T {
    if n_plugins == 0 {
        return ask(observer);
    }
    let phase = Phase { point, pod };
    observer.phase_begins(phase);
    let answer = ask(observer);
    observer.phase_ends(phase, answer.outcome());
    answer
}

/// Calls a plugin.
pub(crate) fn run<T: Answer>(
    call: Call<'_>,
    observer: &mut dyn Observer,
    plugin: impl FnOnce() -> Result<T, PluginError>,
) -> Result<T, Failed> {
    observer.before(call);
    let answer = guarded(plugin);
    observer.after(
        call,
        match &answer {
            Ok(answer) => answer.outcome(),
            Err(error) => Outcome::Error(&error.0),
        },
    );
    answer.map_err(|error| Failed { point: call.point, plugin: call.plugin, error })
}

/// As [`run`], for calls that are too many to report one by one.
pub(crate) fn run_quietly<T>(
    point: ExtensionPoint,
    plugin: &'static str,
    call: impl FnOnce() -> Result<T, PluginError>,
) -> Result<T, Failed> {
    guarded(call).map_err(|error| Failed { point, plugin, error })
}

/// Turns a panic into an error.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T, PluginError>) -> Result<T, PluginError> {
    // A plugin that panicked may leave its own state in disorder, never ours:
    // it only reads the cluster, and the cycle's state is dropped with the
    // cycle.
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(panic_error(&*panic)))
}

/// What a panic said, as an error.
pub(crate) fn panic_error(panic: &(dyn std::any::Any + Send)) -> PluginError {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    PluginError(format!("panicked: {text}"))
}

/// A rejection with the plugin that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejected {
    pub(crate) plugin: &'static str,
    pub(crate) rejection: Rejection,
}
