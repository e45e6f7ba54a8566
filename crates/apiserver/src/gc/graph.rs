//! Who owns whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::{Uid, propagation, split};
use crate::meta;
use crate::registry::Registry;
use crate::store::TableId;
use crate::writes::{FOREGROUND, ORPHAN, Propagation};

/// Objects that own or are owned, by uid.
#[derive(Default)]
pub(super) struct Graph {
    nodes: BTreeMap<Uid, Node>,
    /// Whoever names the key as an owner.
    dependents: BTreeMap<Uid, BTreeSet<Uid>>,
}

struct Node {
    table: TableId,
    key: Arc<str>,
    owners: Vec<Owner>,
    state: State,
}

struct Owner {
    uid: Uid,
    name: String,
    /// The owner's deletion waits for this object's.
    blocks: bool,
    /// Of a kind that is not served here, so nobody can say whether it is gone.
    is_foreign: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Present,
    /// Being deleted, for reasons of its own.
    Terminating,
    /// Being deleted, after its dependents.
    WaitsForDependents,
    /// Being deleted, its dependents are to stay.
    ReleasesDependents,
}

/// What to do about an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Keep,
    Delete(Option<Propagation>),
    /// Its owners are no longer to wait for it.
    Unblock,
    /// Take away these owners.
    Disown(Vec<Uid>),
    /// Nothing is left that it waited for.
    Finish,
    /// Let these go, then itself.
    Release(Vec<Uid>),
    /// These have to go first.
    Wait(Vec<Uid>),
}

