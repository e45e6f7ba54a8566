//! One plugin by itself, on a small cluster.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_api::node_info::NodeIdx;
use steersman_api::object::ClusterObject;
use steersman_api::pod::PodInfo;
use steersman_framework::cluster::Cluster;
use steersman_framework::events::{Change, Hint, HintCtx};
use steersman_framework::extensions::{CycleCtx, Extensions, NodeScore, PrepareCtx};
use steersman_framework::registry::{Build, Descriptor, InitCtx};
use steersman_framework::shared::Shared;
use steersman_framework::signature::{Signable, SignatureBuilder};
use steersman_framework::state::CycleState;
use steersman_framework::verdict::{FilterVerdict, PreFilterVerdict, PreScoreVerdict, Rejection};

use crate::build::{NodeBuilder, PodBuilder, decoded};

/// A cluster and a plugin.
pub struct Bench {
    /// The cluster.
    pub cluster: Cluster,
    /// What the plugin serves.
    pub plugin: Extensions,
}

/// A change in thought.
#[derive(Clone, Debug)]
pub enum WhatIf {
    /// A pod stands on its node.
    Add(Arc<PodInfo>),
    /// A pod of a node is gone.
    Remove(Arc<PodInfo>),
}

impl Bench {
    /// The plugin with default arguments, on an empty cluster.
    #[track_caller]
    pub fn new(descriptor: &Descriptor) -> Self {
        Self::with_args(descriptor, json!({}))
    }

    /// The plugin with arguments as a user writes them.
    #[track_caller]
    pub fn with_args(descriptor: &Descriptor, args: Value) -> Self {
        let mut problems = Vec::new();
        let args = match descriptor.args {
            Some(kind) => (kind.complete)(args, &"args".into(), &mut problems),
            None => Some(args),
        };
        assert!(problems.is_empty(), "{problems:?}");
        let Build::Ready(factory) = &descriptor.build else {
            panic!("{} is only planned", descriptor.name)
        };
        let plugin = factory(
            &InitCtx { scheduler_name: "default-scheduler", shared: &Shared::default() },
            &args.expect("args"),
        )
        .expect("a plugin");
        assert_eq!(
            plugin.points(),
            descriptor.points,
            "{} serves what it announces",
            descriptor.name
        );
        Self { cluster: Cluster::new(), plugin }
    }

    /// Adds nodes.
    #[must_use]
    #[track_caller]
    pub fn nodes(mut self, nodes: impl IntoIterator<Item = NodeBuilder>) -> Self {
        for node in nodes {
            self.cluster.set_node(node.build());
        }
        self.cluster.refresh_order();
        self
    }

    /// Adds bound pods.
    #[must_use]
    #[track_caller]
    pub fn pods(mut self, pods: impl IntoIterator<Item = PodBuilder>) -> Self {
        for pod in pods.into_iter().map(PodBuilder::build) {
            let node = pod.node_name.clone().expect("pods of a bench are bound");
            self.cluster.add_pod(pod, &node);
        }
        self
    }

    /// Adds other objects.
    #[must_use]
    #[track_caller]
    pub fn objects(mut self, objects: impl IntoIterator<Item = Value>) -> Self {
        for json in objects {
            match decoded(json) {
                ClusterObject::Other(object) => drop(self.cluster.stores.set(object)),
                other => panic!("use nodes() and pods() for {other:?}"),
            }
        }
        self
    }

    /// Runs PreFilter and Filter for every node: a line per node in table
    /// order (`n1: fit`, `n2: Unschedulable: reason, reason`), or one line when
    /// PreFilter decides alone.
    #[track_caller]
    pub fn filter(&self, pod: &PodInfo) -> String {
        self.filter_after(pod, &[])
    }

    /// As [`Bench::filter`], with changes in thought between PreFilter and
    /// Filter, of which the plugin hears through its `PreFilterExtensions`.
    #[track_caller]
    pub fn filter_after(&self, pod: &PodInfo, changes: &[WhatIf]) -> String {
        let mut state = CycleState::new();
        let mut narrowed = None;
        if let Some(plugin) = &self.plugin.pre_filter {
            let mut ctx = PrepareCtx { pod, cluster: &self.cluster, state: &mut state };
            match plugin.pre_filter(&mut ctx).expect("PreFilter") {
                PreFilterVerdict::Proceed => {}
                PreFilterVerdict::Skip => return "skip\n".to_owned(),
                PreFilterVerdict::Reject(rejection) => return format!("{}\n", line(&rejection)),
                PreFilterVerdict::Narrow(names) => narrowed = Some(names),
            }
            for change in changes {
                self.imagine(&mut ctx, change);
            }
        }
        let ctx = CycleCtx { pod, cluster: &self.cluster, state: &state };
        let filter = self.plugin.filter.as_ref().expect("a Filter plugin");
        let mut text = String::new();
        for node in self.cluster.nodes().iter() {
            let verdict = if narrowed.as_ref().is_some_and(|names| !names.contains(node.name())) {
                "left out".to_owned()
            } else {
                match filter.filter(&ctx, node).expect("Filter") {
                    FilterVerdict::Fit => "fit".to_owned(),
                    FilterVerdict::Reject(rejection) => line(&rejection),
                }
            };
            writeln!(text, "{}: {verdict}", node.name()).expect("a string");
        }
        text
    }

