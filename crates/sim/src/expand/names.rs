//! Names and UIDs of generated objects: drawn from a stable hash instead of at
//! random, so that one input always gives one set of names.

use std::collections::HashSet;

/// What the random part of generated names is made of: no vowels and no digits
/// that look like them, so that it spells no words.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Characters of the random part of a name.
const SUFFIX_LENGTH: usize = 5;
/// Characters that remain of the base of a name, so that all fit in a label.
const MAX_BASE: usize = 63 - SUFFIX_LENGTH;
/// Characters of the hash of a pod template.
const TEMPLATE_HASH_LENGTH: usize = 10;

/// A hash of the parts that is the same on every machine and with every
/// version of the compiler (64-bit FNV-1a, then mixed).
pub(crate) fn hash(parts: &[&str]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut eat = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    for part in parts {
        part.bytes().for_each(&mut eat);
        // A byte that no text holds keeps the parts apart.
        eat(0xff);
    }
    mixed(hash)
}

/// Spreads what differs in a few bits over all bits.
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// `base` and a suffix drawn from `seed`.
pub(crate) fn with_suffix(base: &str, seed: u64) -> String {
    let end = (0..=MAX_BASE.min(base.len())).rev().find(|at| base.is_char_boundary(*at));
    format!("{}{}", &base[..end.unwrap_or(0)], letters(seed, SUFFIX_LENGTH))
}

/// The label value that tells the pods of one template from those of another.
pub(crate) fn template_hash(template: &str) -> String {
    letters(hash(&[template]), TEMPLATE_HASH_LENGTH)
}

/// A UID drawn from the parts (a version 8 UUID of RFC 9562).
pub(crate) fn uid(parts: &[&str]) -> String {
    let high = hash(parts);
    let low = mixed(high ^ 0x9e37_79b9_7f4a_7c15);
    format!(
        "{:08x}-{:04x}-8{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0x0fff,
        0x8000 | ((low >> 48) & 0x3fff),
        low & 0xffff_ffff_ffff,
    )
}

fn letters(mut bits: u64, count: usize) -> String {
    let base = ALPHABET.len() as u64;
    (0..count)
        .map(|_| {
            let letter = char::from(ALPHABET[(bits % base) as usize]);
            bits /= base;
            letter
        })
        .collect()
}

/// The names that are taken, so that none is given twice.
#[derive(Debug, Default)]
pub(crate) struct Names {
    taken: HashSet<(String, String)>,
}

impl Names {
    /// Takes a name; whether it was free.
    pub(crate) fn take(&mut self, namespace: &str, name: &str) -> bool {
        self.taken.insert((namespace.to_owned(), name.to_owned()))
    }

    /// Takes a free name that starts with `base`: the same one whenever the
    /// same names are taken.
    pub(crate) fn generate(&mut self, namespace: &str, base: &str, index: usize) -> String {
        let mut seed = hash(&[namespace, base, &index.to_string()]);
        loop {
            let name = with_suffix(base, seed);
            if self.take(namespace, &name) {
                return name;
            }
            seed = mixed(seed.wrapping_add(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_stable_and_never_repeat() {
        let mut names = Names::default();
        assert_eq!(names.generate("default", "web-", 0), "web-q4mv5");
        let mut taken: Vec<String> =
            (1..20_000).map(|n| names.generate("default", "web-", n)).collect();
        taken.sort();
        taken.dedup();
        assert_eq!(taken.len(), 19_999);
    }

    #[test]
    fn long_base_leaves_room_for_the_suffix() {
        assert_eq!(with_suffix(&"x".repeat(300), 7).len(), 63);
        assert_eq!(with_suffix(&"ä".repeat(300), 7).chars().count(), 29 + SUFFIX_LENGTH);
    }

    #[test]
    fn uid_has_the_form_of_a_uuid() {
        let uid = uid(&["ReplicaSet", "default", "web"]);
        let lengths: Vec<usize> = uid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{uid}");
    }
}
