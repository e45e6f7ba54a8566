//! What can happen, and how often.

use std::time::Duration;

use steersman_api::key::ObjectKey;
use steersman_core::Event;
use steersman_framework::world::WriteError;
use steersman_testing::decoded;

use crate::api::{Stream, Watch, has_ended, is_terminating, kind_name, node_of, text};
use crate::desk::{Asked, Running, Step};
use crate::objects::{
    NAMESPACES, NODES, budget, change_node, change_pod, claimant, namespace, node, service,
    urgent_pod,
};
use crate::promises::Patch;
use crate::run::Run;
use crate::told::{State, is_ours};

type Action = fn(&mut Run) -> Result<(), String>;

/// How often, in some unit, and what.
const ACTIONS: &[(usize, Action)] = &[
    (110, Run::create_pod),
    (40, Run::create_urgent_pod),
    (70, Run::create_claimant),
    (60, Run::change_pod),
    (35, Run::delete_pod),
    (25, Run::terminate_pod),
    (90, Run::end_pod),
    (30, Run::bind_by_others),
    (8, Run::recreate_pod),
    (40, Run::nominate_by_others),
    (110, Run::change_node),
    (30, Run::add_node),
    (10, Run::remove_node),
    (15, Run::change_namespace),
    (10, Run::change_service),
    (15, Run::change_budget),
    (80, Run::change_claims),
    (50, Run::change_volumes),
    (12, Run::change_storage),
    (40, Run::control_ephemeral),
    (120, Run::control_volumes),
    (320, Run::deliver),
    (200, Run::schedule),
    (150, Run::run_cycle),
    (140, Run::report),
    (100, Run::run_eviction),
    (100, Run::report_eviction),
    (40, Run::remove_terminating),
    (40, Run::decide_permit),
    (70, Run::pass_time),
    (20, Run::repeat),
    (20, Run::tell_stale),
    (4, Run::resync),
];

/// More pods than this are not kept alive.
const MANY_PODS: usize = 45;

impl Run {
    /// Does something.
    pub(crate) fn act(&mut self) -> Result<(), String> {
        let total = ACTIONS.iter().map(|(weight, _)| weight).sum();
        let mut drawn = self.rng.below(total);
        for (weight, action) in ACTIONS {
            if drawn < *weight {
                return action(self);
            }
            drawn -= weight;
        }
        Ok(())
    }

    fn any_pod(&mut self) -> Option<String> {
        self.rng.pick_any(self.api.pods.keys().cloned())
    }

    fn create_pod(&mut self) -> Result<(), String> {
        if self.api.pods.len() >= MANY_PODS {
            return self.delete_pod();
        }
        let template = self.rng.pick(&self.templates).clone();
        for _ in 0..=self.rng.below(3) {
            self.api.create_pod(template.clone(), None);
        }
        Ok(())
    }

    /// A pod that outranks most others and may go anywhere.
    fn create_urgent_pod(&mut self) -> Result<(), String> {
        if self.api.pods.len() < MANY_PODS {
            let pod = urgent_pod(&mut self.rng);
            self.api.create_pod(pod, None);
        }
        Ok(())
    }

    fn create_claimant(&mut self) -> Result<(), String> {
        if self.api.pods.len() < MANY_PODS {
            let pod = claimant(&mut self.rng);
            for _ in 0..=self.rng.below(2) {
                self.api.create_pod(pod.clone(), None);
            }
        }
        Ok(())
    }

    fn change_pod(&mut self) -> Result<(), String> {
        if let Some(uid) = self.any_pod() {
            let rng = &mut self.rng;
            self.api.change_pod(&uid, |pod| change_pod(rng, pod));
        }
        Ok(())
    }

    fn delete_pod(&mut self) -> Result<(), String> {
        if let Some(uid) = self.any_pod() {
            self.api.delete_pod(&uid);
        }
        Ok(())
    }

    fn terminate_pod(&mut self) -> Result<(), String> {
        if let Some(uid) = self.any_pod() {
            self.api.change_pod(&uid, |pod| {
                pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            });
        }
        Ok(())
    }

