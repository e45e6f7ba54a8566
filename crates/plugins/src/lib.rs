//! The in-tree plugins: one directory each, and the table that names them.
//!
//! What a plugin may do is the `framework` crate's business, and which of them
//! run is the configuration's. Start with [`table::in_tree`].
//!
//! ```
//! let registry = steersman_plugins::table::in_tree();
//! assert!(registry.get("NodeResourcesFit").is_some());
//! ```

pub mod table;

mod csi_migration;
mod normalize;
mod pod_claims;
pub mod scoring_args;
#[cfg(test)]
mod test_volumes;
#[cfg(test)]
mod volume_hint_tests;

pub mod default_binder;
pub mod default_preemption;
pub mod dynamic_resources;
pub mod image_locality;
pub mod inter_pod_affinity;
pub mod node_affinity;
pub mod node_declared_features;
pub mod node_name;
pub mod node_ports;
pub mod node_resources_balanced_allocation;
pub mod node_resources_fit;
pub mod node_unschedulable;
pub mod node_volume_limits;
pub mod pod_topology_spread;
pub mod priority_sort;
pub mod scheduling_gates;
pub mod taint_toleration;
pub mod volume_binding;
pub mod volume_restrictions;
pub mod volume_zone;
