//! Sums per domain: of pods when filtering, of weights when scoring.

use std::collections::HashMap;
use std::sync::Arc;

use steersman_api::labels::Labels;
use steersman_api::name::Name;

/// A sum for each domain of each of some node labels. Cheap to copy: copies
/// share what was counted first and keep the few what-if changes apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    by_key: Vec<KeyTally>,
}

#[derive(Clone, Debug)]
struct KeyTally {
    key: Name,
    sums: Arc<HashMap<Name, i64>>,
    /// Domains that a what-if changed, with their sums now.
    changed: Vec<(Name, i64)>,
    /// How many domains have a sum other than 0.
    n_filled: usize,
}

impl Tally {
    /// Adds to the domain of a node with these labels. Whether it has one.
    pub(super) fn add(&mut self, key: &Name, node: &Labels, amount: i64) -> bool {
        let Some(value) = node.get(key) else { return false };
        let tally = self.key_tally(key);
        let before = tally.sum(value);
        match Arc::get_mut(&mut tally.sums) {
            Some(sums) if tally.changed.is_empty() => {
                *sums.entry(value.clone()).or_default() += amount;
            }
            _ => tally.change(value, before + amount),
        }
        tally.n_filled += usize::from(before == 0 && amount != 0);
        tally.n_filled -= usize::from(before != 0 && before + amount == 0);
        true
    }

    /// The sum of the node's domain of that key: `None` when it has no such
    /// label.
    pub(super) fn get(&self, key: &Name, node: &Labels) -> Option<i64> {
        let value = node.get(key)?;
        let tally = self.by_key.iter().find(|tally| tally.key == *key);
        Some(tally.map_or(0, |tally| tally.sum(value)))
    }

    /// The sums of all of the node's domains.
    pub(super) fn of_node<'a>(&'a self, node: &'a Labels) -> impl Iterator<Item = i64> + 'a {
        self.by_key.iter().filter_map(|tally| Some(tally.sum(node.get(&tally.key)?)))
    }

    /// Whether every sum is 0.
    pub(super) fn is_empty(&self) -> bool {
        self.by_key.iter().all(|tally| tally.n_filled == 0)
    }

    fn key_tally(&mut self, key: &Name) -> &mut KeyTally {
        let at = self.by_key.iter().position(|tally| tally.key == *key).unwrap_or_else(|| {
            self.by_key.push(KeyTally {
                key: key.clone(),
                sums: Arc::default(),
                changed: Vec::new(),
                n_filled: 0,
            });
            self.by_key.len() - 1
        });
        &mut self.by_key[at]
    }
}

impl KeyTally {
    fn sum(&self, value: &Name) -> i64 {
        match self.changed.iter().find(|(other, _)| other == value) {
            Some((_, sum)) => *sum,
            None => self.sums.get(value).copied().unwrap_or(0),
        }
    }

    fn change(&mut self, value: &Name, sum: i64) {
        match self.changed.iter_mut().find(|(other, _)| other == value) {
            Some((_, slot)) => *slot = sum,
            None => self.changed.push((value.clone(), sum)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_change_without_changing_each_other() {
        let key = Name::new("zone");
        let [a, b] = ["a", "b"].map(|zone| Labels::from_pairs([("zone", zone)]));
        let mut first = Tally::default();
        assert!(first.add(&key, &a, 2));
        assert!(!first.add(&key, &Labels::default(), 2));
        let mut second = first.clone();
        second.add(&key, &a, -2);
        second.add(&key, &b, 5);
        second.add(&key, &b, -5);
        assert_eq!((second.get(&key, &a), second.get(&key, &b)), (Some(0), Some(0)));
        assert!(second.is_empty());
        assert_eq!((first.get(&key, &a), first.is_empty()), (Some(2), false));
        assert_eq!(first.get(&key, &Labels::default()), None);
    }
}
