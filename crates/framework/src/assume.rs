//! Objects as a plugin expects them to be soon.
//!
//! Between the choice of a node and the moment at which the API server shows
//! what the binding cycle wrote, other pods must not be promised the same
//! thing. A plugin keeps what it is about to write in an [`Assumed`] and reads
//! objects through it.
//!
//! An assumption ends when its author takes it back ([`Assumed::forget`]), or
//! by itself when a newer version of the object is seen: either the write has
//! arrived and the object says the same, or somebody else has changed it and
//! the write will be refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_api::key::ObjectKey;
use steersman_api::object::StoredObject;

use crate::cluster::Stores;

/// Assumptions about objects of one type. See the module documentation.
#[derive(Debug)]
pub struct Assumed<T> {
    by_key: BTreeMap<ObjectKey, Assumption<T>>,
}

#[derive(Debug)]
struct Assumption<T> {
    /// The version that it was made from.
    base: Arc<T>,
    expected: Arc<T>,
}

impl<T> Default for Assumed<T> {
    fn default() -> Self {
        Self { by_key: BTreeMap::new() }
    }
}

impl<T: StoredObject + PartialEq> Assumed<T> {
    /// Expects the object of which `base` is the latest version to become
    /// `expected`. Takes the place of an earlier assumption.
    pub fn assume(&mut self, stores: &Stores, base: Arc<T>, expected: Arc<T>) {
        self.by_key.retain(|key, assumption| assumption.holds(stores.get(key)));
        self.by_key.insert(expected.key().clone(), Assumption { base, expected });
    }

    /// Takes an assumption back, if it still is this one.
    pub fn forget(&mut self, expected: &Arc<T>) {
        let is_it = |found: &Assumption<T>| Arc::ptr_eq(&found.expected, expected);
        if self.by_key.get(expected.key()).is_some_and(is_it) {
            self.by_key.remove(expected.key());
        }
    }

    /// The object as it is expected to be; `None` when there is none.
    pub fn get(&self, stores: &Stores, key: &ObjectKey) -> Option<Arc<T>> {
        Some(self.apply(stores.shared(key)?))
    }

    /// All objects as they are expected to be, by key.
    pub fn list(&self, stores: &Stores) -> impl Iterator<Item = Arc<T>> {
        stores.list_shared().map(|current| self.apply(current))
    }

    /// How many assumptions hold.
    pub fn count(&self, stores: &Stores) -> usize {
        self.by_key.iter().filter(|(key, found)| found.holds(stores.get(key))).count()
    }

    fn apply(&self, current: Arc<T>) -> Arc<T> {
        match self.by_key.get(current.key()) {
            Some(assumption) if assumption.holds(Some(&current)) => assumption.expected.clone(),
            _ => current,
        }
    }
}

impl<T: PartialEq> Assumption<T> {
    /// Whether the object is still what the assumption was made from.
    fn holds(&self, current: Option<&T>) -> bool {
        current.is_some_and(|current| *current == *self.base)
    }
}

#[cfg(test)]
mod tests {
    use steersman_api::labels::Labels;
    use steersman_api::namespace::Namespace;
    use steersman_api::object::AnyObject;

    use super::*;

    fn namespace(name: &str, label: &str) -> Namespace {
        let labels = Labels::from_pairs([("l", label)]);
        Namespace { key: ObjectKey::cluster(name), labels }
    }

    struct World {
        stores: Stores,
        assumed: Assumed<Namespace>,
    }

    impl World {
        fn new() -> Self {
            let mut world = Self { stores: Stores::default(), assumed: Assumed::default() };
            world.see("a", "old");
            world.see("b", "old");
            world
        }

        fn see(&mut self, name: &str, label: &str) {
            self.stores.set(AnyObject::new(namespace(name, label)));
        }

        fn assume(&mut self, name: &str, label: &str) -> Arc<Namespace> {
            let base = self.stores.shared(&ObjectKey::cluster(name)).expect("seen");
            let expected = Arc::new(namespace(name, label));
            self.assumed.assume(&self.stores, base, expected.clone());
            expected
        }

        #[track_caller]
        fn check(&self, name: &str, label: Option<&str>) {
            let found = self.assumed.get(&self.stores, &ObjectKey::cluster(name));
            assert_eq!(found.as_deref(), label.map(|label| namespace(name, label)).as_ref());
            let listed = self.assumed.list(&self.stores).find(|object| *object.key.name == *name);
            assert_eq!(listed, found);
        }
    }

    #[test]
    fn assumption_shows_until_it_is_taken_back() {
        let mut world = World::new();
        let expected = world.assume("a", "new");
        world.check("a", Some("new"));
        world.check("b", Some("old"));
        world.assumed.forget(&expected);
        world.check("a", Some("old"));
        assert_eq!(world.assumed.count(&world.stores), 0);
    }

    #[test]
    fn same_version_seen_again_changes_nothing_and_a_newer_one_ends_it() {
        let mut world = World::new();
        world.assume("a", "new");
        world.see("a", "old");
        world.check("a", Some("new"));
        assert_eq!(world.assumed.count(&world.stores), 1);
        world.see("a", "other");
        world.check("a", Some("other"));
        assert_eq!(world.assumed.count(&world.stores), 0);
    }

    #[test]
    fn deleted_object_is_not_assumed() {
        let mut world = World::new();
        world.assume("a", "new");
        world.stores.remove(Namespace::RESOURCE, &ObjectKey::cluster("a"));
        world.check("a", None);
        world.see("a", "fresh");
        world.check("a", Some("fresh"));
    }

    #[test]
    fn only_the_own_assumption_is_taken_back() {
        let mut world = World::new();
        let first = world.assume("a", "new");
        world.assumed.forget(&first);
        world.assume("a", "newer");
        world.assumed.forget(&first);
        world.check("a", Some("newer"));
    }
}
