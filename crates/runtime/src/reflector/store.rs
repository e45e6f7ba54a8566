//! What of one kind was seen, and in which version: turns what lists and
//! watches say into events for the core.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use steersman_api::decode::{Decoded, KindRow};
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::object::ClusterObject;
use steersman_core::Event;
use steersman_framework::extender::Wants;

use crate::counters::Counters;
use crate::status::StatusBoard;
use crate::view::View;

/// See the module documentation.
pub(super) struct Store {
    row: &'static KindRow,
    known: BTreeMap<ObjectKey, Known>,
    /// Counts lists, to tell what the latest one did not show.
    list: u64,
    counters: Arc<Counters>,
    board: Arc<StatusBoard>,
    view: Arc<View>,
    wants: Wants,
}

/// What is known of one object.
struct Known {
    uid: Arc<str>,
    version: Box<str>,
    /// The latest list that showed it.
    list: u64,
    /// Whether the core knows it: some version of it could be read.
    told: bool,
    /// Of a pod: whether it had a node.
    has_node: bool,
}

/// What tells one version of an object from others.
struct Identity {
    key: ObjectKey,
    uid: Arc<str>,
    version: Box<str>,
}

impl Store {
    pub(super) fn new(
        row: &'static KindRow,
        counters: Arc<Counters>,
        board: Arc<StatusBoard>,
        view: Arc<View>,
        wants: Wants,
    ) -> Self {
        Self { row, known: BTreeMap::new(), list: 0, counters, board, view, wants }
    }

    /// A complete list begins.
    pub(super) fn begin_list(&mut self) {
        self.list += 1;
    }

    /// The list is complete: what it did not show is gone.
    pub(super) fn end_list(&mut self, events: &mut Vec<Event>) {
        let list = self.list;
        let gone: Vec<ObjectKey> = self
            .known
            .iter()
            .filter(|(_, known)| known.list != list)
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            self.remove(&key, events);
        }
        self.counters.lists.up();
    }

    /// How many objects are known.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// An object as it is now. A version that cannot be read is logged and
    /// counted once, and the version before it stays in force.
    pub(super) fn upsert(&mut self, json: &Value, events: &mut Vec<Event>) {
        let Some(Identity { key, uid, version }) = self.identify(json) else { return };
        let list = self.list;
        match self.known.get_mut(&key) {
            Some(known) if known.uid == uid && *known.version == *version => {
                known.list = list;
                return;
            }
            // Another object of the same name: the end of the first was missed.
            Some(known) if known.uid != uid => self.remove(&key, events),
            // Pods never lose their node, except in an API server that was set
            // back to an earlier state. Then it is as if it were another pod.
            Some(known) if known.has_node && !has_node(json) => self.remove(&key, events),
            _ => {}
        }
        let read = self.read(json, &key);
        if let Some(object) = &read {
            self.view.upsert(object);
            if let ClusterObject::Pod(pod) = object {
                self.board.saw(pod, json);
            }
        }
        let told = read.is_some() || self.known.get(&key).is_some_and(|known| known.told);
        let has_node = has_node(json);
        self.known.insert(key, Known { uid, version, list, told, has_node });
        events.extend(read.map(Event::Upsert));
    }

    /// An object is gone.
    pub(super) fn delete(&mut self, json: &Value, events: &mut Vec<Event>) {
        if let Some(Identity { key, .. }) = self.identify(json) {
            self.remove(&key, events);
        }
    }

    fn remove(&mut self, key: &ObjectKey, events: &mut Vec<Event>) {
        let Some(known) = self.known.remove(key) else { return };
        if !known.told {
            return;
        }
        events.push(match self.row.kind {
            "Pod" => {
                let uid = PodUid(known.uid);
                self.board.forget(&uid);
                self.view.pod_gone(&uid);
                Event::PodDeleted(uid)
            }
            "Node" => {
                let name = Name::new(&key.name);
                self.view.node_gone(&name);
                Event::NodeDeleted(name)
            }
            _ => {
                let resource = self.row.resource;
                self.view.object_gone(resource, key);
                Event::ObjectDeleted { resource, key: key.clone() }
            }
        });
    }

    /// What can be made of an object. Where a part cannot be read, the rest of
    /// it still counts: a pod on a node takes room there, and a node has room.
    /// Only of a pod without a node nobody could say where it may go.
    fn read(&self, json: &Value, key: &ObjectKey) -> Option<ClusterObject> {
        let kind = self.row.kind;
        let problem = match self.row.decode(json).map(|read| self.keep(read, json)) {
            Err(problem) => problem,
            Ok(Decoded { object, problems }) => {
                let Some(problem) = problems.first() else { return Some(object) };
                if !matches!(&object, ClusterObject::Pod(pod) if pod.node_name.is_none()) {
                    let n = problems.len();
                    tracing::warn!(kind, object = %key, n, %problem, "a part cannot be read");
                    return Some(object);
                }
                problem.clone()
            }
        };
        self.counters.bad_objects.up();
        tracing::error!(kind, object = %key, %problem, "cannot be read and is left out");
        None
    }

    /// Keeps of the whole object what extenders want.
    fn keep(&self, read: Decoded, json: &Value) -> Decoded {
        if self.wants == Wants::default() {
            return read;
        }
        match &read.object {
            ClusterObject::Pod(pod) if pod.node_name.is_none() => read.with_whole(json),
            ClusterObject::Pod(_) if self.wants.placed_pods => read.with_whole(json),
            ClusterObject::Pod(_) => read.with_annotations(json),
            ClusterObject::Node(_) if self.wants.nodes => read.with_whole(json),
            _ => read,
        }
    }

    /// `None` for what has not even a name; it is logged and counted.
    fn identify(&self, json: &Value) -> Option<Identity> {
        let meta = &json["metadata"];
        let text = |field: &str| meta[field].as_str().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        if name.is_empty() || (self.row.namespaced && namespace.is_empty()) {
            self.counters.bad_objects.up();
            tracing::error!(kind = self.row.kind, "an object without a name is left out");
            return None;
        }
        let key = match self.row.namespaced {
            true => ObjectKey::namespaced(namespace, name),
            false => ObjectKey::cluster(name),
        };
        Some(Identity { key, uid: text("uid").into(), version: text("resourceVersion").into() })
    }
}

