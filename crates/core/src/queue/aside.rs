//! Pods set aside until something happens that a plugin waits for: the
//! unschedulable ones and the gated ones.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::time::Time;

use super::entry::Entry;
use crate::profile::PluginSet;

/// The plugins in the way of a pod, and the profile they belong to.
type Group = (Name, PluginSet);

/// Pods by the plugins in their way, then by arrival: a change looks only at
/// the pods of plugins that want to hear of it.
#[derive(Debug, Default)]
pub(super) struct Aside {
    groups: BTreeMap<Group, BTreeMap<u64, Entry>>,
    places: HashMap<PodUid, (Group, u64)>,
    /// When each was set aside, for finding the oldest.
    ages: BTreeSet<(Time, PodUid)>,
}

impl Aside {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn contains(&self, uid: &PodUid) -> bool {
        self.places.contains_key(uid)
    }

    pub(super) fn get(&self, uid: &PodUid) -> Option<&Entry> {
        let (group, arrival) = self.places.get(uid)?;
        self.groups.get(group)?.get(arrival)
    }

    /// All of them, in order of arrival within their group.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.groups.values().flat_map(BTreeMap::values)
    }

    /// The groups: scheduler name, plugins in the way, pods.
    pub(super) fn groups(
        &self,
    ) -> impl Iterator<Item = (&Name, PluginSet, impl Iterator<Item = &Entry>)> {
        self.groups.iter().map(|((name, plugins), entries)| (name, *plugins, entries.values()))
    }

    /// Sets a pod aside that these plugins are in the way of.
    pub(super) fn insert(&mut self, entry: Entry, plugins: PluginSet) {
        let uid = entry.pod().uid.clone();
        let group = (entry.pod().spec.scheduler_name.clone(), plugins);
        self.ages.insert((entry.queued.queued_at, uid.clone()));
        self.places.insert(uid, (group.clone(), entry.arrival));
        self.groups.entry(group).or_default().insert(entry.arrival, entry);
    }

    pub(super) fn take(&mut self, uid: &PodUid) -> Option<Entry> {
        let (group, arrival) = self.places.remove(uid)?;
        let entries = self.groups.get_mut(&group)?;
        let entry = entries.remove(&arrival)?;
        if entries.is_empty() {
            self.groups.remove(&group);
        }
        self.ages.remove(&(entry.queued.queued_at, uid.clone()));
        Some(entry)
    }

    /// When the pod that has been here longest was queued.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.ages.first().map(|(queued_at, _)| *queued_at)
    }

    /// The pods that were queued at `time` or before.
    pub(super) fn queued_by(&self, time: Time) -> Vec<PodUid> {
        let old = self.ages.iter().take_while(|(queued_at, _)| *queued_at <= time);
        old.map(|(_, uid)| uid.clone()).collect()
    }
}
