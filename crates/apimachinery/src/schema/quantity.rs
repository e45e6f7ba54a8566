//! The form in which the API writes quantities: `0.5` is `500m`, `1024Mi` is
//! `1Gi`. Clients compare what they read with what others read, so there is one
//! form only.
//!
//! A quantity is written in the family of suffixes that it was given in, with
//! the largest suffix that leaves a whole number. Texts that the reference keeps
//! because they are near enough to that form (`1.500`, `1e3`) are kept here, too.

/// Powers of ten that have a suffix.
const DECIMAL: [(i32, &str); 10] = [
    (-9, "n"),
    (-6, "u"),
    (-3, "m"),
    (0, ""),
    (3, "k"),
    (6, "M"),
    (9, "G"),
    (12, "T"),
    (15, "P"),
    (18, "E"),
];
/// Suffixes of powers of 1024, from the first on.
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// The finest grain is a billionth.
const FINEST: i32 = -9;
/// As many digits are surely no overflow on the way. Longer texts, of which there
/// are none in practice, stay as they are.
const MOST_DIGITS: usize = 18;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Decimal,
    /// `2e3`.
    Exponent,
    Binary,
}

/// An amount: `mantissa` times ten to the `exponent`.
#[derive(Clone, Copy)]
struct Amount {
    mantissa: i128,
    exponent: i32,
}

/// The canonical form of a quantity; `None` for what is none and for what is
/// canonical already.
pub(super) fn canonical(text: &str) -> Option<String> {
    let trimmed = text.trim();
    let written = write(trimmed)?;
    (written != text).then_some(written)
}

fn write(text: &str) -> Option<String> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number || digits.len() > MOST_DIGITS {
        return None;
    }
    let (family, power) = read_suffix(suffix)?;
    let fraction = i32::try_from(fraction.len()).ok()?;
    let unscaled: i128 = digits.parse().ok()?;
    let mantissa = if text.starts_with('-') { -unscaled } else { unscaled };
    if mantissa == 0 {
        return Some("0".to_owned());
    }
    if family == Family::Binary {
        let factor = 1_i128 << u32::try_from(power).ok()?;
        let amount = Amount { mantissa: mantissa.checked_mul(factor)?, exponent: -fraction };
        return Some(binary(amount.rounded()));
    }
    let exponent = power - fraction;
    let is_kept = exponent >= FINEST
        && exponent % 3 == 0
        && !digits.ends_with("000")
        && !digits.starts_with('0');
    if is_kept {
        return Some(text.to_owned());
    }
    Some(decimal(Amount { mantissa, exponent }.rounded(), family))
}

/// The family of a suffix, and the power of ten, or of two, that it stands for.
fn read_suffix(suffix: &str) -> Option<(Family, i32)> {
    if let Some((power, _)) = DECIMAL.iter().find(|(_, known)| *known == suffix) {
        return Some((Family::Decimal, *power));
    }
    if let Some(at) = BINARY.iter().position(|known| *known == suffix) {
        return Some((Family::Binary, 10 * (i32::try_from(at).ok()? + 1)));
    }
    let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    // Beyond this there is no amount that anybody means.
    (-100..=100).contains(&power).then_some((Family::Exponent, power))
}

impl Amount {
    /// Without anything finer than the finest grain; something is never nothing.
    fn rounded(self) -> Self {
        let mut amount = self;
        let mut is_exact = true;
        while amount.exponent < FINEST {
            is_exact &= amount.mantissa % 10 == 0;
            amount.mantissa /= 10;
            amount.exponent += 1;
        }
        if !is_exact {
            amount.mantissa += self.mantissa.signum();
        }
        amount
    }
}

fn binary(amount: Amount) -> String {
    let Amount { mut mantissa, mut exponent } = amount;
    while exponent < 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    if exponent < 0 || mantissa.abs() < 1024 {
        return decimal(Amount { mantissa, exponent }, Family::Decimal);
    }
    let mut left = mantissa.clamp(-i128::from(i64::MAX), i128::from(i64::MAX));
    let mut suffix = "";
    for larger in BINARY {
        if left % 1024 != 0 {
            break;
        }
        left /= 1024;
        suffix = larger;
    }
    format!("{left}{suffix}")
}

fn decimal(amount: Amount, family: Family) -> String {
    let Amount { mut mantissa, mut exponent } = amount;
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    while exponent % 3 != 0 {
        mantissa *= 10;
        exponent -= 1;
    }
    let suffix = DECIMAL.iter().find(|(power, _)| *power == exponent);
    match suffix {
        Some((_, suffix)) if family == Family::Decimal => format!("{mantissa}{suffix}"),
        _ if exponent == 0 => mantissa.to_string(),
        _ => format!("{mantissa}e{exponent}"),
    }
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn quantities_are_written_as_the_reference_writes_them() {
        for (given, written) in [
            ("0.5", "500m"),
            ("0.10", "100m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("2.0", "2"),
            ("1000", "1k"),
            ("1000000", "1M"),
            ("1234", "1234"),
            ("-0.5", "-500m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1.1Mi", "1153433600m"),
            ("1000Ki", "1000Ki"),
            ("0Gi", "0"),
            ("00", "0"),
            ("1e3", "1e3"),
            ("1E3", "1E3"),
            ("10e3", "10e3"),
            ("1000e3", "1e6"),
            ("1e2", "100"),
            ("1000E", "1e21"),
            ("0.1n", "1n"),
            ("1.0000000001", "1000000001n"),
            (" 1 ", "1"),
            ("1.500", "1.500"),
            ("007", "7"),
            ("8Ei", "9223372036854775807"),
        ] {
            let found = canonical(given);
            assert_eq!(found.as_deref().unwrap_or(given), written, "{given}");
        }
    }

    #[test]
    fn what_is_no_quantity_stays() {
        for text in ["", "-", ".", "1.2.3", "1x", "1e", "1e999", "1ki", &"9".repeat(60)] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }
}
