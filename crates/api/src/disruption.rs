//! Pod disruption budgets: how many pods of an application may be taken away
//! at the moment.

use std::collections::BTreeSet;

use k8s_openapi::api::policy::v1 as policy_v1;

use crate::key::ObjectKey;
use crate::object::StoredObject;
use crate::pod::PodInfo;
use crate::problem::{FieldPath, Problem};
use crate::selector::Selector;

/// A `PodDisruptionBudget`, as far as preemption reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodDisruptionBudget {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Whose disruption it limits.
    pub selector: Selector,
    /// `status.disruptionsAllowed`: how many more pods may go now.
    pub disruptions_allowed: i32,
    /// `status.disruptedPods`: names of pods whose eviction was granted and
    /// that the budget has paid for already.
    pub disrupted_pods: BTreeSet<Box<str>>,
}

impl StoredObject for PodDisruptionBudget {
    const RESOURCE: &'static str = "policy/PodDisruptionBudget";

    fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl PodDisruptionBudget {
    /// Reads a budget. One that no controller has looked at yet allows nothing.
    pub fn from_k8s(budget: &policy_v1::PodDisruptionBudget, problems: &mut Vec<Problem>) -> Self {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let status = budget.status.as_ref();
        let disrupted = status.and_then(|status| status.disrupted_pods.as_ref());
        Self {
            key: ObjectKey::namespaced(
                budget.metadata.namespace.as_deref().unwrap_or_default(),
                budget.metadata.name.as_deref().unwrap_or_default(),
            ),
            selector: Selector::from_k8s(selector, &FieldPath::from("spec.selector"), problems),
            disruptions_allowed: status.and_then(|status| status.disruptions_allowed).unwrap_or(0),
            disrupted_pods: disrupted
                .into_iter()
                .flat_map(|pods| pods.keys())
                .map(|name| name.as_str().into())
                .collect(),
        }
    }

    /// Whether taking `pod` away is charged to this budget. A selector that is
    /// empty or absent means no pod here, and a pod without labels belongs to
    /// no budget.
    pub fn pays_for(&self, pod: &PodInfo) -> bool {
        self.key.namespace == pod.key.namespace
            && !pod.labels.is_empty()
            && !self.selector.is_everything()
            && self.selector.matches(&pod.labels)
            && !self.disrupted_pods.contains(&*pod.key.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::decode::{Decoded, decode};
    use crate::object::ClusterObject;

    fn read(spec: &Value, status: &Value) -> (PodDisruptionBudget, Vec<String>) {
        let json = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"namespace": "red", "name": "db"}, "spec": spec, "status": status});
        let Decoded { object, problems } = decode(json).expect("a budget");
        let ClusterObject::Other(object) = object else { panic!("stored beside pods and nodes") };
        let budget = object.get::<PodDisruptionBudget>().expect("a budget").clone();
        (budget, problems.iter().map(ToString::to_string).collect())
    }

    fn pod(labels: &Value) -> std::sync::Arc<PodInfo> {
        let json = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "red", "name": "db-0", "labels": labels},
            "spec": {"containers": [{"name": "c"}]}});
        match decode(json).expect("a pod").object {
            ClusterObject::Pod(pod) => pod,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn full_and_minimal_budgets_are_read() {
        let (full, problems) = read(
            &json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}}),
            &json!({"disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1,
                "expectedPods": 3, "disruptedPods": {"db-1": "2026-01-01T00:00:00Z"}}),
        );
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!((full.disruptions_allowed, full.disrupted_pods), (2, ["db-1".into()].into()));
        let (minimal, problems) = read(&json!({}), &json!(null));
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!((minimal.selector, minimal.disruptions_allowed), (Selector::Nothing, 0));
    }

    #[test]
    fn selector_that_cannot_be_read_is_reported_and_means_nothing() {
        let rule = json!({"key": "app", "operator": "Near", "values": ["db"]});
        let selector = json!({"selector": {"matchExpressions": [rule]}});
        let (budget, problems) = read(&selector, &json!(null));
        assert_eq!(
            problems,
            ["spec.selector.matchExpressions[0].operator: found \"Near\", allowed: In, NotIn, \
                 Exists, DoesNotExist"]
        );
        assert!(!budget.pays_for(&pod(&json!({"app": "db"}))));
    }

    #[test]
    fn budget_pays_for_labelled_pods_that_it_selects_and_has_not_paid_for() {
        let selector = json!({"matchLabels": {"app": "db"}});
        let absent_tier =
            json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]});
        let cases = [
            (selector.clone(), json!({"app": "db"}), json!({}), true),
            (selector.clone(), json!({"app": "web"}), json!({}), false),
            (json!({}), json!({"app": "db"}), json!({}), false),
            (absent_tier.clone(), json!({"app": "db"}), json!({}), true),
            (absent_tier, json!({}), json!({}), false),
            (selector, json!({"app": "db"}), json!({"db-0": "2026-01-01T00:00:00Z"}), false),
        ];
        for (selector, labels, disrupted, expected) in cases {
            let status = json!({"disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 1,
                "expectedPods": 1, "disruptedPods": disrupted});
            let (budget, _) = read(&json!({"selector": selector}), &status);
            assert_eq!(budget.pays_for(&pod(&labels)), expected, "{selector} {labels}");
        }
    }
}
