//! Labels of objects, stored once per distinct set.

use std::collections::BTreeMap;

use crate::name::{Interned, Name};

/// A set of labels (or annotations), sorted by key; cheap to copy and compare.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Labels(Interned<Box<[(Name, Name)]>>);

/// Above this many labels a lookup searches by key order instead of comparing
/// pointers one by one.
const LINEAR_LOOKUP_MAX: usize = 16;

impl Labels {
    /// Labels from pairs; of equal keys the last one counts.
    pub fn from_pairs<K: Into<Name>, V: Into<Name>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let sorted: BTreeMap<Name, Name> =
            pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        Self(Interned::new(sorted.into_iter().collect()))
    }

    /// The value of `key`.
    pub fn get(&self, key: &Name) -> Option<&Name> {
        if self.0.len() <= LINEAR_LOOKUP_MAX {
            return self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v);
        }
        self.0.binary_search_by(|(k, _)| k.cmp(key)).ok().map(|at| &self.0[at].1)
    }

    /// Whether there is a label of that key.
    pub fn contains_key(&self, key: &Name) -> bool {
        self.get(key).is_some()
    }

    /// The pairs in key order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Name, &Name)> {
        self.0.iter().map(|(k, v)| (k, v))
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&BTreeMap<String, String>> for Labels {
    fn from(map: &BTreeMap<String, String>) -> Self {
        Self::from_pairs(map.iter().map(|(k, v)| (k.as_str(), v.as_str())))
    }
}

impl From<Option<&BTreeMap<String, String>>> for Labels {
    fn from(map: Option<&BTreeMap<String, String>>) -> Self {
        map.map(Self::from).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_label_in_small_and_large_sets() {
        for size in [0, 1, LINEAR_LOOKUP_MAX, LINEAR_LOOKUP_MAX + 1, 500] {
            let labels = Labels::from_pairs((0..size).map(|n| (format!("k{n}"), format!("v{n}"))));
            assert_eq!(labels.len(), size);
            for n in 0..size {
                let value = labels.get(&Name::from(format!("k{n}")));
                assert_eq!(value.map(Name::as_str), Some(format!("v{n}").as_str()));
            }
            assert_eq!(labels.get(&Name::new("absent")), None);
        }
    }

    #[test]
    fn equal_sets_are_one_value_whatever_their_order() {
        let forward = Labels::from_pairs([("a", "1"), ("b", "2")]);
        let backward = Labels::from_pairs([("b", "2"), ("a", "1")]);
        assert_eq!(forward, backward);
    }
}
