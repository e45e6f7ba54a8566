//! The three ways to rank nodes by how full they are.

use steersman_api::node_info::NodeInfo;
use steersman_api::resources::{ResourceKind, Resources};
use steersman_framework::registry::InitError;
use steersman_framework::verdict::{MAX_NODE_SCORE, Score};

use super::args::{ScoringStrategy, StrategyType};
use super::usage::Usage;
use crate::scoring_args::{MAX_SHAPE_SCORE, ShapePoint};

/// A [`ScoringStrategy`], ready for use.
pub(super) struct Ranking {
    /// The resources that count, with their weights.
    resources: Vec<(ResourceKind, i64)>,
    rule: Rule,
}

/// How the score of one resource follows from its usage.
enum Rule {
    Least,
    Most,
    ByShape(Shape),
}

impl Ranking {
    pub(super) fn new(strategy: &ScoringStrategy) -> Result<Self, InitError> {
        let shape = strategy.requested_to_capacity_ratio.as_ref();
        let rule = match (strategy.strategy, shape) {
            (Some(StrategyType::LeastAllocated), _) => Rule::Least,
            (Some(StrategyType::MostAllocated), _) => Rule::Most,
            (Some(StrategyType::RequestedToCapacityRatio), Some(ratio)) => {
                Rule::ByShape(Shape::new(&ratio.shape))
            }
            (Some(StrategyType::RequestedToCapacityRatio), None) => {
                let why = "scoringStrategy.requestedToCapacityRatio is missing";
                return Err(InitError(why.to_owned()));
            }
            (None, _) => return Err(InitError("scoringStrategy.type is missing".to_owned())),
        };
        let resources = strategy.resources.iter();
        let resources = resources.map(|r| (ResourceKind::of(&r.name), r.weight)).collect();
        Ok(Self { resources, rule })
    }

    /// The score of `node` for a pod that counts as `asked`.
    pub(super) fn score(&self, asked: &Resources, node: &NodeInfo) -> Score {
        let taken = node.non_zero_requested();
        let usages = self.resources.iter().filter_map(|(kind, weight)| {
            let usage = Usage::of(kind, asked.get(kind), node, taken)?;
            Some((usage, *weight))
        });
        match &self.rule {
            Rule::Least => mean(usages.map(|(usage, weight)| (least_allocated(usage), weight))),
            Rule::Most => mean(usages.map(|(usage, weight)| (most_allocated(usage), weight))),
            Rule::ByShape(shape) => {
                rounded_mean(usages.map(|(usage, weight)| (shape.score(usage), weight)))
            }
        }
    }
}

/// The share that is left, 0 to 100.
fn least_allocated(usage: Usage) -> Score {
    percent(usage.offered.saturating_sub(usage.after), usage.offered)
}

/// The share that is used, 0 to 100.
fn most_allocated(usage: Usage) -> Score {
    percent(usage.after, usage.offered)
}

/// `part` of `whole` in percent, rounded down; 0 when `part` is negative, 100
/// when it is more than `whole`.
fn percent(part: i64, whole: i64) -> Score {
    let part = part.clamp(0, whole);
    match part.checked_mul(MAX_NODE_SCORE) {
        Some(scaled) => scaled / whole,
        // With numbers that large a hundredth of the whole is exact enough.
        None => (part / (whole / MAX_NODE_SCORE)).min(MAX_NODE_SCORE),
    }
}

/// The mean by weight, rounded down; 0 of nothing.
fn mean(scores: impl Iterator<Item = (Score, i64)>) -> Score {
    let (sum, weights) = weigh(scores);
    if weights == 0 { 0 } else { sum / weights }
}

/// The mean by weight of the scores above 0, rounded half up; 0 of nothing.
fn rounded_mean(scores: impl Iterator<Item = (Score, i64)>) -> Score {
    let (sum, weights) = weigh(scores.filter(|(score, _)| *score > 0));
    // Sum and weights are far below 2^53 and the quotient is at most 100.
    if weights == 0 { 0 } else { (sum as f64 / weights as f64).round() as Score }
}

fn weigh(scores: impl Iterator<Item = (Score, i64)>) -> (i64, i64) {
    scores.fold((0, 0), |(sum, weights), (score, weight)| (sum + score * weight, weights + weight))
}

/// A function from utilization in percent to score: straight lines between
/// points, level beyond the first and last one.
struct Shape {
    /// Utilization, 0 to 100 and rising, and score, 0 to 100.
    points: Vec<(i64, Score)>,
}

impl Shape {
    fn new(shape: &[ShapePoint]) -> Self {
        let scale = MAX_NODE_SCORE / i64::from(MAX_SHAPE_SCORE);
        let point = |p: &ShapePoint| (i64::from(p.utilization), i64::from(p.score) * scale);
        Self { points: shape.iter().map(point).collect() }
    }

    fn score(&self, usage: Usage) -> Score {
        self.at(percent(usage.after, usage.offered))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_rounds_down_and_does_not_wrap_around() {
        for (part, whole, expected) in [
            (0, 3, 0),
            (1, 3, 33),
            (2, 3, 66),
            (3, 3, 100),
            (4, 3, 100),
            (-1, 3, 0),
            (i64::MAX, i64::MAX, 100),
            (i64::MAX / 2, i64::MAX, 50),
            (i64::MAX, 1, 100),
        ] {
            assert_eq!(percent(part, whole), expected, "{part} of {whole}");
        }
    }

    #[test]
    fn shape_is_straight_between_points_and_level_beyond_them() {
        let point = |utilization, score| ShapePoint { utilization, score };
        let shape = Shape::new(&[point(20, 0), point(50, 10), point(80, 3)]);
        for (utilization, expected) in
            [(0, 0), (20, 0), (21, 3), (35, 50), (50, 100), (51, 98), (65, 65), (80, 30), (100, 30)]
        {
            assert_eq!(shape.at(utilization), expected, "at {utilization}");
        }
    }
}
