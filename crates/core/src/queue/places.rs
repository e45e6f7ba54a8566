//! Looking into the queue and taking pods out of it.

use std::sync::Arc;

use steersman_api::key::PodUid;
use steersman_api::pod::PodInfo;

use super::entry::Entry;
use super::{Place, SchedulingQueue, active_order, backoff_order};

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
