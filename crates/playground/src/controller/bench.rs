//! A cluster without a server: plans are carried out on JSON values, in virtual
//! time, until nobody has anything to do. Pods are bound as soon as they are
//! there.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Controller, wake};
use crate::cluster::{Key, Kind, News, Watched, World};
use crate::engine::Task;
use crate::engine::plan::{Action, Call, Part, Settings, View, to_value};
use crate::node::shape;
use crate::workload::later;

/// Plans after which a cluster should have settled.
const PATIENCE: usize = 20_000;

pub(crate) struct Bench {
    pub(crate) world: World,
    pub(crate) now: Timestamp,
    pub(crate) settings: Settings,
    /// `Reason message`, of all events so far.
    pub(crate) events: Vec<String>,
    /// Whether pods get nodes.
    pub(crate) binds: bool,
    /// Called after every call of a plan.
    pub(crate) check: fn(&World),
    objects: BTreeMap<(Kind, Key), Value>,
    version: u64,
    due: BTreeMap<Task, Timestamp>,
    without: BTreeSet<Controller>,
    since: Timestamp,
}

impl Bench {
    /// A cluster of `n` nodes called `node-1` and so on.
    pub(crate) fn new(n_nodes: usize) -> Self {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let mut bench = Self {
            world: World::default(),
            now,
            settings: Settings { start_delay: SignedDuration::ZERO, ..Settings::default() },
            events: Vec::new(),
            binds: true,
            check: |_| {},
            objects: BTreeMap::new(),
            version: 0,
            due: BTreeMap::new(),
            without: BTreeSet::new(),
            since: now,
        };
        for node in shape::nodes(n_nodes, now) {
            bench.put(Kind::Node, to_value(&node), true);
        }
        bench.settle();
        bench
    }

    /// Leaves a controller out.
    pub(crate) fn without(mut self, controller: Controller) -> Self {
        self.without.insert(controller);
        self
    }

    /// Creates objects as if a user had, and lets the cluster settle.
    pub(crate) fn apply(&mut self, text: &str) {
        for manifest in crate::manifests::parse("test", text).unwrap() {
            let kind = kind_of(&manifest.object);
            self.put(kind, manifest.object, true);
        }
        self.settle();
    }

    /// Changes an object as if a user had, and lets the cluster settle.
    pub(crate) fn patch(&mut self, kind: Kind, name: &str, patch: Value) {
        let key = self.key(kind, name);
        self.merge(kind, &key, &patch, true);
        self.settle();
    }

    /// Deletes an object as if a user had, and lets the cluster settle.
    pub(crate) fn delete(&mut self, kind: Kind, name: &str) {
        let key = self.key(kind, name);
        self.remove(kind, &key, None);
        self.settle();
    }

    /// Lets time pass; what becomes due on the way happens then.
    pub(crate) fn pass(&mut self, seconds: i64) {
        let end = self.now + SignedDuration::from_secs(seconds);
        while let Some(next) = self.due.values().min().copied().filter(|at| *at <= end) {
            self.now = self.now.max(next);
            self.settle();
        }
        self.now = end;
        self.settle();
    }

    pub(crate) fn get<K: Watched>(&self, name: &str) -> K {
        let key = self.key(K::WHICH, name);
        let found = K::store(&self.world).get(&key);
        K::clone(found.unwrap_or_else(|| panic!("there is no {} {name}", K::WHICH.name())))
    }

    /// The objects of a kind, each in a few words.
    pub(crate) fn list<K: Watched>(&self, shown: impl Fn(&K) -> String) -> Vec<String> {
        K::store(&self.world).iter().map(|object| shown(object)).collect()
    }

    fn key(&self, kind: Kind, name: &str) -> Key {
        Key::new(if is_cluster_wide(kind) { "" } else { "default" }, name)
    }

    fn settle(&mut self) {
        for _ in 0..PATIENCE {
            let next = self.due.iter().find(|(_, at)| **at <= self.now);
            let Some(task) = next.map(|(task, _)| task.clone()) else { return };
            self.due.remove(&task);
            let view = View {
                world: &self.world,
                now: self.now,
                since: self.since,
                settings: &self.settings,
            };
            let plan = task.controller.plan(view, &task.key);
            for action in plan.actions {
                self.carry_out(action);
                (self.check)(&self.world);
            }
            if let Some(at) = plan.again_at {
                // What is due at once should have been done at once.
                let at = at.max(self.now);
                let known = self.due.entry(task).or_insert(at);
                *known = at.min(*known);
            }
        }
        panic!("the cluster does not settle; due: {:?}", self.due);
    }

    fn carry_out(&mut self, action: Action) {
        let mut made = String::new();
        match action.call {
            Call::Create { kind, object, .. } => made = self.put(kind, object, true),
            Call::Replace { kind, object, .. } => drop(self.put(kind, object, false)),
            Call::Patch { kind, key, part, patch } => {
                self.merge(kind, &key, &patch, part == Part::Main);
            }
            Call::Delete { kind, key, uid, grace } => {
                let known = self.objects.get(&(kind, key.clone()));
                if known.is_some_and(|object| object["metadata"]["uid"] == json!(uid)) {
                    self.remove(kind, &key, grace);
                }
            }
            Call::Nothing => {}
        }
        if let Some(note) = action.on_success {
            let name = if note.with_name { made.as_str() } else { "" };
            self.events.push(format!("{} {}{name}", note.reason, note.message));
        }
    }

