//! Why a pod fits nowhere: a value, from which the message users know is made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use steersman_api::node_info::NodeIdx;

use crate::verdict::{Reason, Rejection};

/// What a cycle found out about a pod that fits nowhere.
#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    /// How many nodes there are.
    pub n_nodes: usize,
    /// Nodes that a Filter rejected, by place in the node table.
    pub rejected: BTreeMap<NodeIdx, NodeRejection>,
    /// What stands for every node that was neither rejected nor feasible.
    pub others: Option<OthersRejection>,
    /// Set when PreFilter rejected the pod altogether.
    pub pre_filter_message: Option<String>,
    /// What PostFilter plugins said.
    pub post_filter_message: String,
    /// The name of the extender that refused the last of the nodes which passed
    /// the filters. For logs: the message does not name it, as in the reference.
    pub emptied_by: Option<String>,
    /// Plugins whose events may bring the pod back.
    pub unschedulable_plugins: BTreeSet<&'static str>,
}

/// A node's rejection and its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRejection {
    /// The plugin.
    pub plugin: &'static str,
    /// Its answer.
    pub rejection: Rejection,
}

/// The rejection of all nodes that no Filter saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OthersRejection {
    /// The plugin, when it was one alone.
    pub plugin: Option<&'static str>,
    /// Its answer; reasons may be empty.
    pub rejection: Rejection,
}

impl Diagnosis {
    /// `0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated
    /// taint(s).`, without what PostFilter plugins add.
    pub fn message(&self) -> String {
        if self.n_nodes == 0 {
            return "no nodes available to schedule pods".to_owned();
        }
        let mut text = format!("0/{} nodes are available:", self.n_nodes);
        if let Some(message) = &self.pre_filter_message {
            // Writing to a string cannot fail.
            let _ = write!(text, " {message}.");
            return text;
        }
        let mut counts: BTreeMap<&Reason, usize> = BTreeMap::new();
        for reason in self.rejected.values().flat_map(|r| &r.rejection.reasons) {
            *counts.entry(reason).or_default() += 1;
        }
        let unseen = self.n_nodes.saturating_sub(self.rejected.len());
        if unseen > 0 {
            for reason in self.others.iter().flat_map(|o| &o.rejection.reasons) {
                *counts.entry(reason).or_default() += unseen;
            }
        }
        // The reference sorts the finished phrases, numbers first, as text.
        let mut phrases: Vec<String> =
            counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        phrases.sort();
        if !phrases.is_empty() {
            let _ = write!(text, " {}.", phrases.join(", "));
        }
        text
    }

    /// [`Diagnosis::message`] with what PostFilter plugins add.
    pub fn full_message(&self) -> String {
        match self.post_filter_message.as_str() {
            "" => self.message(),
            more => format!("{} {more}", self.message()),
        }
    }
}
