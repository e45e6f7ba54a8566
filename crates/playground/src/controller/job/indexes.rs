//! Sets of numbers as jobs write them: `0,2-4,7`.

use std::collections::BTreeSet;

/// Longer ranges are not from a job.
const MOST: i32 = 1_000_000;

pub(super) fn parse(text: &str) -> BTreeSet<i32> {
    let mut indexes = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<i32>(), last.trim().parse::<i32>())
            && (0..MOST).contains(&first)
            && last < MOST
        {
            indexes.extend(first..=last);
        }
    }
    indexes
}

/// Three or more in a row are a range.
pub(super) fn show(indexes: &BTreeSet<i32>) -> String {
    let mut runs: Vec<(i32, i32)> = Vec::new();
    for &index in indexes {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => runs.push((index, index)),
        }
    }
    let shown = runs.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    });
    shown.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_written_as_they_are_read() {
        for text in ["", "0", "0,1", "1,3-5,7", "2-4,6,7,9-11"] {
            assert_eq!(show(&parse(text)), text);
        }
    }
}
