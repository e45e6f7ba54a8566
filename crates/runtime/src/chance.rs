//! Seeded chance, and waits that grow.

use std::time::Duration;

/// A small generator (SplitMix64): spreads clients apart in time, nothing more.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// A generator for one purpose; `purpose` keeps two of them apart.
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        // FNV-1a over the purpose, from the seed on.
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(purpose.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, mix))
    }

    /// A number from 0 up to and without 1.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let top = u32::try_from((z ^ (z >> 31)) >> 32).unwrap_or(u32::MAX);
        f64::from(top) / (f64::from(u32::MAX) + 1.0)
    }

    /// A duration between `low` and `high`.
    pub(crate) fn between(&mut self, low: Duration, high: Duration) -> Duration {
        low + high.saturating_sub(low).mul_f64(self.unit())
    }
}

/// A wait that doubles with every failure, with up to its own length of chance
/// on top, until something succeeds.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
    chance: Chance,
}

impl Backoff {
    pub(crate) fn new(first: Duration, longest: Duration, chance: Chance) -> Self {
        Self { first, longest, next: first, chance }
    }

    /// How long to wait now.
    pub(crate) fn wait(&mut self) -> Duration {
        let wait = self.next;
        self.next = (self.next * 2).min(self.longest);
        self.chance.between(wait, wait * 2)
    }

    /// Something succeeded.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_anew_after_success() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(800), ms(30_000), Chance::new(1, "pods"));
        let bases = [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000];
        for base in bases {
            let wait = backoff.wait();
            assert!(wait >= ms(base) && wait < ms(2 * base), "{wait:?} after {base}");
        }
        backoff.reset();
        assert!(backoff.wait() < ms(1600));
    }

    #[test]
    fn purposes_and_seeds_have_chances_of_their_own() {
        let first = |seed, purpose| Chance::new(seed, purpose).unit().to_bits();
        assert_ne!(first(1, "pods"), first(1, "nodes"));
        assert_ne!(first(1, "pods"), first(2, "pods"));
        assert_eq!(first(1, "pods"), first(1, "pods"));
    }
}
