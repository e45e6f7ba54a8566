//! Names for replicas.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// A name for this process that no other has: the host's name, an underscore,
/// and a random UUID, as Kubernetes' own components write it.
pub fn unique_identity(host: &str) -> String {
    // The keys of `RandomState` come from the operating system's randomness.
    let draw = || u128::from(RandomState::new().build_hasher().finish());
    let bits = (draw() << 64) | draw();
    format!("{host}_{}", uuid(bits))
}

/// A UUID of version 4 from random bits.
fn uuid(bits: u128) -> String {
    let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_differ_and_look_like_those_of_others() {
        assert_eq!(uuid(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(uuid(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        let one = unique_identity("host");
        assert!(one.starts_with("host_") && one.len() == 41, "{one}");
        assert_ne!(one, unique_identity("host"));
    }
}