fn has_node(json: &Value) -> bool {
    json["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steersman_api::decode::kind_row;

    use super::*;

    fn store(kind: &str) -> (Store, Arc<Counters>) {
        let counters = Arc::new(Counters::default());
        let row = kind_row("v1", kind).unwrap();
        let store =
            Store::new(row, counters.clone(), Arc::default(), Arc::default(), Wants::default());
        (store, counters)
    }

    fn node(name: &str, version: &str) -> Value {
        json!({"metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": version}})
    }

    fn pod(name: &str, uid: &str, version: &str) -> Value {
        json!({"metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": version},
               "spec": {"containers": [{"name": "c"}]}})
    }

    /// The events as short words.
    fn told(events: &[Event]) -> Vec<String> {
        let word = |event: &Event| match event {
            Event::Upsert(ClusterObject::Node(node)) => format!("+{}", node.name),
            Event::Upsert(ClusterObject::Pod(pod)) => format!("+{}", pod.uid),
            Event::Upsert(ClusterObject::Other(object)) => format!("+{}", object.key()),
            Event::NodeDeleted(name) => format!("-{name}"),
            Event::PodDeleted(uid) => format!("-{uid}"),
            other => format!("{other:?}"),
        };
        events.iter().map(word).collect()
    }

    #[test]
    fn a_second_list_tells_only_what_differs() {
        let (mut store, _) = store("Node");
        let mut events = Vec::new();
        for names in [&["a/1", "b/1", "c/1"][..], &["a/1", "c/2", "d/5"]] {
            events.clear();
            store.begin_list();
            for (name, version) in names.iter().map(|text| text.split_once('/').unwrap()) {
                store.upsert(&node(name, version), &mut events);
            }
            store.end_list(&mut events);
        }
        assert_eq!(told(&events), ["+c", "+d", "-b"]);
    }

    #[test]
    fn a_pod_of_the_same_name_and_another_uid_ends_the_first() {
        let (mut store, _) = store("Pod");
        let mut events = Vec::new();
        store.upsert(&pod("p", "u1", "1"), &mut events);
        store.upsert(&pod("p", "u2", "2"), &mut events);
        store.delete(&pod("p", "u2", "3"), &mut events);
        store.delete(&pod("p", "u2", "3"), &mut events);
        assert_eq!(told(&events), ["+u1", "-u1", "+u2", "-u2"]);
    }

    #[test]
    fn a_version_that_cannot_be_read_is_counted_once_and_leaves_the_one_before() {
        let (mut store, counters) = store("Pod");
        let mut events = Vec::new();
        store.upsert(&pod("p", "u", "1"), &mut events);
        let bad = json!({"metadata": {"namespace": "ns", "name": "p", "uid": "u", "resourceVersion": "2"},
                         "spec": [1]});
        store.upsert(&bad, &mut events);
        store.upsert(&bad, &mut events);
        store.begin_list();
        store.upsert(&bad, &mut events);
        store.end_list(&mut events);
        assert_eq!(told(&events), ["+u"]);
        assert_eq!(counters.bad_objects.get(), 1);
        store.delete(&bad, &mut events);
        assert_eq!(told(&events), ["+u", "-u"]);
    }

    #[test]
    fn a_pod_on_a_node_counts_even_if_not_all_of_it_can_be_read() {
        let (mut store, counters) = store("Pod");
        let mut events = Vec::new();
        let mut bound = pod("p", "u", "1");
        bound["spec"]["nodeName"] = "n".into();
        bound["spec"]["tolerations"] = 7.into();
        store.upsert(&bound, &mut events);
        assert_eq!((told(&events), counters.bad_objects.get()), (vec!["+u".to_owned()], 0));
    }

    #[test]
    fn a_pod_that_lost_its_node_in_a_restored_server_is_taken_as_a_new_one() {
        let (mut store, _) = store("Pod");
        let mut events = Vec::new();
        let mut bound = pod("p", "u", "9");
        bound["spec"]["nodeName"] = "n".into();
        store.upsert(&bound, &mut events);
        store.upsert(&pod("p", "u", "4"), &mut events);
        assert_eq!(told(&events), ["+u", "-u", "+u"]);
    }

    #[test]
    fn whole_objects_are_kept_only_where_extenders_want_them() {
        let kept = |kind: &str, bound: bool, wants: Wants| {
            let (mut store, _) = store(kind);
            store.wants = wants;
            let mut json = if kind == "Node" { node("n", "1") } else { pod("p", "u", "1") };
            json["metadata"]["annotations"] = json!({"a": "b"});
            json["metadata"]["generateName"] = "x".into();
            if bound {
                json["spec"]["nodeName"] = "n".into();
            }
            let mut events = Vec::new();
            store.upsert(&json, &mut events);
            let metadata = match events.pop() {
                Some(Event::Upsert(ClusterObject::Pod(pod))) => {
                    pod.object.clone()?.metadata.clone()
                }
                Some(Event::Upsert(ClusterObject::Node(node))) => {
                    node.object.clone()?.metadata.clone()
                }
                other => panic!("{other:?}"),
            };
            assert!(metadata.annotations.is_some_and(|all| all.contains_key("a")));
            Some(metadata.generate_name.is_some())
        };
        let (nothing, whole, annotations) = (None, Some(true), Some(false));
        let none = Wants::default();
        let pods = Wants { pending_pods: true, ..none };
        let all = Wants { placed_pods: true, nodes: true, ..pods };
        for (wants, pending, placed, node) in [
            (none, nothing, nothing, nothing),
            (pods, whole, annotations, nothing),
            (all, whole, whole, whole),
        ] {
            assert_eq!(kept("Pod", false, wants), pending, "{wants:?}");
            assert_eq!(kept("Pod", true, wants), placed, "{wants:?}");
            assert_eq!(kept("Node", false, wants), node, "{wants:?}");
        }
    }

    #[test]
    fn what_has_no_name_is_left_out() {
        let (mut store, counters) = store("Node");
        let mut events = Vec::new();
        for bad in [json!({}), json!(3), json!({"metadata": {"name": 7}})] {
            store.upsert(&bad, &mut events);
            store.delete(&bad, &mut events);
        }
        assert!(events.is_empty());
        assert_eq!(counters.bad_objects.get(), 6);
    }
}
