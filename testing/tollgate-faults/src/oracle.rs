//! Admissions beyond a limit, as the client can prove them. A decision fell somewhere between
//! sending and receiving; only an excess for every possible instant counts.

#[cfg(test)]
mod tests;

/// The largest difference between the clocks of this process and the server.
const SLACK_US: u64 = 1_000;

/// The promise of a limit for one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A number of units in total; the period is far longer than a run.
    Total(u64),
    /// A number of units in every window aligned to the epoch.
    Window {
        /// The units.
        limit: u64,
        /// The length of the window.
        window_us: u64,
    },
    /// A number of units in any interval of this length.
    Sliding {
        /// The units.
        limit: u64,
        /// The length.
        window_us: u64,
    },
    /// A burst, and a rate.
    Bucket {
        /// The units at once.
        burst: u64,
        /// The units per period.
        count: u64,
        /// The period.
        period_us: u64,
    },
}

/// An admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The decision was not earlier.
    pub sent_us: u64,
    /// The decision was not later.
    pub received_us: u64,
    /// The units.
    pub cost: u64,
}

impl Bound {
    /// The units that certainly exceeded the limit of one key, at the worst instant.
    pub fn excess(self, admitted: &[Admitted]) -> u64 {
        match self {
            Self::Total(limit) => {
                admitted.iter().map(|one| one.cost).sum::<u64>().saturating_sub(limit)
            }
            Self::Window { limit, window_us } => in_windows(admitted, limit, window_us),
            Self::Sliding { limit, window_us } => {
                // The entry at the start of an interval no longer counts at its end.
                over_intervals(admitted, |length_us| match length_us < window_us {
                    true => limit,
                    false => u64::MAX,
                })
            }
            Self::Bucket { burst, count, period_us } => {
                let refill = |length_us: u64| u128::from(length_us) * u128::from(count);
                over_intervals(admitted, |length_us| {
                    let refilled = refill(length_us).div_ceil(u128::from(period_us));
                    burst.saturating_add(u64::try_from(refilled).unwrap_or(u64::MAX))
                })
            }
        }
    }
}

fn in_windows(admitted: &[Admitted], limit: u64, window_us: u64) -> u64 {
    let mut counts = std::collections::BTreeMap::<u64, u64>::new();
    for one in admitted {
        let first = one.sent_us.saturating_sub(SLACK_US) / window_us;
        // An admission that may be in either of two windows proves nothing.
        if first == (one.received_us + SLACK_US) / window_us {
            *counts.entry(first).or_default() += one.cost;
        }
    }
    counts.values().map(|count| count.saturating_sub(limit)).max().unwrap_or(0)
}

/// The largest excess over all intervals: the units that certainly fell into an interval, minus the
/// units that its length allows.
fn over_intervals(admitted: &[Admitted], allows: impl Fn(u64) -> u64) -> u64 {
    let mut by_end: Vec<_> = admitted.to_vec();
    by_end.sort_by_key(|one| one.received_us);
    let mut worst = 0;
    for first in admitted {
        let mut count = 0;
        for one in by_end.iter().filter(|one| one.sent_us >= first.sent_us) {
            count += one.cost;
            let length_us = one.received_us - first.sent_us + 2 * SLACK_US;
            worst = worst.max(count.saturating_sub(allows(length_us)));
        }
    }
    worst
}
