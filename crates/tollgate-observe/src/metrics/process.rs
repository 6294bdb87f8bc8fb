//! Process metrics that every Prometheus client library exports, under the names that dashboards
//! expect.

use std::time::Duration;

/// Statistics of this process from `/proc`; `None` where the system has none.
#[derive(Debug, Default)]
pub(super) struct Process {
    pub(super) cpu: Option<Duration>,
    pub(super) start: Option<Duration>,
    pub(super) resident_bytes: Option<u64>,
    pub(super) virtual_bytes: Option<u64>,
    pub(super) threads: Option<u64>,
    pub(super) open_fds: Option<u64>,
    pub(super) max_fds: Option<u64>,
}

impl Process {
    /// Reads the statistics; empty on systems other than Linux.
    #[cfg(target_os = "linux")]
    pub(super) fn read() -> Self {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let status = text("/proc/self/status");
        let stat = text("/proc/self/stat");
        let boot_s = field(&text("/proc/stat"), "btime");
        let started = ticks(&stat, START_TIME);
        Self {
            cpu: ticks(&stat, USER_TIME).zip(ticks(&stat, SYSTEM_TIME)).map(|(a, b)| a + b),
            start: boot_s.zip(started).map(|(boot_s, after)| Duration::from_secs(boot_s) + after),
            resident_bytes: field(&status, "VmRSS:").map(|kib| kib * 1024),
            virtual_bytes: field(&status, "VmSize:").map(|kib| kib * 1024),
            threads: field(&status, "Threads:"),
            // The directory handle of this read is one of the entries.
            open_fds: std::fs::read_dir("/proc/self/fd")
                .ok()
                .map(|entries| (entries.count() as u64).saturating_sub(1)),
            max_fds: field(&text("/proc/self/limits"), "Max open files"),
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn read() -> Self {
        Self::default()
    }
}

/// Indexes of fields in `/proc/self/stat` after the program name, which may contain spaces and
/// brackets.
const USER_TIME: usize = 11;
const SYSTEM_TIME: usize = 12;
const START_TIME: usize = 19;

/// A time field of `/proc/self/stat`. Linux reports these times in hundredths of a second,
/// independent of the kernel's tick.
#[cfg(target_os = "linux")]
fn ticks(stat: &str, at: usize) -> Option<Duration> {
    let (_, rest) = stat.rsplit_once(')')?;
    let count: u64 = rest.split_ascii_whitespace().nth(at)?.parse().ok()?;
    Some(Duration::from_millis(count.checked_mul(10)?))
}

/// The number that follows a name at the start of a line.
#[cfg(target_os = "linux")]
fn field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
