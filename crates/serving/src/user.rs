//! Who asks.

use std::collections::BTreeMap;

/// Everybody whose credentials hold is in this group.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";

/// Somebody whose credentials held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct User {
    /// The name, as `system:serviceaccount:monitoring:prometheus`.
    pub(crate) name: String,
    /// What tells apart users of one name over time. May be empty.
    pub(crate) uid: String,
    /// The groups, in the order in which the source named them.
    pub(crate) groups: Vec<String>,
    /// Further facts for the authoriser.
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The same user, also among those whose credentials hold.
    pub(crate) fn authenticated(mut self) -> Self {
        if !self.groups.iter().any(|group| group == AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// About how many bytes this takes in a cache.
    pub(crate) fn size(&self) -> usize {
        let extra: usize = self
            .extra
            .iter()
            .map(|(key, values)| key.len() + values.iter().map(String::len).sum::<usize>())
            .sum();
        self.name.len()
            + self.uid.len()
            + self.groups.iter().map(String::len).sum::<usize>()
            + extra
    }
}