impl Graph {
    /// Notes an object as it is now; it and its owners, as far as there may be
    /// something to do about them.
    pub(super) fn see(
        &mut self,
        registry: &Registry,
        table: TableId,
        key: &Arc<str>,
        object: &Value,
    ) -> Vec<Uid> {
        let uid: Uid = Arc::from(meta::uid(object));
        let owners: Vec<Owner> = meta::owner_references(object)
            .iter()
            .map(|reference| {
                let text = |field| reference.get(field).and_then(Value::as_str).unwrap_or("");
                Owner {
                    uid: Arc::from(text("uid")),
                    name: text("name").to_owned(),
                    blocks: reference.get("blockOwnerDeletion") == Some(&Value::Bool(true)),
                    is_foreign: registry.of_kind(text("apiVersion"), text("kind")).is_none(),
                }
            })
            .collect();
        let mut affected = Vec::new();
        if let Some(before) = self.nodes.get(&uid) {
            // Owners that waited for it, and need not any more.
            let waits = |uid: &Uid| owners.iter().any(|owner| owner.uid == *uid && owner.blocks);
            let unblocked = before.owners.iter().filter(|owner| owner.blocks && !waits(&owner.uid));
            affected.extend(unblocked.map(|owner| owner.uid.clone()));
            let gone: Vec<Uid> = before.owners.iter().map(|owner| owner.uid.clone()).collect();
            self.unlink(&uid, gone);
        }
        for owner in &owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(uid.clone());
        }
        let state = state(object);
        let is_interesting = !owners.is_empty() || state != State::Present;
        let node = Node { table, key: key.clone(), owners, state };
        self.nodes.insert(uid.clone(), node);
        affected.extend(is_interesting.then_some(uid));
        affected
    }

    /// Forgets an object that is gone; whoever may have waited for that.
    pub(super) fn remove(&mut self, uid: &str) -> Vec<Uid> {
        let Some((uid, node)) = self.nodes.remove_entry(uid) else { return Vec::new() };
        let owners: Vec<Uid> = node.owners.into_iter().map(|owner| owner.uid).collect();
        self.unlink(&uid, owners.clone());
        let mut affected = owners;
        affected.extend(self.dependents_of(&uid));
        affected
    }

    /// Where an object is.
    pub(super) fn place(&self, uid: &str) -> Option<(TableId, Arc<str>)> {
        self.nodes.get(uid).map(|node| (node.table, node.key.clone()))
    }

    /// What to do about an object.
    pub(super) fn verdict(&self, uid: &Uid) -> Verdict {
        let Some(node) = self.nodes.get(uid) else { return Verdict::Keep };
        match node.state {
            State::ReleasesDependents => Verdict::Release(self.dependents_of(uid).collect()),
            State::WaitsForDependents => {
                let blocking = self.dependents_of(uid).any(|dependent| {
                    let owners = self.nodes.get(&dependent).map(|node| &node.owners);
                    owners.into_iter().flatten().any(|owner| owner.uid == *uid && owner.blocks)
                });
                if blocking { Verdict::Wait(self.undecided(uid)) } else { Verdict::Finish }
            }
            State::Terminating => Verdict::Keep,
            State::Present => self.judge_owners(uid, node),
        }
    }

    fn judge_owners(&self, uid: &Uid, node: &Node) -> Verdict {
        let (mut solid, mut waiting, mut gone) = (0, Vec::new(), Vec::new());
        for owner in &node.owners {
            let found = self.nodes.get(&owner.uid).filter(|found| can_own(found, owner, node));
            match found.map(|found| found.state) {
                Some(State::WaitsForDependents) => waiting.push(owner.uid.clone()),
                Some(_) => solid += 1,
                None if owner.is_foreign => solid += 1,
                None => gone.push(owner.uid.clone()),
            }
        }
        let has_dependents = self.dependents_of(uid).next().is_some();
        match (solid, waiting.is_empty(), gone.is_empty()) {
            (0, true, true) => Verdict::Keep,
            (0, true, false) => Verdict::Delete(Some(Propagation::Background)),
            // In a circle everybody would wait for everybody.
            (0, false, _) if self.is_waited_for_by_dependents(uid, node) => Verdict::Unblock,
            (0, false, _) => Verdict::Delete(propagation(has_dependents)),
            (_, true, true) => Verdict::Keep,
            // With another owner left it stays, and those that go are let go.
            _ => Verdict::Disown(waiting.into_iter().chain(gone).collect()),
        }
    }

    /// Whether an object that owners wait for has dependents that wait themselves:
    /// one of those may be the owner.
    fn is_waited_for_by_dependents(&self, uid: &Uid, node: &Node) -> bool {
        let waits = |dependent: Uid| {
            self.nodes.get(&dependent).is_some_and(|node| node.state == State::WaitsForDependents)
        };
        node.owners.iter().any(|owner| owner.blocks) && self.dependents_of(uid).any(waits)
    }

    /// Dependents that nobody has told to go yet.
    fn undecided(&self, uid: &Uid) -> Vec<Uid> {
        let present = |uid: &Uid| self.nodes.get(uid).is_some_and(|n| n.state == State::Present);
        self.dependents_of(uid).filter(present).collect()
    }

    fn dependents_of(&self, uid: &Uid) -> impl Iterator<Item = Uid> {
        self.dependents.get(uid).into_iter().flatten().cloned()
    }

    fn unlink(&mut self, uid: &Uid, owners: Vec<Uid>) {
        for owner in owners {
            if let Some(dependents) = self.dependents.get_mut(&owner) {
                dependents.remove(uid);
                if dependents.is_empty() {
                    self.dependents.remove(&owner);
                }
            }
        }
    }
}

/// Whether the object that has an owner's uid is the one that the reference
/// names: it has that name, and is in the dependent's namespace or in none.
fn can_own(found: &Node, owner: &Owner, dependent: &Node) -> bool {
    let (namespace, name) = split(&found.key);
    let (own, _) = split(&dependent.key);
    // Nobody can look for the owner of an object without a namespace; it is left
    // in peace.
    name == owner.name && (namespace.is_empty() || own.is_empty() || namespace == own)
}

fn state(object: &Value) -> State {
    if !meta::is_terminating(object) {
        return State::Present;
    }
    let finalizers = meta::finalizers(object);
    if finalizers.contains(&ORPHAN) {
        State::ReleasesDependents
    } else if finalizers.contains(&FOREGROUND) {
        State::WaitsForDependents
    } else {
        State::Terminating
    }
}
