//! Pod disruption budgets: whose eviction would break one.

use std::sync::Arc;

use steersman_api::disruption::PodDisruptionBudget;
use steersman_api::pod::PodInfo;
use steersman_framework::cluster::Cluster;

/// The budgets of the cluster, as they stand.
pub(super) struct Budgets<'a>(Vec<&'a PodDisruptionBudget>);

/// Pods by what their eviction does to budgets; both in the order given.
pub(super) struct ByBudget {
    /// Some budget has nothing left for the pod.
    pub(super) violating: Vec<Arc<PodInfo>>,
    pub(super) allowed: Vec<Arc<PodInfo>>,
}

impl<'a> Budgets<'a> {
    pub(super) fn of(cluster: &'a Cluster) -> Self {
        Self(cluster.stores.list::<PodDisruptionBudget>().collect())
    }

    /// Supposes that `pods` are evicted one after the other.
    pub(super) fn split(&self, pods: &[Arc<PodInfo>]) -> ByBudget {
        let mut left: Vec<i64> =
            self.0.iter().map(|budget| i64::from(budget.disruptions_allowed)).collect();
        let mut by_budget = ByBudget { violating: Vec::new(), allowed: Vec::new() };
        for pod in pods {
            let mut violates = false;
            for (budget, left) in self.0.iter().zip(&mut left) {
                if budget.pays_for(pod) {
                    *left -= 1;
                    violates |= *left < 0;
                }
            }
            let group = if violates { &mut by_budget.violating } else { &mut by_budget.allowed };
            group.push(pod.clone());
        }
        by_budget
    }
}
