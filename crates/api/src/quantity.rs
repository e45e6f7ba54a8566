//! Kubernetes quantities: `500m`, `1.5Gi`, `2e3`.
//!
//! Source: the API documentation of `resource.Quantity`.

use std::fmt;

use thiserror::Error;

/// Nano-units in one unit; the API's finest grain.
const NANO: i128 = 1_000_000_000;

/// An exact amount, kept in billionths of a unit. Amounts beyond what fits are
/// capped, as the API does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    nanos: i128,
}

/// Why a text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{found:?} is not a quantity: {why}; examples: \"500m\", \"2\", \"1.5Gi\", \"1e3\"")]
pub struct QuantityError {
    /// The text.
    pub found: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0 };

    /// That many whole units.
    pub fn units(units: i64) -> Self {
        Self { nanos: i128::from(units) * NANO }
    }

    /// That many thousandths of a unit.
    pub fn millis(millis: i64) -> Self {
        Self { nanos: i128::from(millis) * (NANO / 1000) }
    }

    /// Reads a quantity. Fractions finer than a billionth are rounded up (away
    /// from zero), as the API does.
    ///
    /// # Errors
    /// When `text` does not follow the grammar: a signed decimal number, then
    /// nothing, one of `n u m k M G T P E`, one of `Ki Mi Gi Ti Pi Ei`, or a
    /// decimal exponent.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let fail = |why| QuantityError { found: text.chars().take(64).collect(), why };
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            Some(_) => (false, text),
            None => return Err(fail("it is empty")),
        };
        let end =
            unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') {
            return Err(fail("it has two decimal points"));
        }
        if whole.is_empty() && fraction.is_empty() {
            return Err(fail("it does not start with a number"));
        }
        let scale = Scale::parse(suffix).ok_or_else(|| fail("its suffix is unknown"))?;
        let nanos = scale.nanos(whole, fraction);
        Ok(Self { nanos: if negative { -nanos } else { nanos } })
    }

    /// The amount in whole units, rounded up, capped to what fits.
    pub fn value(self) -> i64 {
        self.rounded_up(NANO)
    }

    /// The amount in thousandths, rounded up, capped to what fits.
    pub fn milli_value(self) -> i64 {
        self.rounded_up(NANO / 1000)
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// The sum, capped to what fits.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_add(other.nanos) }
    }

    /// The difference, capped to what fits.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_sub(other.nanos) }
    }

    fn rounded_up(self, grain: i128) -> i64 {
        let floor = self.nanos.div_euclid(grain);
        let up = floor + i128::from(self.nanos.rem_euclid(grain) != 0);
        i64::try_from(up).unwrap_or(if up < 0 { i64::MIN } else { i64::MAX })
    }
}

/// What a number is multiplied with.
enum Scale {
    Decimal(i32),
    Binary(u32),
}

impl Scale {
    fn parse(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            exponent => {
                let digits = exponent.strip_prefix(['e', 'E'])?;
                // `parse` would take a second sign after the one it allows.
                let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(digits);
                if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
                    return None;
                }
                let capped = digits.parse().unwrap_or(if digits.starts_with('-') {
                    i32::MIN / 2
                } else {
                    i32::MAX / 2
                });
                Self::Decimal(capped)
            }
        })
    }

    /// `whole.fraction` times this scale in nano-units, rounded up and capped.
    fn nanos(&self, whole: &str, fraction: &str) -> i128 {
        // Trailing zeroes say nothing and would only eat precision.
        let fraction = fraction.trim_end_matches('0');
        let (factor, power) = match self {
            Self::Decimal(power) => (1, *power),
            Self::Binary(bits) => (1_i128 << bits, 0),
        };
        // Digits beyond what leaves room for the factor are dropped.
        let longest = i128::MAX / factor;
        let mut mantissa: i128 = 0;
        let mut lost = false;
        let mut dropped_digits = 0;
        for digit in whole.bytes().chain(fraction.bytes()).map(|b| i128::from(b - b'0')) {
            match mantissa.checked_mul(10).and_then(|m| m.checked_add(digit)) {
                Some(longer) if dropped_digits == 0 && longer <= longest => mantissa = longer,
                _ => {
                    dropped_digits += 1;
                    lost |= digit != 0;
                }
            }
        }
        if mantissa == 0 {
            return 0;
        }
        let fraction_digits = i32::try_from(fraction.len()).unwrap_or(i32::MAX / 2);
        let exponent = power.saturating_add(9).saturating_sub(fraction_digits) + dropped_digits;
        shift_decimal(mantissa * factor, exponent, lost)
    }
}