    fn end_pod(&mut self) -> Result<(), String> {
        if self.crowded && self.rng.chance(90) {
            return Ok(());
        }
        let bound = self.api.pods.iter().filter(|(_, pod)| node_of(pod).is_some());
        let mut uid = self.rng.pick_any(bound.map(|(uid, _)| uid.clone()));
        if self.rng.chance(5) {
            uid = self.any_pod();
        }
        let Some(uid) = uid else { return Ok(()) };
        let phase = *self.rng.pick(&["Succeeded", "Failed"]);
        if self.api.pods.get(&uid).is_some_and(has_ended) {
            self.api.delete_pod(&uid);
        } else {
            self.api.change_pod(&uid, |pod| pod["status"]["phase"] = phase.into());
        }
        Ok(())
    }

    fn bind_by_others(&mut self) -> Result<(), String> {
        if self.crowded && self.rng.chance(80) {
            return Ok(());
        }
        let gated = |uid: &str| {
            let gates = self.api.pods[uid]["spec"]["schedulingGates"].as_array();
            gates.is_some_and(|gates| !gates.is_empty())
        };
        let free = self.api.pods.keys().filter(|u| self.api.may_bind(u).is_ok() && !gated(u));
        let Some(uid) = self.rng.pick_any(free.cloned()) else { return Ok(()) };
        // The node need not be there.
        let node = *self.rng.pick(&NODES);
        self.say(|| format!("others bind {uid} to {node}"));
        self.api.bind(&uid, node);
        Ok(())
    }

    /// Another pod takes a pod's name; its deletion may go unseen.
    fn recreate_pod(&mut self) -> Result<(), String> {
        let Some(uid) = self.any_pod() else { return Ok(()) };
        let unseen = self.rng.chance(50) && self.told.pods.contains_key(&uid);
        let old = if unseen { self.api.delete_pod_unseen(&uid) } else { self.api.delete_pod(&uid) };
        let Some(old) = old else { return Ok(()) };
        let mut pod = self.rng.pick(&self.templates).clone();
        if unseen {
            // Pods of foreign schedulers are not looked at until they are bound.
            pod["spec"]["schedulerName"] = "default-scheduler".into();
        }
        pod["metadata"]["namespace"] = old["metadata"]["namespace"].clone();
        self.say(|| format!("{uid} is replaced, unseen: {unseen}"));
        self.api.create_pod(pod, Some(text(&old, "/metadata/name")));
        Ok(())
    }

    fn nominate_by_others(&mut self) -> Result<(), String> {
        let free = self.api.pods.iter().filter(|(_, pod)| node_of(pod).is_none() && is_ours(pod));
        let Some(uid) = self.rng.pick_any(free.map(|(uid, _)| uid.clone())) else { return Ok(()) };
        let node = *self.rng.pick(&NODES);
        let clear = self.rng.chance(40);
        self.say(|| format!("others nominate {uid} to {node}, or nowhere: {clear}"));
        self.api.change_pod(&uid, |pod| {
            if clear {
                pod["status"].as_object_mut().expect("a status").remove("nominatedNodeName");
            } else {
                pod["status"]["nominatedNodeName"] = node.into();
            }
        });
        Ok(())
    }

    fn change_node(&mut self) -> Result<(), String> {
        let Some(mut node) = self.rng.pick_any(self.api.nodes.values().cloned()) else {
            return Ok(());
        };
        change_node(&mut self.rng, &mut node);
        self.api.put_node(node);
        Ok(())
    }

    fn add_node(&mut self) -> Result<(), String> {
        let name = *self.rng.pick(&NODES);
        if !self.api.nodes.contains_key(name) {
            let node = node(&mut self.rng, name);
            self.api.put_node(node);
        }
        Ok(())
    }

    /// Removes a node. Its pods remain, for now.
    fn remove_node(&mut self) -> Result<(), String> {
        if let Some(name) = self.rng.pick_any(self.api.nodes.keys().cloned()) {
            self.api.delete_node(&name);
        }
        Ok(())
    }

