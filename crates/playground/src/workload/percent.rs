//! Numbers that may be given in percent.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Which way a percentage is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// To the greater number.
    Up,
    /// To the smaller number.
    Down,
}

/// The number, for a percentage of `total`. Text that is no percentage is the
/// same as nothing: the API refuses it.
pub(crate) fn resolve(value: Option<&IntOrString>, total: i32, round: Round) -> Option<i32> {
    match value? {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let product = percent.saturating_mul(i64::from(total));
            let rounded = match round {
                Round::Up => product.saturating_add(99).div_euclid(100),
                Round::Down => product.div_euclid(100),
            };
            Some(i32::try_from(rounded).unwrap_or(i32::MAX))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_rounded_as_asked() {
        let quarter = IntOrString::String("25%".to_owned());
        let double = IntOrString::String("200%".to_owned());
        let cases = [
            (&quarter, 10, Round::Up, Some(3)),
            (&quarter, 10, Round::Down, Some(2)),
            (&quarter, 1, Round::Down, Some(0)),
            (&IntOrString::Int(7), 1, Round::Up, Some(7)),
            (&double, i32::MAX, Round::Up, Some(i32::MAX)),
            (&IntOrString::String("many".to_owned()), 1, Round::Up, None),
        ];
        for (value, total, round, expected) in cases {
            assert_eq!(resolve(Some(value), total, round), expected, "{value:?} of {total}");
        }
    }
}
