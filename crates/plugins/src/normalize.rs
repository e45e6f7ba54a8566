//! The two usual ways of bringing scores into 0..=100.

use steersman_framework::extensions::NodeScore;
use steersman_framework::verdict::MAX_NODE_SCORE;

/// Stretches the scores so that the highest is 100. When none is above 0, all
/// stay what they are.
pub(crate) fn stretch(scores: &mut [NodeScore]) {
    let Some(highest) = highest_above_zero(scores) else { return };
    for score in scores {
        score.score = MAX_NODE_SCORE * score.score / highest;
    }
}

/// Stretches penalties and turns them around: the highest penalty becomes 0,
/// no penalty becomes 100.
pub(crate) fn stretch_reversed(penalties: &mut [NodeScore]) {
    let highest = highest_above_zero(penalties);
    for penalty in penalties {
        let stretched = highest.map_or(0, |highest| MAX_NODE_SCORE * penalty.score / highest);
        penalty.score = MAX_NODE_SCORE - stretched;
    }
}

fn highest_above_zero(scores: &[NodeScore]) -> Option<i64> {
    scores.iter().map(|score| score.score).max().filter(|highest| *highest > 0)
}

#[cfg(test)]
mod tests {
    use steersman_api::node_info::NodeIdx;

    use super::*;

    #[track_caller]
    fn check<const N: usize>(
        normalize: fn(&mut [NodeScore]),
        scores: [i64; N],
        expected: [i64; N],
    ) {
        let mut scores = scores.map(|score| NodeScore { node: NodeIdx(0), score });
        normalize(&mut scores);
        assert_eq!(scores.map(|score| score.score), expected);
    }

    #[test]
    fn highest_score_becomes_100_and_the_rest_is_rounded_down() {
        check(stretch, [1, 2, 3], [33, 66, 100]);
        check(stretch, [0, 7], [0, 100]);
        check(stretch, [0, 0], [0, 0]);
        check(stretch, [], []);
    }

    #[test]
    fn highest_penalty_becomes_0_and_none_becomes_100() {
        check(stretch_reversed, [1, 2, 3], [67, 34, 0]);
        check(stretch_reversed, [0, 0], [100, 100]);
        check(stretch_reversed, [], []);
    }
}
