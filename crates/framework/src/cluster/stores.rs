//! Objects other than pods and nodes, by kind and key.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_api::key::ObjectKey;
use steersman_api::labels::Labels;
use steersman_api::name::Name;
use steersman_api::namespace::Namespace;
use steersman_api::object::{AnyObject, StoredObject};

/// One store per kind. Kinds need no registration: whatever a driver feeds in
/// can be read back by its type.
#[derive(Clone, Debug, Default)]
pub struct Stores(BTreeMap<&'static str, BTreeMap<ObjectKey, AnyObject>>);

impl Stores {
    /// Adds an object or puts a newer version in place. Returns the older one.
    pub fn set(&mut self, object: AnyObject) -> Option<AnyObject> {
        self.0.entry(object.resource()).or_default().insert(object.key().clone(), object)
    }

    /// Removes an object.
    pub fn remove(&mut self, resource: &str, key: &ObjectKey) -> Option<AnyObject> {
        self.0.get_mut(resource)?.remove(key)
    }

    /// Whether there is an object of that kind and name.
    pub fn contains(&self, resource: &str, key: &ObjectKey) -> bool {
        self.0.get(resource).is_some_and(|of_kind| of_kind.contains_key(key))
    }

    /// The object of that type and key.
    pub fn get<T: StoredObject>(&self, key: &ObjectKey) -> Option<&T> {
        self.0.get(T::RESOURCE)?.get(key)?.get()
    }

    /// All objects of that type, by key.
    pub fn list<T: StoredObject>(&self) -> impl Iterator<Item = &T> {
        self.0.get(T::RESOURCE).into_iter().flat_map(BTreeMap::values).filter_map(AnyObject::get)
    }

    /// As [`Stores::get`], to keep for the length of a cycle.
    pub fn shared<T: StoredObject>(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.0.get(T::RESOURCE)?.get(key)?.shared()
    }

    /// As [`Stores::list`], to keep for the length of a cycle.
    pub fn list_shared<T: StoredObject>(&self) -> impl Iterator<Item = Arc<T>> {
        let objects = self.0.get(T::RESOURCE).into_iter().flat_map(BTreeMap::values);
        objects.filter_map(AnyObject::shared)
    }

    /// The objects of that type in one namespace, by name.
    pub fn list_in<T: StoredObject>(&self, namespace: &Name) -> impl Iterator<Item = &T> {
        let start = ObjectKey { namespace: namespace.clone(), name: "".into() };
        let namespace = namespace.clone();
        self.0
            .get(T::RESOURCE)
            .into_iter()
            .flat_map(move |store| store.range(start.clone()..))
            .take_while(move |(key, _)| key.namespace == namespace)
            .filter_map(|(_, object)| object.get())
    }

    /// The labels of a namespace; none when it is not known.
    pub fn namespace_labels(&self, namespace: &Name) -> Labels {
        self.get::<Namespace>(&ObjectKey::cluster(namespace))
            .map(|n| n.labels.clone())
            .unwrap_or_default()
    }
}