    fn change_namespace(&mut self) -> Result<(), String> {
        let name = *self.rng.pick(&NAMESPACES);
        if self.rng.chance(15) {
            self.api.delete_other("Namespace", "", name);
        } else {
            let namespace = namespace(&mut self.rng, name);
            self.api.put_other("Namespace", namespace);
        }
        Ok(())
    }

    fn change_service(&mut self) -> Result<(), String> {
        let namespace = *self.rng.pick(&NAMESPACES);
        if self.rng.chance(40) {
            self.api.delete_other("Service", namespace, "service");
        } else {
            let service = service(&mut self.rng, namespace);
            self.api.put_other("Service", service);
        }
        Ok(())
    }

    fn change_budget(&mut self) -> Result<(), String> {
        let namespace = *self.rng.pick(&NAMESPACES);
        let kind = kind_name("PodDisruptionBudget");
        if self.rng.chance(40) {
            self.api.delete_other(kind, namespace, "budget");
        } else {
            let budget = budget(&mut self.rng, namespace);
            self.api.put_other(kind, budget);
        }
        Ok(())
    }

    fn change_claims(&mut self) -> Result<(), String> {
        self.api.change_claims(&mut self.rng);
        Ok(())
    }

    fn change_volumes(&mut self) -> Result<(), String> {
        self.api.change_volumes(&mut self.rng);
        Ok(())
    }

    fn change_storage(&mut self) -> Result<(), String> {
        self.api.change_storage(&mut self.rng);
        Ok(())
    }

    pub(crate) fn control_ephemeral(&mut self) -> Result<(), String> {
        self.api.control_ephemeral(&mut self.rng);
        Ok(())
    }

    pub(crate) fn control_volumes(&mut self) -> Result<(), String> {
        self.api.control_volumes(&mut self.rng);
        Ok(())
    }

    /// Evictions are tried: they may fail, after some of them went through.
    pub(crate) fn run_eviction(&mut self) -> Result<(), String> {
        if self.evictions.is_empty() {
            return Ok(());
        }
        let drawn = self.rng.below(self.evictions.len());
        let eviction = self.evictions.swap_remove(drawn);
        let n_victims = eviction.victims.len();
        let fails = self.rng.chance(15).then(|| self.rng.below(n_victims));
        for victim in &eviction.victims[..fails.unwrap_or(n_victims)] {
            let gracefully = self.rng.chance(60);
            self.api.evict(&victim.uid.to_string(), gracefully);
        }
        let result = if fails.is_some() { Err("timed out".to_owned()) } else { Ok(()) };
        self.say(|| format!("evicted for {}: {result:?}", eviction.preemptor.uid));
        self.eviction_reports.push((eviction, result));
        Ok(())
    }

    /// The end of evictions is reported, at once or late.
    pub(crate) fn report_eviction(&mut self) -> Result<(), String> {
        if self.eviction_reports.is_empty() {
            return Ok(());
        }
        let drawn = self.rng.below(self.eviction_reports.len());
        let (eviction, result) = self.eviction_reports.swap_remove(drawn);
        self.say(|| format!("reported the evictions for {}", eviction.preemptor.uid));
        self.handle(eviction.finished(result))
    }

    /// A pod that was to end has ended.
    pub(crate) fn remove_terminating(&mut self) -> Result<(), String> {
        let ending = self.api.pods.iter().filter(|(_, pod)| is_terminating(pod));
        if let Some(uid) = self.rng.pick_any(ending.map(|(uid, _)| uid.clone())) {
            self.api.delete_pod(&uid);
        }
        Ok(())
    }

    /// The scheduler hears some of what has happened.
    fn deliver(&mut self) -> Result<(), String> {
        let stream = *self.rng.pick(&[Stream::Pods, Stream::Pods, Stream::Nodes, Stream::Others]);
        for _ in 0..=self.rng.below(6) {
            let Some(event) = self.api.next(stream) else { break };
            self.tell(&event)?;
        }
        Ok(())
    }

