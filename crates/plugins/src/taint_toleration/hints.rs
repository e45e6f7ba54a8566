//! When a pod that was rejected for a taint may fit.

use steersman_framework::events::{
    ActionType, Change, ClusterEvent, EnqueueExtensions, EventResource, Hint, HintCtx,
};
use steersman_framework::verdict::PluginError;

use super::{TaintToleration, tolerates};

impl EnqueueExtensions for TaintToleration {
    fn events(&self) -> Vec<ClusterEvent> {
        let node = ActionType::ADD | ActionType::UPDATE_NODE_TAINT;
        vec![
            ClusterEvent::new(EventResource::NODE, node),
            ClusterEvent::new(EventResource::TARGET_POD, ActionType::UPDATE_POD_TOLERATION),
        ]
    }

    fn hint(&self, ctx: &HintCtx<'_>, change: &Change) -> Result<Hint, PluginError> {
        Ok(match change {
            Change::Node { old, new: Some(new) } => {
                let was_repelled = old.as_ref().is_none_or(|old| !tolerates(ctx.pod, old));
                Hint::queue_if(was_repelled && tolerates(ctx.pod, new))
            }
            // Tolerations are only ever added; which of the nodes they open
            // is for the next cycle to find out.
            _ => Hint::Queue,
        })
    }
}