/// `mantissa × 10^exponent`, rounded up; `lost` tells of digits behind it.
fn shift_decimal(mantissa: i128, exponent: i32, lost: bool) -> i128 {
    let factor = 10_i128.checked_pow(exponent.unsigned_abs());
    if exponent >= 0 {
        let scaled = factor.and_then(|f| mantissa.checked_mul(f)).unwrap_or(i128::MAX);
        return scaled.saturating_add(i128::from(lost));
    }
    let Some(factor) = factor else { return 1 };
    mantissa / factor + i128::from(mantissa % factor != 0 || lost)
}

impl fmt::Display for Quantity {
    /// A plain decimal with a suffix where that is exact: `1500m`, `2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (grain, suffix) in [(NANO, ""), (NANO / 1000, "m"), (1000, "u")] {
            if self.nanos % grain == 0 {
                return f.pad(&format!("{}{suffix}", self.nanos / grain));
            }
        }
        f.pad(&format!("{}n", self.nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, value: i64, milli: i64) {
        let quantity = Quantity::parse(text).expect(text);
        assert_eq!((quantity.value(), quantity.milli_value()), (value, milli), "{text}");
    }

    #[test]
    fn reads_numbers_with_every_suffix() {
        check("0", 0, 0);
        check("2", 2, 2000);
        check("500m", 1, 500);
        check("1500m", 2, 1500);
        check("0.1", 1, 100);
        check(".5", 1, 500);
        check("5.", 5, 5000);
        check("+3", 3, 3000);
        check("1n", 1, 1);
        check("100u", 1, 1);
        check("1k", 1000, 1_000_000);
        check("1Ki", 1024, 1_024_000);
        check("1.5Gi", 1_610_612_736, 1_610_612_736_000);
        check("128M", 128_000_000, 128_000_000_000);
        check("1e3", 1000, 1_000_000);
        check("1E3", 1000, 1_000_000);
        check("12e-3", 1, 12);
        check("-1", -1, -1000);
        check("-100m", 0, -100);
    }

    #[test]
    fn caps_what_does_not_fit() {
        check("8Ei", i64::MAX, i64::MAX);
        check("1e99", i64::MAX, i64::MAX);
        check("1e99999999999999", i64::MAX, i64::MAX);
        check("-1e99", i64::MIN, i64::MIN);
        check("1e-99", 1, 1);
        check("0e99", 0, 0);
        check(&"9".repeat(200), i64::MAX, i64::MAX);
        check(&format!("0.{}1", "0".repeat(200)), 1, 1);
        check(&format!("1.{}", "0".repeat(200)), 1, 1000);
        check(&format!("1.{}Ki", "25".repeat(100)), 1283, 1_282_586);
        check(&format!("1.{}", "25".repeat(100)), 2, 1253);
    }

    #[test]
    fn refuses_what_is_no_quantity() {
        for text in ["", "-", "m", "1.2.3", "1 Gi", "1gi", "1K", "0x10", "1e", "1e+-3", "NaN", "ä"]
        {
            let error = Quantity::parse(text).expect_err(text);
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn displays_so_that_it_reads_back() {
        for text in ["0", "2", "1500m", "3u", "7n", "-100m"] {
            assert_eq!(Quantity::parse(text).expect(text).to_string(), text);
        }
    }
}
