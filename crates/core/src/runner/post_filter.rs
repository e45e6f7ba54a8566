//! PostFilter: what can be done about a pod that fits nowhere.

use steersman_api::name::Name;
use steersman_framework::diagnosis::Diagnosis;
use steersman_framework::extensions::{CycleCtx, PostFilterCtx};
use steersman_framework::observer::{Call, Observer};
use steersman_framework::point::ExtensionPoint;
use steersman_framework::state::CycleState;
use steersman_framework::verdict::PostFilterVerdict;

use super::{FilterSet, run};

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remedy {
    /// The node that room is made on.
    pub(crate) nominate: Option<Name>,
    /// Whether an earlier nomination is void.
    pub(crate) clear_nomination: bool,
    /// What the plugins said, for the pod's message.
    pub(crate) message: String,
}

/// Asks the PostFilter plugins in order until one can help. A plugin that
/// fails ends the asking; what it said goes into the message.
pub(crate) fn post_filter(
    filters: &FilterSet<'_>,
    state: &CycleState,
    diagnosis: &Diagnosis,
    observer: &mut dyn Observer,
) -> Remedy {
    let mut remedy = Remedy::default();
    let mut said: Vec<String> = Vec::new();
    for slot in &filters.profile.post_filter {
        let call = Call {
            point: ExtensionPoint::PostFilter,
            plugin: slot.name,
            pod: filters.pod,
            node: None,
        };
        let cycle = CycleCtx { pod: filters.pod, cluster: filters.cluster, state };
        let ctx = PostFilterCtx { cycle, diagnosis, what_if: filters };
        match run(call, observer, || slot.plugin.post_filter(&ctx)) {
            Ok(PostFilterVerdict::Nominate(node)) => {
                remedy.nominate = Some(node);
                break;
            }
            Ok(PostFilterVerdict::Unhelpful { reasons, clear_nomination }) => {
                remedy.clear_nomination |= clear_nomination;
                said.extend(reasons.into_iter().map(std::borrow::Cow::into_owned));
            }
            Err(failed) => {
                said.push(failed.to_string());
                break;
            }
        }
    }
    remedy.message = said.join(", ");
    remedy
}
