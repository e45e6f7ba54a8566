//! Who this process is.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};

use steersman_runtime::Options;

use super::settled::Settled;

/// How the scheduler runs.
pub(super) fn options(settled: &Settled) -> Options {
    Options {
        qps: settled.qps,
        burst: settled.config.client_connection.burst,
        seed: RandomState::new().build_hasher().finish(),
        identity: host_name(),
        ..Options::default()
    }
}

/// The name of the host, as far as it is known.
#[expect(clippy::disallowed_methods, reason = "the program may read its environment")]
pub(super) fn host_name() -> String {
    let from_kernel = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = from_kernel.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}
