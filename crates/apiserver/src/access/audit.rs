//! Telling what was asked and whether it was allowed.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Told of each decision about a request: that of the request itself, and those
/// about whom it wants to be taken for (verb `impersonate`). What reviews ask,
/// and what is asked before roles are written, is not told.
pub trait Audit: Send + Sync {
    /// A decision was made. Called while the request waits: it must not block.
    fn decided(&self, record: Record);
}

/// A decision about a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    /// Whether it was allowed.
    pub allowed: bool,
    /// The user's name.
    pub user: String,
    /// `list`, `create`; for other paths the HTTP method in small letters.
    pub verb: String,
    /// The API group; empty for the core group and for other paths.
    pub group: String,
    /// The plural, `pods`; empty for other paths.
    pub resource: String,
    /// `binding`; empty if it is the object itself.
    pub subresource: String,
    /// Empty: all, or none.
    pub namespace: String,
    /// Empty: the collection, or a new object.
    pub name: String,
    /// The path, if it is that of no resource.
    pub path: String,
    /// The rule that allowed it; `None` when none had to (`system:masters`,
    /// a server that denies nothing) or none did.
    pub granted_by: Option<GrantedBy>,
}

/// The rule that allowed something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GrantedBy {
    /// `ClusterRoleBinding "name"`, `RoleBinding "name/namespace"`.
    pub binding: String,
    /// `ClusterRole "name"`, `Role "name"`.
    pub role: String,
    /// Which of the role's rules, counted from 0.
    pub rule: usize,
}

/// Remembers decisions, equal ones once with their number. It grows with every
/// name that is asked for: for tests, and for servers that live for a while.
#[derive(Debug, Default)]
pub struct AuditLog {
    records: Mutex<BTreeMap<Record, u64>>,
}

impl AuditLog {
    /// All decisions so far, sorted, with how often each was made.
    pub fn records(&self) -> Vec<(Record, u64)> {
        self.records.lock().iter().map(|(record, n)| (record.clone(), *n)).collect()
    }

    /// What was denied to a user so far.
    pub fn denied(&self, user: &str) -> Vec<Record> {
        self.of(user, false)
    }

    /// What was allowed to a user so far.
    pub fn allowed(&self, user: &str) -> Vec<Record> {
        self.of(user, true)
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.records.lock().clear();
    }

    fn of(&self, user: &str, allowed: bool) -> Vec<Record> {
        let records = self.records.lock();
        let wanted = |record: &&Record| record.user == user && record.allowed == allowed;
        records.keys().filter(wanted).cloned().collect()
    }
}

impl Audit for AuditLog {
    fn decided(&self, record: Record) {
        *self.records.lock().entry(record).or_default() += 1;
    }
}

impl Record {
    /// What was asked, on one line: `create pods/binding in ns named p`.
    pub fn line(&self) -> String {
        let mut line = format!("{} {}{}", self.verb, self.path, self.resource);
        for (separator, text) in [
            ("/", &self.subresource),
            (".", &self.group),
            (" in ", &self.namespace),
            (" named ", &self.name),
        ] {
            if !text.is_empty() {
                line.push_str(separator);
                line.push_str(text);
            }
        }
        line
    }
}
