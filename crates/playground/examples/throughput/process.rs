//! What the kernel says of this process. Everything is zero where there is no
//! `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Time on a processor so far, by the names of threads.
pub(crate) struct Cpu(pub(crate) BTreeMap<String, Duration>);

impl Cpu {
    pub(crate) fn now() -> Self {
        let mut by_name: BTreeMap<String, Duration> = BTreeMap::new();
        for thread in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let read = |file| fs::read_to_string(thread.path().join(file)).unwrap_or_default();
            let name = read("comm").trim().to_owned();
            let nanos = read("schedstat");
            let nanos = nanos.split(' ').next().and_then(|nanos| nanos.parse().ok());
            *by_name.entry(name).or_default() += Duration::from_nanos(nanos.unwrap_or(0));
        }
        Self(by_name)
    }

    pub(crate) fn since(mut self, before: &Self) -> Self {
        for (name, time) in &mut self.0 {
            *time = time.saturating_sub(before.0.get(name).copied().unwrap_or_default());
        }
        self.0.retain(|_, time| *time >= Duration::from_millis(10));
        self
    }

    pub(crate) fn total(&self) -> Duration {
        self.0.values().sum()
    }
}

/// The largest resident set so far.
pub(crate) fn peak_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

/// A runtime whose threads have a name.
pub(crate) fn runtime(name: &str, n_threads: usize) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(n_threads).thread_name(name).enable_all().build()
}
