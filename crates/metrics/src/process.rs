//! What the operating system says of this process. Reads `/proc`, so there is
//! nothing elsewhere than on Linux.

use std::fs;

use crate::families::Process;

/// What `/proc/self/stat` says that is of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    /// In ticks, user and system mode.
    cpu_ticks: u64,
    threads: u64,
    /// Ticks after the boot.
    started: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The name of the program stands in parentheses and may contain any.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The first field here is the third of proc(5).
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            cpu_ticks: field(14)? + field(15)?,
            threads: field(20)?,
            started: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// The soft limit of open files.
fn max_open_files(limits: &str) -> Option<i64> {
    let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
    line["Max open files".len()..].split_ascii_whitespace().next()?.parse().ok()
}

/// When the machine was started, in seconds since 1970.
fn boot_time(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

impl Process {
    /// Brings the numbers up to date; what cannot be read stays as it is.
    pub(crate) fn refresh(&self) {
        let read = |path: &str| fs::read_to_string(path).ok();
        let stat = read("/proc/self/stat").and_then(|text| Stat::parse(&text));
        if let Some(stat) = stat {
            self.set(stat, read("/proc/stat").and_then(|text| boot_time(&text)));
        }
        if let Ok(entries) = fs::read_dir("/proc/self/fd") {
            // One of them is the directory itself.
            self.open_fds.set(to_i64(entries.count().saturating_sub(1) as u64));
        }
        if let Some(max) = read("/proc/self/limits").and_then(|text| max_open_files(&text)) {
            self.max_fds.set(max);
        }
    }

    fn set(&self, stat: Stat, boot: Option<u64>) {
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
        let seconds = |ticks: u64| ticks as f64 / ticks_per_second as f64;
        // Counters are never set, only moved on.
        let more = seconds(stat.cpu_ticks) - self.cpu_seconds.get();
        self.cpu_seconds.inc_by(more.max(0.0));
        self.virtual_memory.set(to_i64(stat.virtual_bytes));
        let page = rustix::param::page_size() as u64;
        self.resident_memory.set(to_i64(stat.resident_pages.saturating_mul(page)));
        self.threads.set(to_i64(stat.threads));
        if let Some(boot) = boot {
            self.start_time.set(boot as f64 + seconds(stat.started));
        }
    }
}

fn to_i64(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_linux_says() {
        let mut fields = vec!["S".to_owned()];
        fields.extend((4..=30).map(|n| (n * 100).to_string()));
        let text = format!("42 (a ) b) {}", fields.join(" "));
        let stat = Stat::parse(&text).expect("it is complete");
        assert_eq!(
            stat,
            Stat {
                cpu_ticks: 1400 + 1500,
                threads: 2000,
                started: 2200,
                virtual_bytes: 2300,
                resident_pages: 2400,
            }
        );
        assert_eq!(Stat::parse("42 (a) S 1 2"), None);
        let limits =
            "Limit  Soft  Hard  Units\nMax open files            1024     524288    files\n";
        assert_eq!(max_open_files(limits), Some(1024));
        assert_eq!(max_open_files("Max open files unlimited unlimited files"), None);
        assert_eq!(boot_time("cpu 1 2\nbtime 1700000000\nprocesses 3\n"), Some(1_700_000_000));
    }
}
