//! Replacing the pods of older templates: first the old one goes, or first the
//! new one comes, as the strategy says.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::{Daemons, Verdict};
use crate::engine::plan::Plan;
use crate::workload::{Availability, Round, is_ready, is_terminating, resolve};

/// How many nodes a rollout may touch at once.
struct Limits {
    /// How many nodes may be without an available pod.
    unavailable: i32,
    /// How many nodes may have a pod of the new template beside the old one.
    surge: i32,
}

impl Daemons<'_> {
    /// Replaces pods of older templates as far as the limits allow.
    pub(super) fn roll(&self, plan: &mut Plan) {
        let limits = self.limits();
        if limits.surge > 0 {
            self.bring_new(plan, limits.surge);
        } else {
            self.remove_old(plan, limits.unavailable);
        }
    }

    /// The pods of a node that are too many. With a surge, a pod of the new
    /// template may stand beside one of an older one until it is available.
    pub(super) fn surplus<'p>(&self, pods: &[&'p Arc<Pod>]) -> Vec<&'p Arc<Pod>> {
        if !self.rolls() || self.limits().surge == 0 {
            return pods.iter().skip(1).copied().collect();
        }
        let (new, old): (Vec<_>, Vec<_>) = pods.iter().copied().partition(|p| self.is_current(p));
        let mut surplus: Vec<&Arc<Pod>> = old.iter().chain(&new).copied().collect();
        let mut keep = |pod: &Arc<Pod>| surplus.retain(|other| !Arc::ptr_eq(other, pod));
        if let Some(new) = new.first() {
            keep(new);
        }
        if let Some(old) = old.first() {
            let replaced = new.first().is_some_and(|new| {
                !is_ready(old) || self.availability(new) == Availability::Available
            });
            if !replaced {
                keep(old);
            }
        }
        surplus
    }

    /// Whether pods of older templates are replaced without anybody's help.
    pub(super) fn rolls(&self) -> bool {
        let strategy = self.spec.update_strategy.as_ref();
        strategy.and_then(|s| s.type_.as_deref()) != Some("OnDelete")
    }

    fn limits(&self) -> Limits {
        let rolling = self.spec.update_strategy.as_ref().and_then(|s| s.rolling_update.as_ref());
        let n_wanted = i32::try_from(self.wanted().count()).unwrap_or(i32::MAX);
        let number = |of| resolve(of, n_wanted, Round::Up);
        let surge = number(rolling.and_then(|r| r.max_surge.as_ref())).unwrap_or_default();
        let unavailable = number(rolling.and_then(|r| r.max_unavailable.as_ref()));
        // With neither nothing could ever move.
        Limits { unavailable: unavailable.unwrap_or(1).max(1), surge }
    }

    /// The names of the nodes that are to have a pod, and their pods.
    fn wanted(&self) -> impl Iterator<Item = (&String, &Vec<Arc<Pod>>)> {
        let nodes = self.nodes.iter().filter(|(_, (verdict, _))| *verdict == Verdict::Wanted);
        nodes.map(|(node, (_, pods))| (node, pods))
    }

    /// Deletes old pods, as many at once as may be missing. New ones come when
    /// they are gone.
    fn remove_old(&self, plan: &mut Plan, limit: i32) {
        let mut n_unavailable = 0;
        let mut candidates = Vec::new();
        for (_, pods) in self.wanted() {
            // A pod that is ending is as good as gone.
            let staying = || pods.iter().filter(|pod| !is_terminating(pod));
            let old = staying().find(|pod| !self.is_current(pod));
            if !staying().any(|pod| self.availability(pod) == Availability::Available) {
                n_unavailable += 1;
                // It serves nobody: replacing it costs nothing.
                old.iter().for_each(|pod| self.delete(plan, pod));
            } else {
                candidates.extend(old);
            }
        }
        let n_free = usize::try_from(limit - n_unavailable).unwrap_or_default();
        candidates.into_iter().take(n_free).for_each(|pod| self.delete(plan, pod));
    }

    /// Makes new pods beside old ones, as many at once as the surge allows. Old
    /// ones go when the new one on their node is available.
    fn bring_new(&self, plan: &mut Plan, limit: i32) {
        let mut n_surging = 0;
        let mut candidates = Vec::new();
        for (node, pods) in self.wanted() {
            let staying = || pods.iter().filter(|pod| !is_terminating(pod));
            let Some(old) = staying().find(|pod| !self.is_current(pod)) else { continue };
            // One that is ending still holds the place of the new one.
            let new = pods.iter().find(|pod| self.is_current(pod));
            match new {
                Some(new) if self.availability(new) == Availability::Available => {}
                Some(_) => n_surging += 1,
                // Beside a pod that serves nobody a new one is no surge.
                None if self.availability(old) != Availability::Available => {
                    self.make(plan, node);
                }
                None => candidates.push(node),
            }
        }
        let n_free = usize::try_from(limit - n_surging).unwrap_or_default();
        candidates.into_iter().take(n_free).for_each(|node| self.make(plan, node));
    }
}
