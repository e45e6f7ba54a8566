//! The entries of `metadata.managedFields`.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::set::FieldSet;

/// The most entries of plain writes; older ones are put together.
const MAX_UPDATES: usize = 10;

/// What many old writes together are called.
const ANCIENT: &str = "ancient-changes";

/// Who an entry belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Manager {
    pub(super) operation: Operation,
    pub(super) name: String,
    /// Empty for appliers: one that changes to another version stays itself.
    pub(super) api_version: String,
    /// Empty for the main resource.
    pub(super) subresource: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) manager: Manager,
    /// The version that the fields are of.
    pub(super) api_version: String,
    pub(super) time: Option<Timestamp>,
    pub(super) fields: FieldSet,
}

/// All entries of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entries {
    pub(super) all: Vec<Entry>,
}

impl Manager {
    pub(super) fn updater(name: &str, api_version: &str, subresource: &str) -> Self {
        Self {
            operation: Operation::Update,
            name: name.to_owned(),
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    pub(super) fn applier(name: &str, subresource: &str) -> Self {
        Self {
            operation: Operation::Apply,
            name: name.to_owned(),
            api_version: String::new(),
            subresource: subresource.to_owned(),
        }
    }

    /// As conflicts show it: `"kubectl-edit" using apps/v1`.
    pub(super) fn shown(&self) -> String {
        let mut text = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

impl Entries {
    /// Reads `metadata.managedFields`. `None` when an entry is not valid.
    pub(super) fn read(list: &Value) -> Option<Self> {
        let mut entries = Self::default();
        for entry in list.as_array()? {
            let entry = Entry::read(entry)?;
            // Later entries of a manager count, as in a map.
            entries.all.retain(|known| known.manager != entry.manager);
            entries.all.push(entry);
        }
        Some(entries)
    }

    /// The entries of an object; none if they are not valid.
    pub(super) fn of(object: &Value) -> Self {
        object.pointer("/metadata/managedFields").and_then(Self::read).unwrap_or_default()
    }

    /// Writes them, appliers first, then by time. `None` without any.
    pub(super) fn write(mut self) -> Option<Value> {
        if self.all.is_empty() {
            return None;
        }
        self.all.sort_by(|a, b| {
            let key = |entry: &Entry| {
                (entry.manager.operation, entry.time.map_or(0, Timestamp::as_second))
            };
            let name = |entry: &Entry| {
                let subresource = entry.manager.subresource.clone();
                (entry.manager.name.clone(), entry.api_version.clone(), subresource)
            };
            key(a).cmp(&key(b)).then_with(|| name(a).cmp(&name(b)))
        });
        Some(Value::Array(self.all.iter().map(Entry::write).collect()))
    }

    pub(super) fn get(&self, manager: &Manager) -> Option<&Entry> {
        self.all.iter().find(|entry| entry.manager == *manager)
    }

    /// Gives fields to a manager, beside those that it has.
    pub(super) fn give(
        &mut self,
        manager: Manager,
        api_version: &str,
        fields: FieldSet,
        now: Timestamp,
    ) {
        match self.all.iter_mut().find(|entry| entry.manager == manager) {
            Some(entry) => {
                entry.fields.add(fields);
                entry.time = Some(now);
            }
            None => self.all.push(Entry {
                manager,
                api_version: api_version.to_owned(),
                time: Some(now),
                fields,
            }),
        }
    }

    /// Takes fields from everybody. Who has none left is forgotten.
    pub(super) fn take(&mut self, fields: &FieldSet) {
        if !fields.is_empty() {
            for entry in &mut self.all {
                entry.fields = std::mem::take(&mut entry.fields).minus(fields);
            }
        }
        self.all.retain(|entry| !entry.fields.is_empty());
    }

    /// What anybody owns.
    pub(super) fn owned(&self) -> FieldSet {
        self.all.iter().fold(FieldSet::default(), |owned, entry| owned.union(&entry.fields))
    }

    /// Puts the oldest plain writes of each version together until few enough
    /// are left.
    pub(super) fn limit(&mut self) {
        let is_update = |entry: &Entry| entry.manager.operation == Operation::Update;
        let mut count = self.all.iter().filter(|entry| is_update(entry)).count();
        if count <= MAX_UPDATES {
            return;
        }
        self.all.sort_by_key(|entry| {
            (!is_update(entry), entry.time.map(Timestamp::as_second), entry.manager.clone())
        });
        let mut at = 0;
        while count > MAX_UPDATES && self.all.get(at).is_some_and(is_update) {
            let version = self.all[at].api_version.clone();
            let bucket = self.all[..at].iter().position(|known| known.api_version == version);
            match bucket {
                Some(bucket) => {
                    let entry = self.all.remove(at);
                    let bucket = &mut self.all[bucket];
                    bucket.manager = Manager::updater(ANCIENT, &version, "");
                    bucket.fields.add(entry.fields);
                    bucket.time = entry.time;
                    count -= 1;
                }
                None => at += 1,
            }
        }
    }

    /// Whether both are the same but for the times.
    pub(super) fn same_but_for_time(&self, other: &Self) -> bool {
        let mut pairs = [self.clone(), other.clone()];
        for entries in &mut pairs {
            entries.all.iter_mut().for_each(|entry| entry.time = None);
            entries.all.sort_by(|a, b| a.manager.cmp(&b.manager));
        }
        pairs[0] == pairs[1]
    }
}

impl Entry {
    fn read(entry: &Value) -> Option<Self> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        if api_version.is_empty() || text("fieldsType") != "FieldsV1" {
            return None;
        }
        let manager = match text("operation") {
            "Apply" => Manager::applier(text("manager"), text("subresource")),
            "Update" => Manager::updater(text("manager"), api_version, text("subresource")),
            _ => return None,
        };
        let fields = match entry.get("fieldsV1") {
            None | Some(Value::Null) => FieldSet::default(),
            Some(fields) => FieldSet::from_json(fields)?,
        };
        let time = text("time").parse().ok();
        Some(Self { manager, api_version: api_version.to_owned(), time, fields })
    }

    fn write(&self) -> Value {
        let operation = match self.manager.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        let mut entry = Map::new();
        entry.insert("manager".to_owned(), Value::from(self.manager.name.as_str()));
        entry.insert("operation".to_owned(), Value::from(operation));
        entry.insert("apiVersion".to_owned(), Value::from(self.api_version.as_str()));
        if let Some(time) = self.time {
            // In whole seconds, as all times of objects.
            let seconds = Timestamp::from_second(time.as_second()).unwrap_or(time);
            entry.insert("time".to_owned(), Value::from(seconds.to_string()));
        }
        entry.insert("fieldsType".to_owned(), json!("FieldsV1"));
        entry.insert("fieldsV1".to_owned(), self.fields.to_json());
        if !self.manager.subresource.is_empty() {
            entry.insert("subresource".to_owned(), Value::from(self.manager.subresource.as_str()));
        }
        Value::Object(entry)
    }
}
