//! A copy of the cluster, fed by watches and by the answers to own writes.

mod addresses;
mod kind;
mod store;
mod world;

pub use addresses::Addresses;
pub(crate) use kind::read;
pub use kind::{Kind, Watched};
pub use store::{Change, Key, Store, controller_of, uid};
pub use world::{News, Seen, World};