    /// Hands an event of a watch to the scheduler.
    pub(crate) fn tell(&mut self, event: &Watch) -> Result<(), String> {
        self.say(|| match event {
            Watch::Upsert(object) => format!("told {object}"),
            gone => format!("told {gone:?}"),
        });
        self.told.hear(event);
        if let Watch::Upsert(pod) = event {
            // A pod that only waits needs its node no more.
            let uid = text(pod, "/metadata/uid");
            if is_terminating(pod) && node_of(pod).is_none() && self.waiting.remove(uid).is_some() {
                self.told.pods.remove(uid);
            }
        }
        let event = match event {
            Watch::Upsert(object) => {
                match text(object, "/kind") {
                    "Pod" | "Node" => {}
                    other => self.know(kind_name(other), object),
                }
                Event::Upsert(decoded(object.clone()))
            }
            Watch::PodGone(uid) => Event::PodDeleted(uid.as_str().into()),
            Watch::NodeGone(name) => Event::NodeDeleted(name.as_str().into()),
            Watch::ObjectGone(resource, key) => {
                let namespace = key.namespace.to_string();
                self.others.remove(&(*resource, namespace, key.name.to_string()));
                Event::ObjectDeleted { resource, key: key.clone() }
            }
        };
        self.handle(event)
    }

    fn know(&mut self, kind: &'static str, object: &serde_json::Value) {
        let field = |pointer| text(object, pointer).to_owned();
        self.others.insert((kind, field("/metadata/namespace"), field("/metadata/name")));
    }

    fn schedule(&mut self) -> Result<(), String> {
        for _ in 0..=self.rng.below(4) {
            if !self.schedule_one()? {
                break;
            }
        }
        Ok(())
    }

    /// A binding cycle runs until it has to wait or is interrupted.
    pub(crate) fn run_cycle(&mut self) -> Result<(), String> {
        if self.cycles.is_empty() {
            return Ok(());
        }
        let drawn = self.rng.below(self.cycles.len());
        let mut cycle = self.cycles.swap_remove(drawn);
        let patience_ends = self.rng.chance(self.patience);
        cycle.show(&self.told, patience_ends);
        loop {
            match cycle.run() {
                Step::Ended(report) => {
                    self.say(|| format!("the binding of {} ended: {report:?}", cycle.uid));
                    self.reports.push(report);
                    return Ok(());
                }
                Step::Asks(asked) => {
                    let answer = self.answer(&cycle, &asked)?;
                    self.say(|| format!("{} asked for {asked:?}: {answer:?}", cycle.uid));
                    cycle.answer(answer);
                    if self.rng.chance(30) {
                        break;
                    }
                }
                Step::Waits => break,
            }
        }
        self.cycles.push(cycle);
        Ok(())
    }

    /// What a write comes to: it may fail, and may fail only seemingly.
    fn answer(&mut self, cycle: &Running, asked: &Asked) -> Result<Result<(), WriteError>, String> {
        let fails = self.rng.chance(8);
        let seems_to_fail = fails || self.rng.chance(6);
        let answer = match asked {
            Asked::Bind { uid, .. } => self.api.may_bind(&uid.to_string()),
            Asked::Patch { .. } if fails => Ok(()),
            Asked::Patch { resource, key, patch } => {
                let patch = Patch { pod: &cycle.uid, resource, key, patch };
                let written = self.promises.patch(&mut self.api, &patch)?;
                let tally = &mut self.outcome.tally;
                tally.written += u64::from(written.is_ok());
                tally.conflicts += u64::from(matches!(written, Err(WriteError::Conflict(_))));
                written
            }
        };
        if let Asked::Bind { uid, node } = asked
            && answer.is_ok()
            && !fails
        {
            let since = self.claims_at_start[&cycle.serial];
            self.api.check_claims_bound(&uid.to_string(), since)?;
            self.api.bind(&uid.to_string(), node);
            self.bound_by.insert(uid.to_string(), cycle.serial);
        }
        Ok(answer.and_then(|()| match seems_to_fail {
            true => Err(WriteError::Other("timed out".to_owned())),
            false => Ok(()),
        }))
    }

    /// A binding cycle's end is reported, at once or late.
    pub(crate) fn report(&mut self) -> Result<(), String> {
        if self.reports.is_empty() {
            return Ok(());
        }
        let drawn = self.rng.below(self.reports.len());
        let report = self.reports.swap_remove(drawn);
        if report.is_bound() {
            self.told.accept(&report.pod().to_string(), self.now);
        }
        self.say(|| format!("reported {report:?}"));
        self.handle(Event::BindingFinished(report))
    }

