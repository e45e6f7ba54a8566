//! ImageLocality prefers nodes that hold the pod's images already.
//!
//! # What it does
//! Adds up the sizes of the pod's images that the node holds: of init
//! containers, containers and image volumes. An image counts by the share of
//! nodes that hold it, lest the few nodes with a rare image draw every pod that
//! uses it.
//!
//! # Rejects or scores when
//! Rejects nothing. A sum of 23 MiB or less is worth 0 points and one of
//! 1000 MiB per container, init containers included, or more 100; sums between
//! lie on a line. A name without a tag stands for its `:latest`.
//!
//! # Args
//! None.
//!
//! # Requeue events
//! None: it rejects no pod.
//!
//! # Parity
//! As kube-scheduler v1.36: images of volumes add to the sum and not to the
//! bound, and the size of an image is the one that the first node told.

use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::node::Node;
use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use steersman_framework::cluster::{Cluster, ImageState};
use steersman_framework::extensions::{CycleCtx, Extensions, ScorePlugin};
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;
use steersman_framework::signature::{Scope, Sign, Signable, SignatureBuilder};
use steersman_framework::verdict::{MAX_NODE_SCORE, PluginError, Score};

/// The plugin's name.
pub const NAME: &str = "ImageLocality";

const MIB: i64 = 1024 * 1024;
/// Images of this size together are not worth a point.
const WORTHLESS: i64 = 23 * MIB;
/// More than this per container is not worth more.
const ENOUGH_PER_CONTAINER: i64 = 1000 * MIB;

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    Descriptor::plain(NAME, PointSet::SCORE, |_| {
        let plugin = Arc::new(ImageLocality);
        Ok(Extensions { score: Some(plugin.clone()), sign: Some(plugin), ..Extensions::default() })
    })
}

/// The points for images that count for `bytes`, in a pod of `n_containers`.
fn points(bytes: i64, n_containers: usize) -> Score {
    let n_containers = i64::try_from(n_containers).unwrap_or(i64::MAX).max(1);
    let enough = ENOUGH_PER_CONTAINER.saturating_mul(n_containers);
    let above = bytes.clamp(WORTHLESS, enough) - WORTHLESS;
    MAX_NODE_SCORE.saturating_mul(above) / (enough - WORTHLESS)
}

/// For how many bytes the pod's images on `node` count.
fn bytes_on(node: &Node, pod: &PodInfo, cluster: &Cluster) -> i64 {
    // Untagged names cost an allocation: not for nodes that tell no images.
    if node.images.is_empty() {
        return 0;
    }
    let n_nodes = cluster.nodes().len();
    let images = pod.spec.images.iter().chain(&pod.spec.volume_images);
    images
        .filter_map(|image| {
            let image = tagged(image);
            let state = cluster.images().get(&image)?;
            holds(node, &image).then(|| weighed_size(state, n_nodes))
        })
        .fold(0, i64::saturating_add)
}

/// The name as nodes write it: with a tag or digest.
fn tagged(image: &Name) -> Name {
    // Before the last slash, a colon belongs to the registry's port.
    match image.rfind(':') > image.rfind('/') {
        true => image.clone(),
        false => format!("{image}:latest").into(),
    }
}

fn holds(node: &Node, image: &Name) -> bool {
    node.images.iter().any(|held| held.names.contains(image))
}

/// An image's size times the share of nodes that hold it.
fn weighed_size(image: ImageState, n_nodes: usize) -> i64 {
    // In this order the reference divides, multiplies and cuts off.
    let spread = f64::from(image.n_nodes) / n_nodes as f64;
    (image.size as f64 * spread) as i64
}

struct ImageLocality;

impl ScorePlugin for ImageLocality {
    fn score(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<Score, PluginError> {
        Ok(points(bytes_on(node.node(), ctx.pod, ctx.cluster), ctx.pod.spec.images.len()))
    }

    /// How many nodes hold an image is a matter of all nodes.
    fn scope(&self) -> Scope {
        Scope::Cluster
    }
}

impl Sign for ImageLocality {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        signature.part("images", &pod.spec.images);
        signature.part("volumeImages", &pod.spec.volume_images);
        Signable::Yes
    }
}

#[cfg(test)]
mod tests;
