//! The objects of one kind, as last seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::kind::Watched;

/// Namespace and name. The namespace is empty for kinds without.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of an object.
    pub fn of(metadata: &ObjectMeta) -> Self {
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }

    /// A key.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// What happened to an object.
#[derive(Debug)]
pub struct Change<K> {
    /// The object before, unless it is new.
    pub old: Option<Arc<K>>,
    /// The object now, unless it is gone.
    pub new: Option<Arc<K>>,
}

impl<K> Change<K> {
    /// The object as last seen.
    pub fn object(&self) -> &K {
        self.new.as_ref().or(self.old.as_ref()).expect("a change is of something")
    }

    /// Before and after, as far as there are.
    pub fn both(&self) -> impl Iterator<Item = &Arc<K>> {
        self.old.iter().chain(&self.new)
    }
}

/// The objects of one kind.
///
/// It is fed by a watch and by the answers to our own writes, so a controller
/// never decides without what it has just done. Resource versions tell which
/// of the two is newer: an answer that the watch has already passed is dropped,
/// because the object may have been deleted since.
#[derive(Debug)]
pub struct Store<K> {
    objects: BTreeMap<Key, Arc<K>>,
    by_owner: BTreeMap<String, BTreeSet<Key>>,
    by_node: BTreeMap<String, BTreeSet<Key>>,
    /// The newest resource version that the watch has shown.
    seen: u64,
    /// Objects that we deleted and of which the watch has not told yet, by uid.
    gone: BTreeSet<String>,
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            by_owner: BTreeMap::new(),
            by_node: BTreeMap::new(),
            seen: 0,
            gone: BTreeSet::new(),
        }
    }
}

impl<K: Watched> Store<K> {
    /// One object.
    pub fn get(&self, key: &Key) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    /// All, ordered by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<K>> {
        self.objects.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The objects of a namespace.
    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<K>> {
        self.objects
            .range(Key::new(namespace, "")..)
            .take_while(move |(key, _)| key.namespace == namespace)
            .map(|(_, object)| object)
    }

    /// The objects whose controller has the uid.
    pub fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Arc<K>> {
        self.by_owner.get(uid).into_iter().flatten().filter_map(|key| self.objects.get(key))
    }

    /// The objects of a namespace that nobody controls.
    pub fn orphans<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<K>> {
        let orphans = self.by_owner.get("").into_iter();
        orphans
            .flat_map(move |keys| keys.range(Key::new(namespace, "")..))
            .take_while(move |key| key.namespace == namespace)
            .filter_map(|key| self.objects.get(key))
    }

    /// The objects on a node.
    pub fn on_node(&self, node: &str) -> impl Iterator<Item = &Arc<K>> {
        self.by_node.get(node).into_iter().flatten().filter_map(|key| self.objects.get(key))
    }

    /// Takes in what the watch shows.
    pub(crate) fn observe(&mut self, object: K) -> Option<Change<K>> {
        let metadata = object.metadata();
        self.seen = self.seen.max(version(metadata));
        if self.gone.contains(uid(metadata)) {
            return None;
        }
        self.put(object)
    }

    /// Takes in that the watch shows a deletion.
    pub(crate) fn observe_deleted(&mut self, object: &K) -> Option<Change<K>> {
        let metadata = object.metadata();
        self.seen = self.seen.max(version(metadata));
        self.gone.remove(uid(metadata));
        let key = Key::of(metadata);
        let same = self.objects.get(&key).is_some_and(|o| uid(o.metadata()) == uid(metadata));
        if same { self.take(&key) } else { None }
    }

    /// Takes in the answer to a write of ours.
    pub(crate) fn written(&mut self, object: K) -> Option<Change<K>> {
        let metadata = object.metadata();
        if version(metadata) <= self.seen || self.gone.contains(uid(metadata)) {
            return None;
        }
        self.put(object)
    }

    /// Takes in that a deletion of ours was the end of the object.
    pub(crate) fn deleted(&mut self, key: &Key, deleted_uid: &str) -> Option<Change<K>> {
        let present = self.objects.get(key).is_some_and(|o| uid(o.metadata()) == deleted_uid);
        if !present {
            return None;
        }
        self.gone.insert(deleted_uid.to_owned());
        self.take(key)
    }

    /// Replaces everything by a list; what is not in it has been deleted.
    pub(crate) fn replace(&mut self, list: Vec<K>, list_version: u64) -> Vec<Change<K>> {
        self.gone.clear();
        let listed: BTreeSet<Key> = list.iter().map(|o| Key::of(o.metadata())).collect();
        let missing: Vec<Key> = self
            .objects
            .iter()
            // What was written after the list was made is not in it.
            .filter(|(key, o)| !listed.contains(*key) && version(o.metadata()) <= list_version)
            .map(|(key, _)| key.clone())
            .collect();
        let mut changes: Vec<Change<K>> = missing.iter().filter_map(|key| self.take(key)).collect();
        changes.extend(list.into_iter().filter_map(|object| self.put(object)));
        self.seen = self.seen.max(list_version);
        changes
    }

