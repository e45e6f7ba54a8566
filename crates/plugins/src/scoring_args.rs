//! Pieces that the arguments of several scoring plugins share.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use steersman_api::problem::{FieldPath, Problem};

/// The highest score a shape may give; node scores are ten times as fine.
pub const MAX_SHAPE_SCORE: i32 = 10;

/// A resource and how much it counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceSpec {
    /// The resource: `cpu`, `memory`, `example.com/gpu`.
    pub name: String,
    /// Its weight among the others; 0 means 1.
    pub weight: i64,
}

/// One point of a function from utilization to score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ShapePoint {
    /// Utilization in percent.
    pub utilization: i32,
    /// The score there, 0 to [`MAX_SHAPE_SCORE`].
    pub score: i32,
}

/// What is scored unless the user says otherwise: cpu and memory alike.
pub fn default_resources() -> Vec<ResourceSpec> {
    ["cpu", "memory"].map(|name| ResourceSpec { name: name.to_owned(), weight: 1 }).into()
}

/// Replaces an empty list by [`default_resources`] and weights of 0 by 1.
pub fn set_resource_defaults(resources: &mut Vec<ResourceSpec>) {
    if resources.is_empty() {
        *resources = default_resources();
    }
    for resource in resources.iter_mut().filter(|r| r.weight == 0) {
        resource.weight = 1;
    }
}

/// Reports resources that stand in the list twice.
pub fn check_resources_unique(
    resources: &[ResourceSpec],
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) {
    let mut seen = BTreeSet::new();
    for (i, resource) in resources.iter().enumerate() {
        if !seen.insert(&resource.name) {
            let at = at.index(i).field("name");
            problems.push(Problem::duplicate(&at, format_args!("{:?}", resource.name)));
        }
    }
}

/// Reports a shape that is not a function over utilizations from 0 to 100.
pub fn check_shape(shape: &[ShapePoint], at: &FieldPath, problems: &mut Vec<Problem>) {
    if shape.is_empty() {
        problems.push(Problem::required(at, "at least one point"));
    }
    for (i, point) in shape.iter().enumerate() {
        let at = at.index(i);
        if !(0..=100).contains(&point.utilization) {
            problems.push(Problem::invalid(
                &at.field("utilization"),
                point.utilization,
                "0 to 100",
            ));
        }
        if !(0..=MAX_SHAPE_SCORE).contains(&point.score) {
            let allowed = format_args!("0 to {MAX_SHAPE_SCORE}");
            problems.push(Problem::invalid(&at.field("score"), point.score, allowed));
        }
    }
    let unsorted = shape.windows(2).position(|pair| pair[0].utilization >= pair[1].utilization);
    if let Some(i) = unsorted {
        let at = at.index(i + 1).field("utilization");
        let before = shape[i].utilization;
        let allowed = format_args!("more than {before}, as points are sorted by utilization");
        problems.push(Problem::invalid(&at, shape[i + 1].utilization, allowed));
    }
}
