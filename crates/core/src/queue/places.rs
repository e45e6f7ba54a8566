//! Looking into the queue and taking pods out of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;

use super::entry::Entry;
use super::{Place, SchedulingQueue, active_order, backoff_order};
use crate::profile::PluginSet;

/// How many pods stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// In the activeQ.
    pub active: usize,
    /// In the backoffQ, after errors included.
    pub backoff: usize,
    /// Unschedulable.
    pub unschedulable: usize,
    /// Gated.
    pub gated: usize,
    /// Being scheduled or bound.
    pub in_flight: usize,
}

impl SchedulingQueue {
    /// How many pods stand where.
    pub(crate) fn counts(&self) -> QueueCounts {
        QueueCounts {
            active: self.active.len(),
            backoff: self.backing_off.len() + self.backing_off_after_error.len(),
            unschedulable: self.unschedulable.len(),
            gated: self.gated.len(),
            in_flight: self.in_flight.len(),
        }
    }

    /// Where a pod stands; `None` when it is not here.
    pub(crate) fn place(&self, uid: &PodUid) -> Option<Place> {
        let places = self.all_places(uid);
        debug_assert!(places.len() <= 1, "a pod stands in one place: {places:?}");
        places.first().copied()
    }

    /// Every place that a pod stands in: never more than one.
    pub(crate) fn all_places(&self, uid: &PodUid) -> Vec<Place> {
        let backing_off =
            self.backing_off.contains(uid) || self.backing_off_after_error.contains(uid);
        [
            (self.active.contains(uid), Place::Active),
            (backing_off, Place::Backoff),
            (self.unschedulable.contains(uid), Place::Unschedulable),
            (self.gated.contains(uid), Place::Gated),
            (self.in_flight.contains(uid), Place::InFlight),
        ]
        .into_iter()
        .filter_map(|(there, place)| there.then_some(place))
        .collect()
    }

    /// The latest version of a pod.
    pub(crate) fn pod(&self, uid: &PodUid) -> Option<&Arc<PodInfo>> {
        if let Some(entry) = self.flying.get(uid) {
            return Some(entry.pod());
        }
        if let Some(entry) = self.unschedulable.get(uid).or_else(|| self.gated.get(uid)) {
            return Some(entry.pod());
        }
        let heaps = [&self.active, &self.backing_off, &self.backing_off_after_error];
        heaps.into_iter().find_map(|heap| heap.get(uid)).map(Entry::pod)
    }

    /// The unschedulable pods, in order of arrival within their group.
    pub(crate) fn unschedulable_pods(&self) -> impl Iterator<Item = &Entry> {
        self.unschedulable.iter()
    }

    /// The gated pods and the reasons, in order of arrival.
    pub(crate) fn gated_pods(&self) -> impl Iterator<Item = (&Entry, &str)> {
        self.gated.iter().map(|entry| (entry, entry.gated_because.as_deref().unwrap_or_default()))
    }

    /// The pods that stand in one place: the first of the activeQ and backoffQ
    /// is the next to leave, the others follow as the heap has them; the rest
    /// in order of arrival within their group.
    pub(crate) fn standing(&self, place: Place) -> Box<dyn Iterator<Item = &Entry> + '_> {
        match place {
            Place::Active => Box::new(self.active.iter()),
            Place::Backoff => {
                Box::new(self.backing_off.iter().chain(self.backing_off_after_error.iter()))
            }
            Place::Unschedulable => Box::new(self.unschedulable.iter()),
            Place::Gated => Box::new(self.gated.iter()),
            Place::InFlight => {
                let in_order = self.in_flight.in_order();
                Box::new(in_order.filter_map(|uid| self.flying.get(uid)))
            }
        }
    }

    /// How many pods that wait were rejected by which plugins, by profile. A
    /// pod counts once for each of them, also while it waits to be tried again;
    /// a gated pod counts for what keeps it out.
    pub(crate) fn rejections(&self) -> BTreeMap<(Name, &'static str), usize> {
        let mut groups: BTreeMap<(&Name, PluginSet), usize> = BTreeMap::new();
        for (profile, plugins, entries) in self.unschedulable.groups() {
            *groups.entry((profile, plugins)).or_default() += entries.count();
        }
        for (profile, plugins, entries) in self.gated.groups() {
            *groups.entry((profile, plugins)).or_default() += entries.count();
        }
        for heap in [&self.active, &self.backing_off, &self.backing_off_after_error] {
            for entry in heap.iter().filter(|entry| !entry.rejected_by.is_empty()) {
                let group = (&entry.pod().spec.scheduler_name, entry.rejected_by);
                *groups.entry(group).or_default() += 1;
            }
        }
        let mut by_plugin = BTreeMap::new();
        for ((name, plugins), n) in groups {
            let Some(profile) = self.profiles.get(name) else { continue };
            for plugin in profile.names(plugins) {
                *by_plugin.entry((name.clone(), plugin)).or_default() += n;
            }
        }
        by_plugin
    }

    /// How many changes are remembered for pods in flight, by the event's
    /// label; `PodPopped` counts those pods.
    pub(crate) fn remembered(&self) -> BTreeMap<String, usize> {
        self.in_flight.remembered()
    }

    /// Takes a pod out for good, wherever it stands.
    pub(crate) fn remove(&mut self, uid: &PodUid) {
        self.nominations.remove(uid);
        self.in_flight.drop_pod(uid);
        self.flying.remove(uid);
        if self.take_waiting(uid).is_none() && self.unschedulable.take(uid).is_none() {
            self.gated.take(uid);
        }
    }

    /// Takes a pod out of the activeQ or backoffQ.
    pub(super) fn take_waiting(&mut self, uid: &PodUid) -> Option<Entry> {
        let sort = self.sort.as_ref();
        self.active
            .remove(uid, active_order(sort))
            .or_else(|| self.backing_off.remove(uid, backoff_order(sort)))
            .or_else(|| self.backing_off_after_error.remove(uid, backoff_order(sort)))
    }
}
