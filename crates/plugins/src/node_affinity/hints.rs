//! When a pod that fitted no node by its selection of nodes may fit.

use steersman_api::labels::Labels;
use steersman_api::pod::PodInfo;
use steersman_api::selector::NodeSelector;
use steersman_framework::events::{
    ActionType, Change, ClusterEvent, EnqueueExtensions, EventResource, Hint, HintCtx,
};
use steersman_framework::verdict::PluginError;

use super::NodeAffinity;

impl EnqueueExtensions for NodeAffinity {
    fn events(&self) -> Vec<ClusterEvent> {
        let node = ActionType::ADD | ActionType::UPDATE_NODE_LABEL;
        vec![
            ClusterEvent::new(EventResource::NODE, node),
            ClusterEvent::new(EventResource::TARGET_POD, ActionType::UPDATE),
        ]
    }

    fn hint(&self, ctx: &HintCtx<'_>, change: &Change) -> Result<Hint, PluginError> {
        Ok(match change {
            Change::Node { old, new: Some(new) } => {
                let was_refused = old.as_ref().is_none_or(|old| !self.allows(ctx.pod, old));
                Hint::queue_if(was_refused && self.allows(ctx.pod, new))
            }
            Change::TargetPod { old, new } => Hint::queue_if(selection(old) != selection(new)),
            _ => Hint::Queue,
        })
    }
}

fn selection(pod: &PodInfo) -> (&Labels, &Option<NodeSelector>) {
    (&pod.spec.node_selector, &pod.spec.required_node_affinity)
}
