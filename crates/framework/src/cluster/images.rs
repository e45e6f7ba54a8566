//! Which container images nodes hold.

use std::collections::HashMap;

use steersman_api::name::Name;
use steersman_api::node::Node;

/// Images by name.
#[derive(Clone, Debug, Default)]
pub struct ImageTable(HashMap<Name, ImageState>);

/// An image that some node holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageState {
    /// Its size in bytes, as the first node told it.
    pub size: i64,
    /// How many nodes hold it.
    pub n_nodes: u32,
}

impl ImageTable {
    /// The image of that name; `None` when no node holds it.
    pub fn get(&self, name: &Name) -> Option<ImageState> {
        self.0.get(name).copied()
    }

    pub(super) fn add(&mut self, node: &Node) {
        for (name, size) in names(node) {
            let state = self.0.entry(name).or_insert(ImageState { size, n_nodes: 0 });
            state.n_nodes += 1;
        }
    }

    pub(super) fn remove(&mut self, node: &Node) {
        for (name, _) in names(node) {
            let Some(state) = self.0.get_mut(&name) else { continue };
            state.n_nodes -= 1;
            if state.n_nodes == 0 {
                self.0.remove(&name);
            }
        }
    }
}

/// Every name of every image of the node once, with the size under which it
/// stands first.
fn names(node: &Node) -> impl Iterator<Item = (Name, i64)> {
    let mut seen = std::collections::BTreeMap::new();
    for image in &node.images {
        for name in &image.names {
            seen.entry(name.clone()).or_insert(image.size);
        }
    }
    seen.into_iter()
}
