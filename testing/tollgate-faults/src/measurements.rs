//! Measurements of a run.

use crate::load::{Outcome, Sample};
use std::collections::BTreeMap;

/// The measurements of a run, or the worst of several runs. `None`: not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measurements {
    /// Answered requests.
    pub requests: u64,
    /// Units admitted beyond a limit, over all keys.
    pub over_admission: Option<u64>,
    /// Requests with an unexpected answer.
    pub errors: u64,
    /// Requests without an answer.
    pub lost: u64,
    /// Requests that `on_store_failure` answered.
    pub by_policy: u64,
    /// The 99th percentile of latency, before the fault and during it.
    pub p99_us: Option<(u64, u64)>,
    /// From the end of the fault to the last answer without the store.
    pub recovery_us: Option<u64>,
    /// Requests in flight at once, at most.
    pub in_flight_max: u64,
    /// Memory growth of the node that grew most.
    pub rss_growth_kib: Option<u64>,
    /// Requests due per second, and the number of nodes.
    pub asked: Option<(u64, u64)>,
    /// Runnable processes on average, in tenths.
    pub load_tenths: u64,
    /// Measurements of this row alone.
    pub notes: BTreeMap<&'static str, u64>,
}

/// An expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The expectation in words.
    pub what: String,
    /// Whether it held.
    pub held: bool,
    /// Whether it depends on the machine's speed; only full runs judge it.
    pub is_timed: bool,
}

impl Measurements {
    /// The worse value of each.
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

    /// How much the fault added to the 99th percentile.
    pub fn p99_added_us(&self) -> Option<u64> {
        self.p99_us.map(|(without, with)| with.saturating_sub(without))
    }
}

/// The cores that nodes, servers, proxy and clients share.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Runnable processes in the last minute, in tenths.
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

/// A percentile of latency, of requests for which `counts` holds.
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
