//! What the scheduler decides, for those who look on.

use std::collections::BTreeMap;

use steersman_api::pod::PodInfo;
use steersman_core::{Attempt, FailureReason};
use steersman_framework::cluster::Cluster;
use steersman_framework::observer::Observer;
use steersman_runtime::{Listener, Placement, Placements};
use tokio::sync::mpsc;

/// What the scheduler decided about a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It has a node.
    Placed(Placement),
    /// It has none.
    Waits {
        /// Which pod, as namespace/name.
        pod: String,
        /// Why.
        message: String,
    },
    /// Others have to go for it.
    Evicts {
        /// Which pod, as namespace/name.
        pod: String,
        /// Where there will be room.
        node: String,
        /// Who has to go, as namespace/name, the most important first.
        victims: Vec<String>,
    },
}

/// A listener and the decisions that it hears, in their order. The channel has
/// no bound: whoever asks for decisions has to take them.
pub fn decisions() -> (Box<dyn Listener>, mpsc::UnboundedReceiver<Decision>) {
    let (sender, heard) = mpsc::unbounded_channel();
    let (placements, placed) = Placements::new();
    (Box::new(Ear { placements, placed, sender, told: BTreeMap::new() }), heard)
}

struct Ear {
    placements: Placements,
    placed: mpsc::UnboundedReceiver<Placement>,
    sender: mpsc::UnboundedSender<Decision>,
    /// What has been told about pods that wait: retries tell nothing new.
    told: BTreeMap<String, String>,
}

impl Listener for Ear {
    fn observer(&mut self) -> Option<&mut dyn Observer> {
        self.placements.observer()
    }

    fn attempted(&mut self, attempt: &Attempt, cluster: &Cluster) {
        self.placements.attempted(attempt, cluster);
        while let Ok(placement) = self.placed.try_recv() {
            self.told.remove(&placement.pod);
            // Nobody may be interested any more.
            let _ = self.sender.send(Decision::Placed(placement));
        }
        if let Some(preemption) = &attempt.preemption {
            let _ = self.sender.send(Decision::Evicts {
                pod: attempt.pod.key.to_string(),
                node: preemption.node.to_string(),
                victims: preemption.victims.iter().map(|pod| pod.key.to_string()).collect(),
            });
        }
    }

    fn failed(&mut self, pod: &PodInfo, _: FailureReason, message: &str) {
        let key = pod.key.to_string();
        if self.told.get(&key).map(String::as_str) != Some(message) {
            self.told.insert(key.clone(), message.to_owned());
            let _ = self.sender.send(Decision::Waits { pod: key, message: message.to_owned() });
        }
    }
}
