//! Counts of a run by class: offered, admitted and shed requests, and durations of calls.

use std::fmt;

/// The time between two samples of the limit.
const SAMPLE_US: u64 = 100_000;

/// The counts of all classes.
pub(super) struct ShedTally {
    pub(super) classes: Vec<ClassTally>,
    /// Samples of the adaptive limit, each with its time.
    pub(super) limits: Vec<(u64, u32)>,
    next_sample_us: u64,
}

/// The counts of one class.
pub(super) struct ClassTally {
    pub(super) name: Box<str>,
    /// The arrival times of all requests.
    pub(super) arrived_us: Vec<u64>,
    /// The arrival times and durations of served requests.
    pub(super) served_us: Vec<(u64, u64)>,
    shed: u64,
}

impl ShedTally {
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let class = |name: &str| ClassTally {
            name: name.into(),
            arrived_us: Vec::new(),
            served_us: Vec::new(),
            shed: 0,
        };
        let mut classes: Vec<ClassTally> = names.map(class).collect();
        if classes.is_empty() {
            classes.push(class("requests"));
        }
        Self { classes, limits: Vec::new(), next_sample_us: 0 }
    }

    pub(super) fn offered(&mut self, class: usize, time_us: u64) {
        self.classes[class].arrived_us.push(time_us);
    }

    pub(super) fn shed(&mut self, class: usize) {
        self.classes[class].shed += 1;
    }

    pub(super) fn served(&mut self, class: usize, time_us: u64, took_us: u64) {
        self.classes[class].served_us.push((time_us, took_us));
    }

    /// Samples the limit if a sample is due.
    pub(super) fn sample(&mut self, now_us: u64, limit: impl FnOnce() -> Option<u32>) {
        if now_us >= self.next_sample_us {
            self.next_sample_us = now_us + SAMPLE_US;
            self.limits.extend(limit().map(|limit| (now_us, limit)));
        }
    }
}

/// A percentile of unsorted times; 0 if there are none.
pub(super) fn percentile(times_us: impl Iterator<Item = u64>, percent: usize) -> u64 {
    let mut times_us: Vec<u64> = times_us.collect();
    times_us.sort_unstable();
    times_us.get(times_us.len() * percent / 100).copied().unwrap_or(0)
}

/// Writes the summary, a line for each class.
impl fmt::Display for ShedTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for class in &self.classes {
            let (offered, served) = (class.arrived_us.len(), class.served_us.len());
            let took = |percent| percentile(class.served_us.iter().map(|one| one.1), percent);
            let [p50, p99] = [50, 99].map(|percent| Milliseconds(took(percent)));
            writeln!(
                f,
                "  {}: {offered} offered, {served} admitted, {} shed; latency p50 {p50}, p99 {p99}",
                class.name, class.shed
            )?;
        }
        Ok(())
    }
}

struct Milliseconds(u64);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} ms", self.0 / 1_000, self.0 % 1_000 / 100)
    }
}