    fn decide_permit(&mut self) -> Result<(), String> {
        let Some((uid, plugins)) = self.rng.pick_any(self.waiting.clone()) else { return Ok(()) };
        let plugin = *self.rng.pick(&plugins);
        let pod = uid.as_str().into();
        if self.rng.chance(70) {
            self.say(|| format!("{uid} is let go"));
            return self.handle(Event::PermitAllowed { pod, plugin });
        }
        self.say(|| format!("{uid} is held no more"));
        self.handle(Event::PermitRejected { pod, plugin, reason: "not today".into() })
    }

    fn pass_time(&mut self) -> Result<(), String> {
        let some = |run: &mut Self, n| u64::try_from(1 + run.rng.below(n)).expect("small");
        let duration = match self.rng.below(10) {
            0..=3 => Duration::from_millis(some(self, 500)),
            4..=7 => Duration::from_secs(some(self, 15)),
            8 => {
                let next = self.scheduler.next_timer().unwrap_or(self.now);
                next.since(self.now)
            }
            _ => Duration::from_secs(60 * some(self, 6)),
        };
        self.advance(duration)
    }

    /// Time passes. Nothing that could run may be left to the flush.
    pub(crate) fn advance(&mut self, duration: Duration) -> Result<(), String> {
        if self.checks {
            self.check_waking()?;
        }
        self.touched = true;
        self.now = self.now.after(duration);
        let now = self.now;
        self.say(|| format!("it is {:?}", now.since_start()));
        if let Some(ttl) = self.ttl {
            self.told.expire(ttl, now);
        }
        let effects = self.scheduler.advance(now);
        self.carry_out(effects)
    }

    /// An event comes twice.
    fn repeat(&mut self) -> Result<(), String> {
        if let Some(uid) = self.any_pod() {
            self.api.repeat_pod(&uid);
        }
        if let Some(node) = self.rng.pick_any(self.api.nodes.values().cloned()) {
            self.api.put_node(node);
        }
        Ok(())
    }

    /// An older version of a pod comes after the newer one; the newer one comes
    /// again in time.
    fn tell_stale(&mut self) -> Result<(), String> {
        let old = self.told.pods.iter().filter(|(_, told)| told.state != State::Pending);
        let old = old.filter_map(|(uid, told)| Some((uid.clone(), told.previous.clone()?)));
        let Some((uid, pod)) = self.rng.pick_any(old) else { return Ok(()) };
        // A pod does not come back from being deleted.
        if is_terminating(&self.told.pods[&uid].latest) || !self.api.pods.contains_key(&uid) {
            return Ok(());
        }
        self.say(|| format!("stale news of {uid}"));
        self.tell(&Watch::Upsert(pod))?;
        self.api.repeat_pod(&uid);
        Ok(())
    }

    /// The watches broke off: everything is listed again.
    pub(crate) fn resync(&mut self) -> Result<(), String> {
        self.say(|| "resync".to_owned());
        self.api.break_watches();
        let mut news = Vec::new();
        for uid in self.told.pods.keys().filter(|uid| !self.api.pods.contains_key(*uid)) {
            news.push(Watch::PodGone(uid.clone()));
        }
        for name in self.told.nodes.keys().filter(|name| !self.api.nodes.contains_key(*name)) {
            news.push(Watch::NodeGone(name.clone()));
        }
        for other in self.others.iter().filter(|key| !self.api.others.contains_key(*key)) {
            let (kind, namespace, name) = other;
            let key = ObjectKey::namespaced(namespace.as_str(), name);
            news.push(Watch::ObjectGone(kind, key));
        }
        let others = self.api.others.values().chain(self.api.nodes.values());
        news.extend(others.chain(self.api.pods.values()).cloned().map(Watch::Upsert));
        // Nothing says that objects come in any order.
        while !news.is_empty() {
            let drawn = self.rng.below(news.len());
            let event = news.swap_remove(drawn);
            self.tell(&event)?;
        }
        Ok(())
    }
}