    fn put(&mut self, object: K) -> Option<Change<K>> {
        let key = Key::of(object.metadata());
        if let Some(known) = self.objects.get(&key) {
            let known = known.metadata();
            let newer = version(object.metadata()) > version(known);
            if !newer {
                return None;
            }
        }
        let old = self.take(&key).and_then(|change| change.old);
        let new = Arc::new(object);
        let owner = owner_uid(new.metadata()).to_owned();
        self.by_owner.entry(owner).or_default().insert(key.clone());
        if let Some(node) = new.node() {
            self.by_node.entry(node.to_owned()).or_default().insert(key.clone());
        }
        self.objects.insert(key, Arc::clone(&new));
        Some(Change { old, new: Some(new) })
    }

    fn take(&mut self, key: &Key) -> Option<Change<K>> {
        let old = self.objects.remove(key)?;
        unindex(&mut self.by_owner, owner_uid(old.metadata()), key);
        if let Some(node) = old.node() {
            unindex(&mut self.by_node, node, key);
        }
        Some(Change { old: Some(old), new: None })
    }
}

/// The owner that controls an object.
pub fn controller_of(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// The uid, empty when there is none.
pub fn uid(metadata: &ObjectMeta) -> &str {
    metadata.uid.as_deref().unwrap_or_default()
}

/// The uid of the controller, empty when there is none.
fn owner_uid(metadata: &ObjectMeta) -> &str {
    controller_of(metadata).map(|owner| owner.uid.as_str()).unwrap_or_default()
}

fn version(metadata: &ObjectMeta) -> u64 {
    metadata.resource_version.as_deref().and_then(|v| v.parse().ok()).unwrap_or_default()
}

fn unindex(index: &mut BTreeMap<String, BTreeSet<Key>>, entry: &str, key: &Key) {
    if let Some(keys) = index.get_mut(entry) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, version: u64) -> Pod {
        let metadata = json!({"name": "p", "namespace": "n", "uid": uid, "resourceVersion": version.to_string()});
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    fn shown(store: &Store<Pod>) -> Vec<String> {
        store
            .iter()
            .map(|pod| {
                let metadata = &pod.metadata;
                format!("{}@{}", uid(metadata), metadata.resource_version.as_deref().unwrap())
            })
            .collect()
    }

    #[test]
    fn answer_counts_until_the_watch_has_passed_it() {
        let mut store = Store::default();
        assert!(store.written(pod("a", 5)).is_some());
        assert!(store.observe(pod("a", 5)).is_none(), "the same again");
        assert!(store.observe(pod("a", 7)).is_some());
        assert!(store.written(pod("a", 6)).is_none(), "older than what is known");
        assert_eq!(shown(&store), ["a@7"]);
    }

    #[test]
    fn answer_that_comes_after_the_deletion_brings_nothing_back() {
        let mut store = Store::default();
        store.observe(pod("a", 5));
        store.observe_deleted(&pod("a", 9));
        assert!(store.written(pod("a", 6)).is_none());
        assert_eq!(shown(&store), Vec::<String>::new());
    }

    #[test]
    fn own_deletion_holds_against_older_news_of_the_watch() {
        let mut store = Store::default();
        store.observe(pod("a", 5));
        assert!(store.deleted(&Key::new("n", "p"), "a").is_some());
        assert!(store.observe(pod("a", 6)).is_none());
        assert!(store.observe_deleted(&pod("a", 7)).is_none());
        assert!(store.observe(pod("b", 8)).is_some(), "another pod of the name");
        assert!(store.deleted(&Key::new("n", "p"), "a").is_none(), "is not the one deleted");
        assert_eq!(shown(&store), ["b@8"]);
    }

    #[test]
    fn new_list_tells_what_has_gone_and_what_has_changed() {
        let mut store = Store::default();
        store.observe(pod("a", 5));
        assert_eq!(store.replace(vec![pod("a", 5)], 10).len(), 0);
        assert_eq!(store.replace(vec![pod("b", 11)], 12).len(), 1);
        store.written(pod("b", 20));
        assert_eq!(store.replace(Vec::new(), 15).len(), 0, "written after the list was made");
        assert_eq!(store.replace(Vec::new(), 25).len(), 1);
        assert!(store.is_empty());
    }

    #[test]
    fn indexes_follow_owners_and_nodes() {
        let mut store = Store::default();
        let mut owned = pod("a", 5);
        owned.metadata.owner_references = Some(vec![OwnerReference {
            uid: "o".to_owned(),
            controller: Some(true),
            ..Default::default()
        }]);
        store.observe(pod("a", 4));
        assert_eq!((store.orphans("n").count(), store.orphans("m").count()), (1, 0));
        store.observe(owned.clone());
        assert_eq!((store.orphans("n").count(), store.owned_by("o").count()), (0, 1));
        owned.metadata.resource_version = Some("6".to_owned());
        owned.spec = serde_json::from_value(json!({"nodeName": "x", "containers": []})).unwrap();
        store.observe(owned.clone());
        assert_eq!(store.on_node("x").count(), 1);
        store.observe_deleted(&owned);
        assert_eq!((store.owned_by("o").count(), store.on_node("x").count()), (0, 0));
    }
}
