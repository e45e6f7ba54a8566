//! What the scheduler was told, kept and added up independently of it.

use std::collections::BTreeMap;

use serde_json::Value;
use steersman_api::resources::ResourceKind;
use steersman_api::time::Time;
use steersman_core::{Place, Scheduler};
use steersman_framework::verdict::Preemption;

use crate::api::{Watch, has_ended, is_terminating, kind_name, node_of, text};
use crate::objects::GPU;

/// Where a pod stands as far as the scheduler can know.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    Pending,
    /// A node was chosen, and the pod is as it was then.
    Assumed {
        node: String,
        pod: Value,
    },
    /// The same, and the binding was reported to have gone through.
    Accepted {
        node: String,
        pod: Value,
        at: Time,
    },
    Bound(String),
}

#[derive(Clone, Debug)]
pub(crate) struct ToldPod {
    pub(crate) latest: Value,
    pub(crate) previous: Option<Value>,
    pub(crate) state: State,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) pods: BTreeMap<String, ToldPod>,
    pub(crate) nodes: BTreeMap<String, Value>,
    /// By kind, namespace and name.
    pub(crate) others: BTreeMap<(String, String, String), Value>,
}

/// Requests or allocatable amounts, by resource.
type Amounts = BTreeMap<String, i64>;

pub(crate) fn is_ours(pod: &Value) -> bool {
    matches!(text(pod, "/spec/schedulerName"), "default-scheduler" | "second")
}

impl Told {
    pub(crate) fn hear(&mut self, event: &Watch) {
        match event {
            Watch::Upsert(object) if object["kind"] == "Pod" => self.hear_pod(object),
            Watch::Upsert(object) if object["kind"] == "Node" => {
                self.nodes.insert(text(object, "/metadata/name").to_owned(), object.clone());
            }
            Watch::PodGone(uid) => drop(self.pods.remove(uid)),
            Watch::NodeGone(name) => drop(self.nodes.remove(name)),
            Watch::Upsert(object) => {
                let field = |pointer| text(object, pointer).to_owned();
                let kind = kind_name(text(object, "/kind")).to_owned();
                let key = (kind, field("/metadata/namespace"), field("/metadata/name"));
                self.others.insert(key, object.clone());
            }
            Watch::ObjectGone(kind, key) => {
                let key = ((*kind).to_owned(), key.namespace.to_string(), key.name.to_string());
                self.others.remove(&key);
            }
        }
    }

    fn hear_pod(&mut self, pod: &Value) {
        let uid = text(pod, "/metadata/uid");
        let named = |p: &ToldPod| {
            ["namespace", "name"].iter().all(|f| p.latest["metadata"][f] == pod["metadata"][f])
        };
        self.pods.retain(|other, p| other == uid || !named(p));
        if has_ended(pod) {
            self.pods.remove(uid);
            return;
        }
        let known = self.pods.get(uid).cloned();
        let state = match (node_of(pod), known.as_ref().map(|k| &k.state)) {
            (Some(node), _) => State::Bound(node.to_owned()),
            (None, Some(State::Bound(_))) => return,
            (None, _) if !is_ours(pod) => return,
            (None, _) if is_terminating(pod) && !self.is_binding(uid) => {
                self.pods.remove(uid);
                return;
            }
            (None, Some(state)) => state.clone(),
            (None, None) => State::Pending,
        };
        let previous = known.map(|k| k.latest);
        self.pods.insert(uid.to_owned(), ToldPod { latest: pod.clone(), previous, state });
    }

    fn is_binding(&self, uid: &str) -> bool {
        let state = self.pods.get(uid).map(|p| &p.state);
        matches!(state, Some(State::Assumed { .. } | State::Accepted { .. }))
    }