    fn put(&mut self, kind: Kind, mut object: Value, new: bool) -> String {
        self.version += 1;
        let metadata = object["metadata"].as_object_mut().unwrap();
        if new {
            if !is_cluster_wide(kind) {
                metadata.entry("namespace").or_insert(json!("default"));
            }
            if !metadata.contains_key("name") {
                let base = metadata["generateName"].as_str().unwrap();
                let name = format!("{base}{:05}", self.version);
                metadata.insert("name".to_owned(), json!(name));
            }
            metadata.insert("uid".to_owned(), json!(format!("uid-{}", self.version)));
            metadata.insert("generation".to_owned(), json!(1));
            let created = self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            metadata.insert("creationTimestamp".to_owned(), json!(created));
        }
        let name = metadata["name"].as_str().unwrap().to_owned();
        let namespace = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
        let key = Key::new(namespace, name.clone());
        if new && kind == Kind::Pod && self.objects.contains_key(&(kind, key.clone())) {
            panic!("pod {name} is there already");
        }
        if new && kind == Kind::Pod && self.binds {
            bind(&self.world, &mut object, self.version, self.now);
        }
        self.store(kind, key, object);
        name
    }

    fn merge(&mut self, kind: Kind, key: &Key, patch: &Value, main: bool) {
        let Some(known) = self.objects.get(&(kind, key.clone())) else { return };
        let wanted = patch.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        if wanted.is_some_and(|v| json!(v) != known["metadata"]["resourceVersion"]) {
            // A conflict: whoever planned it will do so again.
            return;
        }
        let mut object = known.clone();
        apply_merge(&mut object, patch);
        if object == *known {
            return;
        }
        self.version += 1;
        if main && object["spec"] != known["spec"] {
            let generation = known["metadata"]["generation"].as_i64().unwrap_or_default();
            object["metadata"]["generation"] = json!(generation + 1);
        }
        let released = !object.pointer("/metadata/finalizers/0").is_some_and(Value::is_string);
        let over = object["metadata"]["deletionGracePeriodSeconds"] == json!(0);
        if over && released {
            self.drop_object(kind, key);
        } else {
            self.store(kind, key.clone(), object);
        }
    }

    fn remove(&mut self, kind: Kind, key: &Key, grace: Option<i64>) {
        let Some(mut object) = self.objects.get(&(kind, key.clone())).cloned() else { return };
        let phase = object["status"]["phase"].as_str().unwrap_or_default();
        let runs = kind == Kind::Pod
            && object["spec"]["nodeName"].is_string()
            && !matches!(phase, "Succeeded" | "Failed");
        let own = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
        let grace = if runs { grace.unwrap_or(own) } else { 0 };
        let finalizers = object.pointer("/metadata/finalizers/0").is_some();
        if grace == 0 && !finalizers {
            self.drop_object(kind, key);
            return;
        }
        self.version += 1;
        let end = later(self.now, grace);
        let end = end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        object["metadata"]["deletionTimestamp"] = json!(end);
        object["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        self.store(kind, key.clone(), object);
    }

    fn store(&mut self, kind: Kind, key: Key, mut object: Value) {
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(kind.name());
        self.objects.insert((kind, key), object.clone());
        self.tell(News::Observed(kind, object));
    }

    fn drop_object(&mut self, kind: Kind, key: &Key) {
        self.version += 1;
        if let Some(object) = self.objects.remove(&(kind, key.clone())) {
            self.tell(News::Deleted(kind, object));
        }
    }

    fn tell(&mut self, news: News) {
        let (seen, errors) = self.world.apply(news);
        assert!(errors.is_empty(), "{errors:?}");
        for seen in &seen {
            let (now, without) = (self.now, &self.without);
            let due = &mut self.due;
            wake(&self.world, seen, &mut |task| {
                if !without.contains(&task.controller) {
                    due.insert(task, now);
                }
            });
        }
    }
}

fn kind_of(object: &Value) -> Kind {
    let kinds = [
        Kind::Pod,
        Kind::Node,
        Kind::Deployment,
        Kind::ReplicaSet,
        Kind::DaemonSet,
        Kind::StatefulSet,
        Kind::Job,
        Kind::Budget,
        Kind::Claim,
        Kind::Volume,
        Kind::StorageClass,
    ];
    let name = object["kind"].as_str().unwrap_or_default();
    kinds.into_iter().find(|kind| kind.name() == name).unwrap()
}

fn is_cluster_wide(kind: Kind) -> bool {
    matches!(kind, Kind::Node | Kind::Volume | Kind::StorageClass)
}

/// To the node that the pod is tied to, or to any.
fn bind(world: &World, pod: &mut Value, number: u64, now: Timestamp) {
    let pinned = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                  /nodeSelectorTerms/0/matchFields/0/values/0";
    let nodes: Vec<&str> =
        world.nodes.iter().filter_map(|node| node.metadata.name.as_deref()).collect();
    let node = match pod.pointer(pinned).and_then(Value::as_str) {
        Some(node) => node.to_owned(),
        None if nodes.is_empty() => return,
        None => nodes[usize::try_from(number).unwrap() % nodes.len()].to_owned(),
    };
    if pod["spec"]["nodeName"].is_null() {
        pod["spec"]["nodeName"] = json!(node);
    }
    let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = json!({ "type": "PodScheduled", "status": "True", "lastTransitionTime": time });
    pod["status"] = json!({ "phase": "Pending", "conditions": [condition] });
}

fn apply_merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let target = target.as_object_mut().unwrap();
    for (key, value) in fields {
        if value.is_null() {
            target.remove(key);
        } else {
            apply_merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}
