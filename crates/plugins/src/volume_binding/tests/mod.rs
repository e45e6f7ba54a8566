//! Tests by what the plugin does: finding volumes, setting them aside and
//! binding them, and its hints.

mod binding;
mod filter;
mod hints;

use serde_json::{Value, json};
use steersman_testing::bench::Bench;
use steersman_testing::node;

use super::*;

/// Nodes a in zone z1 and b in zone z2.
fn bench(objects: impl IntoIterator<Item = Value>) -> Bench {
    Bench::new(&descriptor()).nodes([node("a").zone("z1"), node("b").zone("z2")]).objects(objects)
}

/// A claim of that class.
fn of_class(name: &str, class: &str) -> Value {
    crate::test_volumes::claim(name, json!({"storageClassName": class}))
}

/// A volume of the class `local` in a zone.
fn local_volume(name: &str, zone: &str) -> Value {
    let zone = crate::test_volumes::only_where(steersman_api::node::ZONE_LABEL, zone);
    crate::test_volumes::volume(name, json!({"storageClassName": "local", "nodeAffinity": zone}))
}
