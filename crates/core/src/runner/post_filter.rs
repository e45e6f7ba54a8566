//! PostFilter: what can be done about a pod that fits nowhere.

use std::cell::{Cell, RefCell};
use std::sync::LazyLock;

use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_framework::diagnosis::Diagnosis;
use steersman_framework::extensions::{CycleCtx, PostFilterCtx};
use steersman_framework::observer::{Call, Observer, Outcome};
use steersman_framework::point::ExtensionPoint;
use steersman_framework::state::CycleState;
use steersman_framework::verdict::{PostFilterVerdict, Preemption, Reason, Rejection};

use super::{Answer, FilterSet, Trials, run};
use crate::profile::PluginSet;

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remedy {
    /// The node that room is made on.
    pub(crate) nominate: Option<Name>,
    /// Whose eviction makes it.
    pub(crate) preempt: Option<Preemption>,
    /// The plugin that wants it.
    pub(crate) plugin: &'static str,
    /// Whose departure would make room, while nothing else is done.
    pub(crate) wait_for: Vec<PodUid>,
    /// Whether an earlier nomination is void.
    pub(crate) clear_nomination: bool,
    /// The plugins that said no to nodes as others would leave them: when they
    /// change their minds, room can be made there.
    pub(crate) in_the_way: PluginSet,
    /// What the plugins said, for the pod's message.
    pub(crate) message: String,
    /// Whether a plugin failed: the message is its error.
    pub(crate) failed: bool,
    /// What went wrong without harm.
    pub(crate) notes: Vec<String>,
}

/// What observers are told when nothing can be done: why is in the pod's
/// message.
static UNHELPFUL: LazyLock<Rejection> =
    LazyLock::new(|| Rejection::unschedulable("nothing can be done"));

impl Answer for Remedy {
    fn outcome(&self) -> Outcome<'_> {
        match self {
            Self { nominate: Some(_), .. } => Outcome::Success,
            Self { failed: true, message, .. } => Outcome::Error(message),
            _ => Outcome::Rejected(&UNHELPFUL),
        }
    }
}

/// What PostFilter plugins are asked about.
#[derive(Clone, Copy)]
pub(crate) struct Plight<'a> {
    pub(crate) filters: &'a FilterSet<'a>,
    pub(crate) state: &'a CycleState,
    pub(crate) diagnosis: &'a Diagnosis,
    /// Where the pod is nominated to.
    pub(crate) nominated: Option<&'a Name>,
    pub(crate) lot: u64,
}

/// Asks the PostFilter plugins in order until one can help: then what the
/// others said does not matter. A plugin that fails ends the asking as well,
/// and its error is all that is said.
pub(crate) fn post_filter(plight: Plight<'_>, observer: &mut dyn Observer) -> Remedy {
    let filters = plight.filters;
    let trials = Trials { filters, said_no: Cell::default(), notes: RefCell::default() };
    let mut remedy = ask(plight, &trials, observer);
    remedy.notes = trials.notes.into_inner();
    remedy
}

fn ask(plight: Plight<'_>, trials: &Trials<'_>, observer: &mut dyn Observer) -> Remedy {
    let Plight { filters, state, diagnosis, nominated, lot } = plight;
    let mut remedy = Remedy::default();
    let mut said: Vec<Reason> = Vec::new();
    for slot in &filters.profile.post_filter {
        let call = Call {
            point: ExtensionPoint::PostFilter,
            plugin: slot.name,
            pod: filters.pod,
            node: None,
        };
        let cycle = CycleCtx { pod: filters.pod, cluster: filters.cluster, state };
        let ctx = PostFilterCtx { cycle, diagnosis, nominated, lot, what_if: trials };
        match run(call, observer, || slot.plugin.post_filter(&ctx)) {
            Ok(PostFilterVerdict::Nominate(node)) => {
                return Remedy { nominate: Some(node), ..Remedy::default() };
            }
            Ok(PostFilterVerdict::Preempt(preemption)) => {
                let nominate = Some(preemption.node.clone());
                let preempt = Some(preemption);
                return Remedy { nominate, preempt, plugin: slot.name, ..Remedy::default() };
            }
            Ok(PostFilterVerdict::Wait { reasons, victims }) => {
                remedy.wait_for.extend(victims);
                said.extend(reasons);
            }
            Ok(PostFilterVerdict::Unhelpful { reasons, clear_nomination }) => {
                remedy.clear_nomination |= clear_nomination;
                said.extend(reasons);
            }
            Err(failed) => {
                let in_the_way = trials.said_no.get();
                let message = failed.error.0;
                return Remedy { message, in_the_way, failed: true, ..Remedy::default() };
            }
        }
    }
    remedy.in_the_way = trials.said_no.get();
    remedy.message = said.join(", ");
    remedy
}
