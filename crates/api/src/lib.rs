//! The scheduling view of Kubernetes objects: what plugins and the core read of
//! pods, nodes and the rest, in compact interned form.
//!
//! It does no IO and knows no scheduling rule. Start with [`pod::PodInfo`],
//! [`node::Node`] and [`node_info::NodeInfo`]; [`decode::decode`] makes them
//! from JSON.
//!
//! ```
//! use steersman_api::quantity::Quantity;
//!
//! assert_eq!(Quantity::parse("1.5Gi").map(Quantity::value), Ok(1_610_612_736));
//! ```
#![warn(missing_docs)]

pub mod csi_driver;
pub mod csi_node;
pub mod csi_storage_capacity;
pub mod decode;
pub mod disk;
pub mod disruption;
pub mod duration;
pub mod key;
pub mod labels;
pub mod name;
pub mod namespace;
pub mod node;
pub mod node_info;
pub mod object;
pub mod persistent_volume;
pub mod persistent_volume_claim;
pub mod pod;
pub mod ports;
pub mod problem;
pub mod qualified;
pub mod quantity;
pub mod resources;
pub mod selector;
pub mod storage_class;
pub mod strict;
pub mod taint;
pub mod time;
pub mod volume_attachment;
pub mod wire;
pub mod workload;