    #[track_caller]
    fn imagine(&self, ctx: &mut PrepareCtx<'_>, change: &WhatIf) {
        let pre_filter = self.plugin.pre_filter.as_ref().expect("a PreFilter plugin");
        let plugin = pre_filter.extensions().expect("PreFilter extensions");
        let (WhatIf::Add(pod) | WhatIf::Remove(pod)) = change;
        let name = pod.node_name.as_ref().expect("pods of a bench are bound");
        let mut node = self.cluster.nodes().by_name(name).expect("a node").clone();
        match change {
            WhatIf::Add(_) => {
                node.add_pod(pod.clone());
                plugin.add_pod(ctx, pod, &node).expect("AddPod");
            }
            WhatIf::Remove(_) => {
                node.remove_pod(&pod.uid);
                plugin.remove_pod(ctx, pod, &node).expect("RemovePod");
            }
        }
    }

    /// Runs PreScore, Score and normalisation over all nodes: `n1=50 n2=100`,
    /// or `skip`.
    #[track_caller]
    pub fn score(&self, pod: &PodInfo) -> String {
        let mut state = CycleState::new();
        let nodes: Vec<NodeIdx> = self.cluster.nodes().iter().map(|n| n.idx()).collect();
        if let Some(plugin) = &self.plugin.pre_score {
            let mut ctx = PrepareCtx { pod, cluster: &self.cluster, state: &mut state };
            if plugin.pre_score(&mut ctx, &nodes).expect("PreScore") == PreScoreVerdict::Skip {
                return "skip".to_owned();
            }
        }
        let ctx = CycleCtx { pod, cluster: &self.cluster, state: &state };
        let plugin = self.plugin.score.as_ref().expect("a Score plugin");
        let mut scores: Vec<NodeScore> = self
            .cluster
            .nodes()
            .iter()
            .map(|n| NodeScore { node: n.idx(), score: plugin.score(&ctx, n).expect("Score") })
            .collect();
        plugin.normalize(&ctx, &mut scores).expect("normalisation");
        let name = |idx| self.cluster.nodes().get(idx).expect("a node").name().clone();
        let parts: Vec<String> =
            scores.iter().map(|s| format!("{}={}", name(s.node), s.score)).collect();
        parts.join(" ")
    }

    /// The plugin's hint about a change, as the queue would get it: `None` when
    /// the plugin does not want to hear of the change at all. The cluster must
    /// be in the state after the change.
    #[track_caller]
    pub fn hint(&self, pod: &Arc<PodInfo>, change: &Change) -> Option<Hint> {
        let plugin = self.plugin.events.as_ref().expect("queueing hints");
        let event = change.event()?;
        if !plugin.events().iter().any(|registered| registered.covers(&event)) {
            return None;
        }
        let ctx = HintCtx { pod, cluster: &self.cluster };
        Some(plugin.hint(&ctx, change).expect("a hint"))
    }

    /// Fails when a change, from this bench to `after`, makes a node fit that
    /// did not fit before, and the plugin's hint does not say so.
    #[track_caller]
    pub fn check_hint_is_complete(&self, after: &Self, pod: &Arc<PodInfo>, change: &Change) {
        let verdicts = [self.filter(pod), after.filter(pod)];
        if some_node_became_fit(&verdicts[0], &verdicts[1]) {
            let hint = after.hint(pod, change);
            assert_eq!(hint, Some(Hint::Queue), "{change:?}: {verdicts:?}");
        }
    }

    /// The plugin's fragment of the pod's signature; `None` when it has none.
    #[track_caller]
    pub fn signature(&self, pod: &PodInfo) -> Option<String> {
        let mut builder = SignatureBuilder::new();
        match self.plugin.sign.as_ref()?.sign(pod, &mut builder) {
            Signable::Yes => Some(builder.finish().to_string()),
            Signable::No => None,
        }
    }
}

fn line(rejection: &Rejection) -> String {
    format!("{}: {}", rejection.kind.name(), rejection.reasons.join(", "))
}

/// Compares what [`Bench::filter`] wrote before and after a change.
fn some_node_became_fit(before: &str, after: &str) -> bool {
    let fits = |verdicts: &str, line: &str| {
        verdicts == "skip\n" || verdicts.lines().any(|other| other == line)
    };
    before.lines().chain(after.lines()).any(|line| {
        let Some((name, _)) = line.split_once(": ") else { return false };
        let fit = format!("{name}: fit");
        fits(after, &fit) && !fits(before, &fit)
    })
}
