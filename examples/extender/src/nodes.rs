//! Which nodes are welcome, and which are better: by an annotation and a label.

use axum::Json;
use k8s_openapi::api::core::v1::Node;
use steersman_extender::v1::{ExtenderArgs, ExtenderFilterResult, HostPriority, NodeList};

/// Nodes with this annotation take no pods; its value says why.
pub const REFUSE: &str = "example.com/refuse";
/// Nodes with this label and the value `fast` are preferred.
pub const TIER: &str = "example.com/tier";

/// The verb filter. The answer has the nodes that pass, and a reason for each
/// of the others: users read it in the events of their pods. Evicting pods
/// would not help, so the reasons stand among the unresolvable ones.
pub async fn filter(Json(asked): Json<ExtenderArgs>) -> Json<ExtenderFilterResult> {
    let mut answer = ExtenderFilterResult::default();
    let mut passed = NodeList::default();
    for node in asked.nodes.unwrap_or_default().items {
        let refused = node.metadata.annotations.as_ref().and_then(|all| all.get(REFUSE)).cloned();
        match refused {
            None => passed.items.push(node),
            Some(why) => {
                let reason = format!("node refuses pods: {why}");
                answer.failed_and_unresolvable_nodes.insert(name(&node), reason);
            }
        }
    }
    answer.nodes = Some(passed);
    Json(answer)
}

/// The verb prioritize: 0 to 10 for each node.
pub async fn prioritize(Json(asked): Json<ExtenderArgs>) -> Json<Vec<HostPriority>> {
    let is_fast = |node: &Node| {
        let tier = node.metadata.labels.as_ref().and_then(|all| all.get(TIER));
        tier.is_some_and(|tier| tier == "fast")
    };
    let nodes = asked.nodes.unwrap_or_default().items;
    let priorities = nodes
        .iter()
        .map(|node| HostPriority { host: name(node), score: if is_fast(node) { 10 } else { 0 } });
    Json(priorities.collect())
}

pub(crate) fn name(node: &Node) -> String {
    node.metadata.name.clone().unwrap_or_default()
}