    /// The scheduler chose a node. Complains when it had no business to.
    pub(crate) fn assume(&mut self, uid: &str, node: &str) -> Result<(), String> {
        let Some(told) = self.pods.get(uid) else {
            return Err(format!("{uid} was scheduled and is not known"));
        };
        if told.state != State::Pending {
            return Err(format!("{uid} was scheduled and is {:?}", told.state));
        }
        if is_terminating(&told.latest) {
            return Err(format!("{uid} was scheduled while being deleted"));
        }
        if told.latest["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty())
        {
            return Err(format!("{uid} was scheduled in spite of its gates"));
        }
        let pod = told.latest.clone();
        self.check_room(&pod, node, &[])?;
        self.check_claims(uid, &pod, node)?;
        let state = State::Assumed { node: node.to_owned(), pod };
        self.pods.get_mut(uid).expect("looked up above").state = state;
        Ok(())
    }

    fn check_room(&self, pod: &Value, node: &str, gone: &[String]) -> Result<(), String> {
        let Some(object) = self.nodes.get(node) else {
            return Err(format!("node {node} is not there"));
        };
        let (used, n_pods, ports) = self.usage(node, gone);
        let allocatable = amounts(&object["status"]["allocatable"]);
        let allowed = allocatable.get("pods").copied().unwrap_or(0);
        if n_pods >= allowed {
            return Err(format!("node {node} has {n_pods} pods, allowed: {allowed}"));
        }
        for (resource, wanted) in requests(pod) {
            let has = allocatable.get(&resource).copied().unwrap_or(0);
            let left = has - used.get(&resource).copied().unwrap_or(0);
            if wanted > left {
                return Err(format!("node {node} has {left} of {resource} left for {wanted}"));
            }
        }
        match host_port(pod) {
            Some(port) if ports.contains(&port) => Err(format!("port {port} of {node} is taken")),
            _ => Ok(()),
        }
    }

    /// Only pods of lower priority on that node give way, and without them the
    /// pod has room.
    pub(crate) fn check_preemption(
        &self,
        preemptor: &str,
        preemption: &Preemption,
    ) -> Result<(), String> {
        let Some(told) = self.pods.get(preemptor) else {
            return Err(format!("{preemptor} has pods evicted and is not known"));
        };
        let pod = &told.latest;
        if told.state != State::Pending || pod["spec"]["preemptionPolicy"] == "Never" {
            return Err(format!("{preemptor} is {:?} and has pods evicted: {pod}", told.state));
        }
        let node = &*preemption.node;
        let priority = |pod: &Value| pod["spec"]["priority"].as_i64();
        for victim in &preemption.victims {
            let uid = victim.uid.to_string();
            let placed = self.pods.get(&uid).and_then(ToldPod::placed);
            let Some((_, victim)) = placed.filter(|(on, _)| *on == node) else {
                return Err(format!("{uid} is to leave {node} and is not there"));
            };
            if priority(victim) >= priority(pod) {
                return Err(format!("{preemptor} has {victim} evicted"));
            }
        }
        let gone: Vec<String> = preemption.victims.iter().map(|v| v.uid.to_string()).collect();
        self.check_room(pod, node, &gone)
    }

    /// What a scheduler would be told that starts now, with the placed pods but
    /// for those `gone`.
    pub(crate) fn as_list(&self, gone: &[String]) -> Vec<Value> {
        let placed = self.pods.iter().filter(|(uid, _)| !gone.contains(uid));
        let placed = placed.filter_map(|(_, told)| {
            let (node, pod) = told.placed()?;
            let mut pod = pod.clone();
            pod["spec"]["nodeName"] = node.into();
            Some(pod)
        });
        self.others.values().chain(self.nodes.values()).cloned().chain(placed).collect()
    }

    /// What the pods on a node request but for those `gone`, how many they are,
    /// and their ports.
    fn usage(&self, node: &str, gone: &[String]) -> (Amounts, i64, Vec<i64>) {
        let (mut used, mut n_pods, mut ports) = (Amounts::new(), 0, Vec::new());
        let there = self.pods.iter().filter(|(uid, _)| !gone.contains(uid));
        for (on, pod) in there.filter_map(|(_, told)| told.placed()) {
            if on == node {
                n_pods += 1;
                ports.extend(host_port(pod));
                for (resource, amount) in requests(pod) {
                    *used.entry(resource).or_default() += amount;
                }
            }
        }
        (used, n_pods, ports)
    }

    /// The pods that take room: UID, node, and the version that counts there.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        self.pods.iter().filter_map(|(uid, told)| {
            let (node, pod) = told.placed()?;
            Some((uid.as_str(), node, pod))
        })
    }

    /// The binding, or the attempt before it, failed.
    pub(crate) fn forget(&mut self, uid: &str) {
        let Some(told) = self.pods.get_mut(uid) else { return };
        if !matches!(told.state, State::Assumed { .. }) {
            return;
        }
        told.state = State::Pending;
        if is_terminating(&told.latest) {
            self.pods.remove(uid);
        }
    }

    /// The binding was reported to have gone through.
    pub(crate) fn accept(&mut self, uid: &str, at: Time) {
        let Some(told) = self.pods.get_mut(uid) else { return };
        if let State::Assumed { node, pod } = &told.state {
            told.state = State::Accepted { node: node.clone(), pod: pod.clone(), at };
        }
    }

    /// Accepted pods that the watch did not confirm in time are pending again.
    pub(crate) fn expire(&mut self, ttl: std::time::Duration, now: Time) {
        for told in self.pods.values_mut() {
            if matches!(&told.state, State::Accepted { at, .. } if at.after(ttl) <= now) {
                told.state = State::Pending;
            }
        }
        self.pods.retain(|_, told| told.state != State::Pending || !is_terminating(&told.latest));
    }

    /// Compares the scheduler's places and sums with this.
    pub(crate) fn compare(&self, scheduler: &Scheduler) -> Result<(), String> {
        let mut placed = 0;
        let mut counts = BTreeMap::new();
        for (uid, told) in &self.pods {
            let place = scheduler.place_of(&uid.as_str().into());
            let right = match (&told.state, place) {
                (State::Pending, Some(place)) => {
                    *counts.entry(format!("{place:?}")).or_insert(0) += 1;
                    place != Place::InFlight
                }
                (State::Assumed { .. }, place) => {
                    *counts.entry(format!("{:?}", Place::InFlight)).or_insert(0) += 1;
                    place == Some(Place::InFlight)
                }
                (State::Accepted { .. } | State::Bound(_), place) => place.is_none(),
                (State::Pending, None) => false,
            };
            if !right {
                return Err(format!("{uid} is {:?} and stands in {place:?}", told.state));
            }
            placed += usize::from(told.placed().is_some());
        }
        let queue = scheduler.queue_counts();
        let queued = [
            ("Active", queue.active),
            ("Backoff", queue.backoff),
            ("Unschedulable", queue.unschedulable),
            ("Gated", queue.gated),
            ("InFlight", queue.in_flight),
        ];
        for (place, count) in queued {
            let told = counts.get(place).copied().unwrap_or(0);
            if told != count {
                return Err(format!("{count} pods in {place}, and {told} of those told of"));
            }
        }
        if scheduler.placed_count() != placed {
            return Err(format!("{} pods take room, {placed} should", scheduler.placed_count()));
        }
        self.compare_nodes(scheduler)
    }

    fn compare_nodes(&self, scheduler: &Scheduler) -> Result<(), String> {
        let nodes = scheduler.cluster().nodes();
        if nodes.len() != self.nodes.len() {
            return Err(format!("{} nodes, and {} told of", nodes.len(), self.nodes.len()));
        }
        for name in self.nodes.keys() {
            let Some(info) = nodes.by_name(&name.as_str().into()) else {
                return Err(format!("node {name} is missing"));
            };
            let (used, n_pods, _) = self.usage(name, &[]);
            let found = info.requested();
            let amount = |resource: &str| found.get(&ResourceKind::of(resource));
            for resource in ["cpu", "memory", GPU] {
                let expected = used.get(resource).copied().unwrap_or(0);
                if amount(resource) != expected {
                    let found = amount(resource);
                    return Err(format!("node {name} counts {found} {resource}, not {expected}"));
                }
            }
            if i64::try_from(info.pods().len()) != Ok(n_pods) {
                return Err(format!("node {name} has {} pods, not {n_pods}", info.pods().len()));
            }
        }
        Ok(())
    }
}

impl ToldPod {
    /// The node that it takes room on, and the version that counts there.
    fn placed(&self) -> Option<(&str, &Value)> {
        match &self.state {
            State::Pending => None,
            State::Assumed { node, pod } | State::Accepted { node, pod, .. } => Some((node, pod)),
            State::Bound(node) => Some((node, &self.latest)),
        }
    }
}

fn requests(pod: &Value) -> Amounts {
    amounts(&pod["spec"]["containers"][0]["resources"]["requests"])
}

/// Amounts as `objects.rs` writes them: milli-cores, mebibytes, whole numbers.
fn amounts(list: &Value) -> Amounts {
    let entries = list.as_object().into_iter().flatten();
    let read = |(resource, amount): (&String, &Value)| {
        let text = amount.as_str().expect("a quantity");
        let (digits, factor) = match text.strip_suffix("Mi") {
            Some(digits) => (digits, 1 << 20),
            None => (text.strip_suffix('m').unwrap_or(text), 1),
        };
        (resource.clone(), digits.parse::<i64>().expect("a number") * factor)
    };
    entries.map(read).collect()
}

fn host_port(pod: &Value) -> Option<i64> {
    pod["spec"]["containers"][0]["ports"][0]["hostPort"].as_i64()
}
