//! How evenly resources are used.

use steersman_framework::verdict::{MAX_NODE_SCORE, Score};

/// 100 when all `shares` are the same, less the further they are apart: 100
/// times one minus their standard deviation, rounded down.
///
/// The order of the operations is the reference's, so that rounding agrees.
pub(super) fn evenness(shares: impl Iterator<Item = f64> + Clone) -> Score {
    let (count, total) = shares.clone().fold((0_u32, 0.0), |(n, sum), share| (n + 1, sum + share));
    let deviation = match count {
        0 | 1 => 0.0,
        // Of two the deviation is half of their distance.
        2 => (shares.reduce(|a, b| a - b).unwrap_or_default() / 2.0).abs(),
        _ => {
            let mean = total / f64::from(count);
            let squares = shares.map(|share| (share - mean) * (share - mean));
            (squares.fold(0.0, |sum, square| sum + square) / f64::from(count)).sqrt()
        }
    };
    ((1.0 - deviation) * MAX_NODE_SCORE as f64) as Score
}

#[cfg(test)]
mod tests {
    use super::evenness;

    #[test]
    fn falls_with_the_standard_deviation() {
        for (shares, expected) in [
            (vec![], 100),
            (vec![0.3], 100),
            (vec![0.5, 0.5], 100),
            (vec![0.0, 1.0], 50),
            (vec![1.0, 0.0], 50),
            (vec![0.25, 0.5], 87),
            (vec![0.2, 0.2, 0.2], 100),
            (vec![0.0, 0.0, 1.0], 52),
            (vec![0.0, 0.5, 1.0], 59),
            (vec![0.0, 0.0, 1.0, 1.0], 50),
        ] {
            assert_eq!(evenness(shares.iter().copied()), expected, "{shares:?}");
        }
    }
}
