//! Filter: can a node run the pod? Pods nominated to the node are counted.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use steersman_framework::cluster::Cluster;
use steersman_framework::extensions::{CycleCtx, PrepareCtx, WhatIf};
use steersman_framework::observer::{Call, Observer, Outcome, Phase, Unobserved};
use steersman_framework::point::ExtensionPoint;
use steersman_framework::state::CycleState;
use steersman_framework::verdict::{FilterVerdict, PluginError, Preemption};

use super::{Answer, Asked, Failed, Rejected, run_quietly};
use crate::profile::{PluginIdx, PluginSet, Profile};
use crate::queue::Nominations;

/// The filters that a pod needs, ready to be asked about nodes.
pub(crate) struct FilterSet<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) skip: PluginSet,
    pub(crate) pod: &'a PodInfo,
    pub(crate) cluster: &'a Cluster,
    pub(crate) nominations: &'a Nominations,
    /// How often each filter was asked, in the profile's order.
    asked: Box<[Cell<usize>]>,
}

/// A plugin's answer about a node.
#[derive(Debug)]
pub(crate) enum NodeAnswer {
    Fit,
    Rejected(PluginIdx, Rejected),
}

impl<'a> FilterSet<'a> {
    pub(crate) fn new(
        profile: &'a Profile,
        skip: PluginSet,
        pod: &'a PodInfo,
        cluster: &'a Cluster,
        nominations: &'a Nominations,
    ) -> Self {
        let asked = profile.filter.iter().map(|_| Cell::default()).collect();
        Self { profile, skip, pod, cluster, nominations, asked }
    }

    /// Tells how often each filter was asked.
    pub(crate) fn tell_asked(&self, observer: &mut dyn Observer) {
        let phase = Phase { point: ExtensionPoint::Filter, pod: self.pod };
        for (slot, asked) in self.profile.filter.iter().zip(&self.asked) {
            if asked.get() > 0 {
                observer.asked(phase, slot.name, asked.get());
            }
        }
    }

    /// Whether the pod fits on `node`. Pods of equal or higher priority that
    /// are nominated to the node are counted as if they were there; yet the
    /// pod must fit without them as well, since they may go elsewhere and it
    /// may depend on them (affinity).
    pub(crate) fn check(
        &self,
        state: &CycleState,
        node: &NodeInfo,
        observer: &mut dyn Observer,
    ) -> Result<NodeAnswer, Failed> {
        let nominated = self.nominations.outranking(node.name(), self.pod);
        if !nominated.is_empty() {
            let mut state = state.clone();
            let mut node = node.clone();
            for pod in nominated {
                self.add(&mut state, pod, &mut node)?;
            }
            let answer = self.ask_all(&state, &node, observer)?;
            if matches!(answer, NodeAnswer::Rejected(..)) {
                return Ok(answer);
            }
        }
        self.ask_all(state, node, observer)
    }

    fn ask_all(
        &self,
        state: &CycleState,
        node: &NodeInfo,
        observer: &mut dyn Observer,
    ) -> Result<NodeAnswer, Failed> {
        let ctx = CycleCtx { pod: self.pod, cluster: self.cluster, state };
        let report = observer.wants_nodes();
        for (slot, asked) in self.profile.filter.iter().zip(&self.asked) {
            if self.skip.contains(slot.idx) {
                continue;
            }
            asked.set(asked.get() + 1);
            let call = Call {
                point: ExtensionPoint::Filter,
                plugin: slot.name,
                pod: self.pod,
                node: Some(node.name()),
            };
            if report {
                observer.before(call);
            }
            let answer =
                run_quietly(ExtensionPoint::Filter, slot.name, || slot.plugin.filter(&ctx, node));
            if report {
                observer.after(
                    call,
                    match &answer {
                        Ok(verdict) => verdict.outcome(),
                        Err(failed) => Outcome::Error(&failed.error.0),
                    },
                );
            }
            if let FilterVerdict::Reject(rejection) = answer? {
                return Ok(NodeAnswer::Rejected(
                    slot.idx,
                    Rejected { plugin: slot.name, rejection },
                ));
            }
        }
        Ok(NodeAnswer::Fit)
    }

    fn add(
        &self,
        state: &mut CycleState,
        pod: Arc<PodInfo>,
        node: &mut NodeInfo,
    ) -> Result<(), Failed> {
        node.add_pod(pod.clone());
        self.each_extension(state, |extension, ctx| extension.add_pod(ctx, &pod, node))
    }

    fn remove(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        node: &mut NodeInfo,
    ) -> Result<(), Failed> {
        node.remove_pod(&pod.uid);
        self.each_extension(state, |extension, ctx| extension.remove_pod(ctx, pod, node))
    }

    fn each_extension(
        &self,
        state: &mut CycleState,
        call: impl Fn(
            &dyn steersman_framework::extensions::PreFilterExtensions,
            &mut PrepareCtx<'_>,
        ) -> Result<(), PluginError>,
    ) -> Result<(), Failed> {
        for slot in &self.profile.pre_filter {
            if self.skip.contains(slot.idx) {
                continue;
            }
            let Some(extension) = slot.plugin.extensions() else { continue };
            let mut ctx = PrepareCtx { pod: self.pod, cluster: self.cluster, state };
            run_quietly(ExtensionPoint::PreFilter, slot.name, || call(extension, &mut ctx))?;
        }
        Ok(())
    }
}

/// The filters, asked about nodes as they might be.
pub(crate) struct Trials<'a> {
    pub(crate) filters: &'a FilterSet<'a>,
    /// The plugins that said no.
    pub(crate) said_no: Cell<PluginSet>,
    /// What went wrong with extenders, without harm.
    pub(crate) notes: RefCell<Vec<String>>,
}

impl WhatIf for Trials<'_> {
    fn add_pod(
        &self,
        state: &mut CycleState,
        pod: Arc<PodInfo>,
        node: &mut NodeInfo,
    ) -> Result<(), PluginError> {
        self.filters.add(state, pod, node).map_err(|failed| PluginError(failed.to_string()))
    }

    fn remove_pod(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        node: &mut NodeInfo,
    ) -> Result<(), PluginError> {
        self.filters.remove(state, pod, node).map_err(|failed| PluginError(failed.to_string()))
    }

    fn filter(&self, state: &CycleState, node: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        match self.filters.check(state, node, &mut Unobserved) {
            Ok(NodeAnswer::Fit) => Ok(FilterVerdict::Fit),
            Ok(NodeAnswer::Rejected(plugin, rejected)) => {
                let mut said_no = self.said_no.get();
                said_no.insert(plugin);
                self.said_no.set(said_no);
                Ok(FilterVerdict::Reject(rejected.rejection))
            }
            Err(failed) => Err(PluginError(failed.to_string())),
        }
    }

    fn ask_extenders(&self, candidates: Vec<Preemption>) -> Result<Vec<Preemption>, PluginError> {
        let FilterSet { profile, pod, cluster, .. } = *self.filters;
        let Some(slot) = profile.extender_slot() else { return Ok(candidates) };
        let n_before = candidates.len();
        let asked = Asked { extenders: &profile.extenders, pod, cluster };
        let answer = asked.review(candidates, &mut self.notes.borrow_mut());
        if answer.as_ref().map_or(true, |accepted| accepted.len() < n_before) {
            let mut said_no = self.said_no.get();
            said_no.insert(slot);
            self.said_no.set(said_no);
        }
        answer.map_err(|error| PluginError(error.0))
    }
}
