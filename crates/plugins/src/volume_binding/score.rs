//! How well volumes and storage are used.

use std::collections::BTreeMap;

use steersman_api::name::Name;
use steersman_api::node_info::{NodeIdx, NodeInfo};
use steersman_api::quantity::Quantity;
use steersman_framework::extensions::{CycleCtx, PreScore, PrepareCtx, ScorePlugin};
use steersman_framework::verdict::{MAX_NODE_SCORE, PluginError, PreScoreVerdict, Score};

use std::sync::Arc;

use super::VolumeBinding;
use super::needs::Needs;
use super::plan::Plan;
use crate::scoring_args::{MAX_SHAPE_SCORE, ShapePoint};

impl PreScore for VolumeBinding {
    fn pre_score(
        &self,
        ctx: &mut PrepareCtx<'_>,
        _: &[NodeIdx],
    ) -> Result<PreScoreVerdict, PluginError> {
        let chooses = ctx.state.get::<Arc<Needs>>().is_some_and(|needs| !needs.unbound.is_empty());
        Ok(match self.shape.is_some() && chooses {
            true => PreScoreVerdict::Proceed,
            false => PreScoreVerdict::Skip,
        })
    }
}

impl ScorePlugin for VolumeBinding {
    fn score(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<Score, PluginError> {
        Ok(match (&self.shape, Self::plan(ctx, node)) {
            (Some(shape), Some(Ok(plan))) => shape.score(&usage(&plan)),
            _ => 0,
        })
    }
}

/// How much is asked for, and of how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    asked: i64,
    of: i64,
}

/// By storage class: the volumes that are used, or else the storage that
/// volumes are made of.
fn usage(plan: &Plan) -> BTreeMap<&Name, Usage> {
    let mut by_class: BTreeMap<&Name, Usage> = BTreeMap::new();
    for (claim, volume) in &plan.bindings {
        let usage = by_class.entry(&volume.class).or_default();
        usage.asked = usage.asked.saturating_add(claim.request.map_or(0, Quantity::value));
        usage.of = usage.of.saturating_add(volume.capacity.value());
    }
    if !by_class.is_empty() {
        return by_class;
    }
    for (claim, from) in &plan.provisions {
        let Some(left) = from.as_ref().and_then(|capacity| capacity.capacity) else { continue };
        let usage = by_class.entry(&claim.class).or_default();
        usage.asked = usage.asked.saturating_add(claim.request.map_or(0, Quantity::value));
        usage.of = left.value();
    }
    by_class
}

/// A function from utilization in percent to score: straight lines between
/// points, level beyond the first and last one.
pub(super) struct Shape {
    /// Utilization, 0 to 100 and rising, and score, 0 to 100.
    points: Vec<(i64, Score)>,
}

impl Shape {
    pub(super) fn new(shape: &[ShapePoint]) -> Self {
        let scale = MAX_NODE_SCORE / i64::from(MAX_SHAPE_SCORE);
        let point = |p: &ShapePoint| (i64::from(p.utilization), i64::from(p.score) * scale);
        Self { points: shape.iter().map(point).collect() }
    }

    /// The mean over storage classes, rounded half up.
    fn score(&self, by_class: &BTreeMap<&Name, Usage>) -> Score {
        let Ok(n) = i64::try_from(by_class.len()) else { return 0 };
        let sum: Score = by_class.values().map(|usage| self.at(utilization(*usage))).sum();
        if n == 0 { 0 } else { (2 * sum + n) / (2 * n) }
    }

    fn at(&self, utilization: i64) -> Score {
        match self.points.iter().position(|(at, _)| utilization <= *at) {
            Some(0) => self.points[0].1,
            Some(i) => {
                let ((x0, y0), (x1, y1)) = (self.points[i - 1], self.points[i]);
                y0 + (y1 - y0) * (utilization - x0) / (x1 - x0)
            }
            None => self.points.last().map_or(0, |(_, score)| *score),
        }
    }
}

/// In percent; 100 when there is nothing, or not enough.
fn utilization(usage: Usage) -> i64 {
    if usage.of == 0 || usage.asked > usage.of {
        return 100;
    }
    let percent = i128::from(usage.asked) * 100 / i128::from(usage.of);
    i64::try_from(percent).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(points: &[(i32, i32)]) -> Shape {
        let points: Vec<ShapePoint> = points
            .iter()
            .map(|(utilization, score)| ShapePoint { utilization: *utilization, score: *score })
            .collect();
        Shape::new(&points)
    }

    #[test]
    fn score_is_the_mean_over_classes() {
        let shape = shape(&[(0, 0), (100, 10)]);
        let names: [Name; 3] = ["a".into(), "b".into(), "c".into()];
        let score = |usages: &[(i64, i64)]| {
            let usages = usages.iter().map(|(asked, of)| Usage { asked: *asked, of: *of });
            shape.score(&names.iter().zip(usages).collect())
        };
        assert_eq!(score(&[]), 0);
        assert_eq!(score(&[(1, 3)]), 33);
        assert_eq!(score(&[(1, 2), (1, 1)]), 75);
        assert_eq!(score(&[(1, 2), (51, 100)]), 51);
        assert_eq!(score(&[(0, 0)]), 100);
        assert_eq!(score(&[(3, 2)]), 100);
    }

    #[test]
    fn shape_is_straight_between_points_and_level_beyond_them() {
        let shape = shape(&[(20, 0), (50, 10), (80, 3)]);
        for (utilization, expected) in [(0, 0), (20, 0), (35, 50), (50, 100), (65, 65), (100, 30)] {
            assert_eq!(shape.at(utilization), expected, "at {utilization}");
        }
    }
}
