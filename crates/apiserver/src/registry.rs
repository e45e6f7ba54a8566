//! The resources that are served, and where each keeps its objects.

use std::collections::BTreeMap;

use steersman_apimachinery::resource::{Resource, Storage};

use crate::store::TableId;

/// One served resource.
pub(crate) struct Entry {
    /// The resource.
    pub(crate) resource: &'static Resource,
    /// Where its objects are; `None` when they are nowhere.
    pub(crate) table: Option<TableId>,
    /// The resource whose form stored objects have: itself, or the one it
    /// shares storage with.
    pub(crate) storage: &'static Resource,
}

/// All of them.
pub(crate) struct Registry {
    entries: Vec<Entry>,
    by_path: BTreeMap<(&'static str, &'static str, &'static str), usize>,
    by_kind: BTreeMap<(&'static str, &'static str), usize>,
    owners: Vec<usize>,
}

impl Registry {
    /// Gives every resource that keeps objects a table. A resource that shares
    /// storage with one that is not served keeps nothing.
    pub(crate) fn new(resources: &'static [Resource]) -> Self {
        let mut tables = BTreeMap::new();
        let mut owners = Vec::new();
        for (index, resource) in resources.iter().enumerate() {
            if resource.storage == Storage::Own {
                tables.entry((resource.group, resource.plural)).or_insert_with(|| {
                    owners.push(index);
                    TableId(owners.len() - 1)
                });
            }
        }
        let mut registry = Self {
            entries: Vec::new(),
            by_path: BTreeMap::new(),
            by_kind: BTreeMap::new(),
            owners,
        };
        for (index, resource) in resources.iter().enumerate() {
            let table = match resource.storage {
                Storage::Own => tables.get(&(resource.group, resource.plural)).copied(),
                Storage::SharedWith { group, plural } => tables.get(&(group, plural)).copied(),
                Storage::Nowhere | Storage::Through { .. } => None,
            };
            let storage = table.map_or(resource, |table| &resources[registry.owners[table.0]]);
            registry.entries.push(Entry { resource, table, storage });
            registry.by_path.insert((resource.group, resource.version, resource.plural), index);
            registry.by_kind.entry((resource.group, resource.kind)).or_insert(index);
        }
        registry
    }

    /// How many tables there are.
    pub(crate) fn tables(&self) -> usize {
        self.owners.len()
    }

    /// The resource that a table belongs to.
    pub(crate) fn owner(&self, table: TableId) -> &Entry {
        &self.entries[self.owners[table.0]]
    }

    /// The resource of a path.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Entry> {
        self.by_path.get(&(group, version, plural)).map(|index| &self.entries[*index])
    }

    /// The resource of an object's kind, in the first version there is.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Entry> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        self.by_kind.get(&(group, kind)).map(|index| &self.entries[*index])
    }

    /// The table of a resource, whatever its version.
    pub(crate) fn table(&self, group: &str, plural: &str) -> Option<TableId> {
        let found = self
            .entries
            .iter()
            .find(|entry| entry.resource.group == group && entry.resource.plural == plural);
        found.and_then(|entry| entry.table)
    }
}
