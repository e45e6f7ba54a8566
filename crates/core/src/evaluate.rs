//! What the scheduler thinks of a pod right now, with every node looked at: for
//! explanations, simulations and conformance tests. Decides nothing.

use std::collections::BTreeMap;

use steersman_api::name::Name;
use steersman_framework::diagnosis::Diagnosis;
use steersman_framework::observer::Observer;
use steersman_framework::state::CycleState;
use steersman_framework::verdict::Preemption;

use crate::cycle::{Inputs, Sampling};
use crate::runner::{AttemptError, score};

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct Evaluation {
    /// Nodes that pass every filter, with their scores.
    pub feasible: BTreeMap<Name, NodeEvaluation>,
    /// Why the others do not, and the pod's message.
    pub diagnosis: Diagnosis,
    /// Whose eviction would make room, when the pod fits nowhere.
    pub preemption: Option<Preemption>,
}

/// A feasible node's scores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeEvaluation {
    /// By plugin, normalised and weighted. Plugins that skipped the pod are
    /// missing.
    pub scores: BTreeMap<&'static str, i64>,
    /// By extender, weighted and in the range of scores.
    pub extenders: BTreeMap<String, i64>,
    /// Their sum.
    pub total: i64,
}

impl Inputs<'_> {
    /// Evaluates every node; only the nominated one, while the pod fits there.
    /// Extenders are asked.
    pub(crate) fn evaluate(&self, observer: &mut dyn Observer) -> Result<Evaluation, AttemptError> {
        let mut state = CycleState::new();
        let mut filtered = self.filter(&mut state, Sampling::ALL, observer)?;
        if filtered.feasible.is_empty() {
            let remedy = self.remedy(&mut filtered, &state, observer);
            return Ok(Evaluation {
                feasible: BTreeMap::new(),
                diagnosis: filtered.diagnosis,
                preemption: remedy.preempt,
            });
        }
        let feasible = &filtered.feasible;
        let mut ctx = self.preparing(&mut state);
        let mut table = score(self.profile, &mut ctx, feasible, observer)?;
        let by_extender = self.asked().prioritize(feasible, &mut filtered.notes);
        for (_, scores) in &by_extender {
            table.add(scores);
        }
        let nodes = self.cluster.nodes();
        let rows = table.totals.iter().enumerate().filter_map(|(row, total)| {
            let by_plugin = table.by_plugin.iter();
            let scores = by_plugin.map(|(plugin, scores)| (*plugin, scores[row])).collect();
            let by_extender = by_extender.iter();
            let extenders = by_extender.map(|(name, scores)| (name.clone(), scores[row])).collect();
            let evaluation = NodeEvaluation { scores, extenders, total: total.score };
            Some((nodes.get(total.node)?.name().clone(), evaluation))
        });
        Ok(Evaluation { feasible: rows.collect(), diagnosis: filtered.diagnosis, preemption: None })
    }
}
