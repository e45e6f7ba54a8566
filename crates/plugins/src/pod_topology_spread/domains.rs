//! The domains of one constraint: which node is in which, and how many pods
//! each holds.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::node_info::NodeIdx;

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It lacks the label.
    NoDomain,
    /// It has a domain, but its pods are not counted.
    Uncounted(u32),
    /// It is in the domain of that number.
    Counted(u32),
}

/// The domains of one constraint. Cheap to copy: copies share what PreFilter
/// found and keep the few what-if changes apart.
#[derive(Clone, Debug)]
pub(super) struct Domains {
    places: Arc<[Place]>,
    /// Pods by domain, without changes.
    pods: Arc<[i64]>,
    /// Domains that a what-if changed, with the pods they have now.
    changed: Vec<(u32, i64)>,
    /// How many counted domains have how many pods; its first entry is the
    /// minimum.
    histogram: BTreeMap<i64, u32>,
    /// How many domains have a counted node.
    n_domains: usize,
}

impl Domains {
    /// Where the node stands; `None` for one that came after PreFilter.
    pub(super) fn place(&self, node: NodeIdx) -> Option<Place> {
        self.places.get(node.get()).copied()
    }

    /// The pods in a domain.
    pub(super) fn pods_in(&self, domain: u32) -> i64 {
        let changed = self.changed.iter().find(|(number, _)| *number == domain);
        changed.map_or_else(|| self.pods[domain as usize], |(_, pods)| *pods)
    }

    /// The pods in the counted domain that has the fewest; 0 when there are
    /// fewer than `min_domains`.
    pub(super) fn fewest(&self, min_domains: usize) -> i64 {
        if self.n_domains < min_domains {
            return 0;
        }
        self.histogram.first_key_value().map_or(0, |(pods, _)| *pods)
    }

    /// Adds `by` pods to the domain of `node`, if the node is counted.
    pub(super) fn change(&mut self, node: NodeIdx, by: i64) {
        let Some(Place::Counted(domain)) = self.place(node) else { return };
        let before = self.pods_in(domain);
        if let Some(n) = self.histogram.get_mut(&before) {
            *n -= 1;
            if *n == 0 {
                self.histogram.remove(&before);
            }
        }
        let after = before + by;
        *self.histogram.entry(after).or_default() += 1;
        match self.changed.iter_mut().find(|(number, _)| *number == domain) {
            Some((_, pods)) => *pods = after,
            None => self.changed.push((domain, after)),
        }
    }
}

/// Collects nodes into [`Domains`].
pub(super) struct DomainsBuilder<'a> {
    numbers: HashMap<&'a Name, u32>,
    places: Vec<Place>,
    /// By domain: whether a node of it is counted, and its pods.
    domains: Vec<(bool, i64)>,
}

impl<'a> DomainsBuilder<'a> {
    /// No node yet, of a table with `n_slots` places.
    pub(super) fn new(n_slots: usize) -> Self {
        Self {
            numbers: HashMap::new(),
            places: vec![Place::NoDomain; n_slots],
            domains: Vec::new(),
        }
    }

    /// Adds a node of the domain `value` whose pods are counted.
    pub(super) fn add_counted(&mut self, node: NodeIdx, value: &'a Name, pods: u32) {
        let number = self.number(value);
        self.places[node.get()] = Place::Counted(number);
        let domain = &mut self.domains[number as usize];
        domain.0 = true;
        domain.1 += i64::from(pods);
    }

    /// Adds a node of the domain `value` that is not counted.
    pub(super) fn add_uncounted(&mut self, node: NodeIdx, value: &'a Name) {
        self.places[node.get()] = Place::Uncounted(self.number(value));
    }

    pub(super) fn finish(self) -> Domains {
        let mut histogram = BTreeMap::new();
        let counted = self.domains.iter().filter(|(counted, _)| *counted);
        for (_, pods) in counted.clone() {
            *histogram.entry(*pods).or_default() += 1;
        }
        Domains {
            places: self.places.into(),
            pods: self.domains.iter().map(|(_, pods)| *pods).collect(),
            changed: Vec::new(),
            n_domains: counted.count(),
            histogram,
        }
    }

    fn number(&mut self, value: &'a Name) -> u32 {
        *self.numbers.entry(value).or_insert_with(|| {
            self.domains.push((false, 0));
            u32::try_from(self.domains.len() - 1).expect("no more domains than nodes")
        })
    }
}
