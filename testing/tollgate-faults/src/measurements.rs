//! Measurements of a run.

use crate::load::{Outcome, Sample};
use std::collections::BTreeMap;

/// The measurements of a run, or the worst of several runs; `None` if not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measurements {
    /// Requests with a response.
    pub requests: u64,
    /// Units admitted beyond a limit, over all keys.
    pub over_admission: Option<u64>,
    /// Requests with an unexpected response.
    pub errors: u64,
    /// Requests without a response.
    pub lost: u64,
    /// Requests that the failure policy answered.
    pub by_policy: u64,
    /// The 99th percentile of latency, before and during the fault.
    pub p99_us: Option<(u64, u64)>,
    /// The time from the end of the fault to the last response without the store.
    pub recovery_us: Option<u64>,
    /// The most requests in flight.
    pub in_flight_max: u64,
    /// The memory growth of the node that grew most.
    pub rss_growth_kib: Option<u64>,
    /// Requests due per second, and the number of nodes.
    pub asked: Option<(u64, u64)>,
    /// The average number of runnable processes, in tenths.
    pub load_tenths: u64,
    /// Measurements of one scenario only.
    pub notes: BTreeMap<&'static str, u64>,
}

/// An expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The expectation, as text.
    pub what: String,
    /// Whether it held.
    pub held: bool,
    /// Whether the expectation depends on the machine's speed; only full runs judge it.
    pub is_timed: bool,
}

impl Measurements {
    /// Returns the worse value of each measurement.
    pub fn worst(self, other: Self) -> Self {
        let mut notes = self.notes;
        for (name, value) in other.notes {
            let note = notes.entry(name).or_default();
            *note = value.max(*note);
        }
        let added = |pair: &(u64, u64)| pair.1.saturating_sub(pair.0);
        Self {
            requests: self.requests + other.requests,
            over_admission: self.over_admission.max(other.over_admission),
            errors: self.errors.max(other.errors),
            lost: self.lost.max(other.lost),
            by_policy: self.by_policy.max(other.by_policy),
            p99_us: self.p99_us.into_iter().chain(other.p99_us).max_by_key(added),
            recovery_us: self.recovery_us.max(other.recovery_us),
            in_flight_max: self.in_flight_max.max(other.in_flight_max),
            rss_growth_kib: self.rss_growth_kib.max(other.rss_growth_kib),
            asked: self.asked.max(other.asked),
            load_tenths: self.load_tenths.max(other.load_tenths),
            notes,
        }
    }

    /// The increase of the 99th percentile during the fault.
    pub fn p99_added_us(&self) -> Option<u64> {
        self.p99_us.map(|(without, with)| with.saturating_sub(without))
    }
}

/// The cores that nodes, servers, proxy and clients share.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The runnable processes in the last minute, in tenths.
pub fn load_tenths() -> u64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut digits = text.split_whitespace().next().unwrap_or_default().split('.');
    let mut number = || digits.next().and_then(|part| part.parse::<u64>().ok());
    number().unwrap_or(0) * 10 + number().unwrap_or(0) / 10
}

/// The 99th percentile of latency of requests due in this interval.
pub fn p99_us(samples: &[Sample], from_us: u64, to_us: u64) -> Option<u64> {
    percentile_us(samples, 99, |sample| (from_us..to_us).contains(&sample.due_us))
}

/// A percentile of latency, of requests for which `counts` returns true.
pub fn percentile_us(
    samples: &[Sample],
    percent: usize,
    counts: impl Fn(&Sample) -> bool,
) -> Option<u64> {
    let counted = samples.iter().filter(|one| one.outcome != Outcome::Lost && counts(one));
    let mut times: Vec<_> = counted.map(|one| one.received_us - one.due_us).collect();
    times.sort_unstable();
    let last = times.len().checked_sub(1)?;
    times.get(last * percent / 100).copied()
}
