//! A binary heap that can also find, change and remove what is in the middle.

use std::cmp::Ordering;
use std::collections::HashMap;

use steersman_api::key::PodUid;

/// Heaps up to this size never shrink.
const MIN_CAPACITY: usize = 1024;

/// What stands in a heap.
pub(super) trait Item {
    /// What it is found by.
    fn uid(&self) -> &PodUid;
}

/// The least item is on top; the order is handed in with every call, and must
/// be the same one.
#[derive(Debug)]
pub(super) struct IndexedHeap<T> {
    items: Vec<T>,
    places: HashMap<PodUid, usize>,
}

impl<T> Default for IndexedHeap<T> {
    fn default() -> Self {
        Self { items: Vec::new(), places: HashMap::new() }
    }
}

impl<T: Item> IndexedHeap<T> {
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn peek(&self) -> Option<&T> {
        self.items.first()
    }

    /// All items: the top first, the others in no order that means anything.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }

    pub(super) fn contains(&self, uid: &PodUid) -> bool {
        self.places.contains_key(uid)
    }

    pub(super) fn get(&self, uid: &PodUid) -> Option<&T> {
        self.places.get(uid).map(|at| &self.items[*at])
    }

    /// Adds an item, in place of an older one of its UID.
    pub(super) fn push(&mut self, item: T, order: impl Fn(&T, &T) -> Ordering) {
        self.remove(&item.uid().clone(), &order);
        self.places.insert(item.uid().clone(), self.items.len());
        self.items.push(item);
        self.rise(self.items.len() - 1, &order);
    }

    pub(super) fn pop(&mut self, order: impl Fn(&T, &T) -> Ordering) -> Option<T> {
        let uid = self.items.first()?.uid().clone();
        self.remove(&uid, order)
    }

    pub(super) fn remove(&mut self, uid: &PodUid, order: impl Fn(&T, &T) -> Ordering) -> Option<T> {
        let at = self.places.remove(uid)?;
        let item = self.items.swap_remove(at);
        self.give_memory_back();
        if let Some(moved) = self.items.get(at) {
            self.places.insert(moved.uid().clone(), at);
            self.rise(at, &order);
            self.sink(at, &order);
        }
        Some(item)
    }

    /// After a burst of pods the heap must not keep the burst's memory.
    fn give_memory_back(&mut self) {
        if self.items.capacity() > MIN_CAPACITY && self.items.len() < self.items.capacity() / 4 {
            self.items.shrink_to(self.items.len() * 2);
            self.places.shrink_to(self.items.len() * 2);
        }
    }

    fn rise(&mut self, mut at: usize, order: impl Fn(&T, &T) -> Ordering) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if order(&self.items[at], &self.items[parent]) != Ordering::Less {
                break;
            }
            self.swap(at, parent);
            at = parent;
        }
    }

    fn sink(&mut self, mut at: usize, order: impl Fn(&T, &T) -> Ordering) {
        loop {
            let children = [2 * at + 1, 2 * at + 2];
            let least = children
                .into_iter()
                .filter(|child| *child < self.items.len())
                .min_by(|a, b| order(&self.items[*a], &self.items[*b]));
            let Some(child) = least else { break };
            if order(&self.items[child], &self.items[at]) != Ordering::Less {
                break;
            }
            self.swap(at, child);
            at = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.items.swap(a, b);
        for at in [a, b] {
            self.places.insert(self.items[at].uid().clone(), at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    struct Number(PodUid, u8);

    impl Item for Number {
        fn uid(&self) -> &PodUid {
            &self.0
        }
    }

    fn order(a: &Number, b: &Number) -> Ordering {
        a.1.cmp(&b.1).then_with(|| a.0.cmp(&b.0))
    }

    proptest! {
        #[test]
        fn pops_in_order_whatever_was_pushed_changed_and_removed(
            steps in prop::collection::vec((0_u8..20, any::<u8>(), any::<bool>()), 0..200)
        ) {
            let mut heap = IndexedHeap::default();
            let mut model = std::collections::BTreeMap::new();
            for (id, value, remove) in steps {
                let uid = PodUid::from(id.to_string().as_str());
                if remove {
                    let removed = heap.remove(&uid, order).map(|n: Number| n.1);
                    prop_assert_eq!(removed, model.remove(&uid));
                } else {
                    heap.push(Number(uid.clone(), value), order);
                    model.insert(uid, value);
                }
            }
            let mut expected: Vec<_> = model.into_iter().map(|(uid, value)| (value, uid)).collect();
            expected.sort();
            let mut popped = Vec::new();
            while let Some(number) = heap.pop(order) {
                popped.push((number.1, number.0));
            }
            prop_assert_eq!(popped, expected);
        }
    }
}
