//! The promises of limiters, as exact integer arithmetic, and the judgement of answers.
//!
//! A promise is evaluated with the peer's own admissions as history, so that one mistake does not
//! count twice.

/// The limit that every peer is configured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) count: u64,
    pub(crate) window_us: u64,
}

/// The kinds of promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// A bucket of `count` units, refilled evenly with `count` per window.
    Bucket,
    /// At most `count` in any window, wherever it starts.
    Log,
    /// At most `count` arrivals, refused ones included, in the window before a request.
    Arrivals,
    /// At most `count` in each clock-aligned window.
    Aligned,
    /// At most `count` in a window that begins with the first request after the previous window.
    FromFirst,
    /// The count of the previous clock-aligned window fades while the current one fills.
    SlidingCounter,
    /// Like `SlidingCounter`, with the weighted count rounded down before the comparison.
    RoundedCounter,
}

impl Promise {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Bucket => "a bucket of N, refilled evenly at N per window",
            Self::Log => "at most N in any window",
            Self::Arrivals => {
                "refuses while more than N requests came in the last window, refused ones included"
            }
            Self::Aligned => "at most N in each window of the clock",
            Self::FromFirst => "at most N in a window that begins with its first request",
            Self::SlidingCounter => "N less the last clock window's count, which fades linearly",
            Self::RoundedCounter => "the same, with the weighted count rounded down",
        }
    }
}

/// A promise with its history.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    promise: Promise,
    limit: Limit,
    /// Times and units, oldest first.
    taken: Vec<(u64, u64)>,
    /// For a bucket: the instant at which it is full again, times `count`.
    full_at: u128,
}

impl Keeper {
    pub(crate) fn new(promise: Promise, limit: Limit) -> Self {
        Self { promise, limit, taken: Vec::new(), full_at: 0 }
    }

    /// Whether the promise admits `cost` at this instant.
    pub(crate) fn admits(&self, now_us: u64, cost: u64) -> bool {
        let Limit { count, window_us } = self.limit;
        let (now, wide) = (u128::from(now_us), u128::from(window_us));
        match self.promise {
            Promise::Bucket => {
                let scaled = now * u128::from(count);
                self.full_at.max(scaled) - scaled + u128::from(cost) * wide
                    <= u128::from(count) * wide
            }
            Promise::Log | Promise::Arrivals => {
                self.sum(|at_us| now_us.saturating_sub(at_us) < window_us) + cost <= count
            }
            Promise::Aligned => {
                self.sum(|at_us| at_us / window_us == now_us / window_us) + cost <= count
            }
            Promise::FromFirst => {
                let start_us = self.first_of_window();
                let is_open =
                    start_us.is_some_and(|start_us| now_us.saturating_sub(start_us) < window_us);
                let used = if is_open { self.sum(|at_us| Some(at_us) >= start_us) } else { 0 };
                used + cost <= count
            }
            Promise::SlidingCounter | Promise::RoundedCounter => {
                let index = now_us / window_us;
                let current = self.sum(|at_us| at_us / window_us == index);
                let last = self.sum(|at_us| at_us / window_us + 1 == index);
                let left_us = window_us - now_us % window_us;
                let mut faded = u128::from(last) * u128::from(left_us);
                if self.promise == Promise::RoundedCounter {
                    faded -= faded % wide;
                }
                faded + u128::from(current + cost) * wide <= u128::from(count) * wide
            }
        }
    }

    /// Records the peer's decision.
    pub(crate) fn note(&mut self, now_us: u64, cost: u64, admitted: bool) {
        if admitted || self.promise == Promise::Arrivals {
            let scaled = u128::from(now_us) * u128::from(self.limit.count);
            self.full_at =
                self.full_at.max(scaled) + u128::from(cost) * u128::from(self.limit.window_us);
            self.taken.push((now_us, cost));
        }
    }

    /// The wait until `cost` is admitted; `None` if it never is.
    pub(crate) fn wait_us(&self, now_us: u64, cost: u64) -> Option<u64> {
        if cost > self.limit.count {
            return None;
        }
        let (mut low, mut high) = (0, 4 * self.limit.window_us);
        while low < high {
            let middle = (low + high) / 2;
            match self.admits(now_us + middle, cost) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        Some(low)
    }

    /// The number of single units admitted at this instant.
    pub(crate) fn remaining(&self, now_us: u64) -> u64 {
        (1..=self.limit.count).take_while(|units| self.admits(now_us, *units)).count() as u64
    }

    fn sum(&self, is_in: impl Fn(u64) -> bool) -> u64 {
        self.taken.iter().filter(|(at_us, _)| is_in(*at_us)).map(|(_, cost)| cost).sum()
    }

    fn first_of_window(&self) -> Option<u64> {
        self.taken.iter().fold(None, |start: Option<u64>, (at_us, _)| match start {
            Some(start_us) if at_us.saturating_sub(start_us) < self.limit.window_us => start,
            _ => Some(*at_us),
        })
    }
}

/// A peer's answer to one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) admitted: bool,
    /// The wait in a refusal.
    pub(crate) retry_us: Option<u64>,
    pub(crate) remaining: Option<u64>,
}

/// One played request. Its decision happened between two instants, which are equal on a virtual
/// clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Played {
    pub(crate) from_us: u64,
    pub(crate) to_us: u64,
    pub(crate) cost: u64,
    pub(crate) answer: Answer,
}

/// The number of broken promises of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    /// Units admitted, and units that the promise admits with its own history.
    pub(crate) units: (u64, u64),
    pub(crate) beyond: u64,
    pub(crate) below: u64,
    /// Wrong waits, and all waits.
    pub(crate) retry: (u64, u64),
    /// Wrong remaining units, and all answers with remaining units.
    pub(crate) remaining: (u64, u64),
}

/// Judges a run. `unit_us` is the unit of the peer's waits: rounding up to it is right.
pub(crate) fn judge(promise: Promise, limit: Limit, unit_us: u64, played: &[Played]) -> Counts {
    // The history at the earliest and at the latest possible instants.
    let mut early = Keeper::new(promise, limit);
    let mut late = early.clone();
    let mut alone = early.clone();
    let mut counts = Counts::default();
    for one in played {
        let Played { from_us, to_us, cost, answer } = *one;
        counts.requests += 1;
        let is_promised = alone.admits(from_us, cost);
        alone.note(from_us, cost, is_promised);
        counts.units.0 += if answer.admitted { cost } else { 0 };
        counts.units.1 += if is_promised { cost } else { 0 };
        counts.beyond += u64::from(answer.admitted && !early.admits(to_us, cost));
        counts.below += u64::from(!answer.admitted && late.admits(from_us, cost));
        if let (false, Some(told_us)) = (answer.admitted, answer.retry_us) {
            // A retry follows the arrivals before it, and is an arrival itself.
            let least = early.wait_us(to_us, cost);
            let most = late.wait_us(from_us, cost);
            let is_right = least.is_none_or(|least| told_us >= least)
                && most.is_some_and(|most| told_us < most + unit_us);
            counts.retry.0 += u64::from(!is_right);
            counts.retry.1 += 1;
        }
        early.note(from_us, cost, answer.admitted);
        late.note(to_us, cost, answer.admitted);
        if let Some(told) = answer.remaining {
            let is_right = (late.remaining(from_us)..=early.remaining(to_us)).contains(&told);
            counts.remaining.0 += u64::from(!is_right);
            counts.remaining.1 += 1;
        }
    }
    counts
}

/// Judges a run of threads by its sum alone: the order of decisions is unknown.
pub(crate) fn judge_sum(promise: Promise, limit: Limit, played: &[Played]) -> Counts {
    let first_us = played.iter().map(|one| one.from_us).min().unwrap_or(0);
    let last_us = played.iter().map(|one| one.to_us).max().unwrap_or(0);
    let admitted = played.iter().filter(|one| one.answer.admitted).count() as u64;
    let refill = match promise {
        Promise::Bucket => limit.count * (last_us - first_us) / limit.window_us,
        _ => limit.count * (last_us - first_us).div_ceil(limit.window_us),
    };
    Counts {
        requests: played.len() as u64,
        units: (admitted, limit.count),
        beyond: admitted.saturating_sub(limit.count + refill),
        below: limit.count.saturating_sub(admitted),
        ..Counts::default()
    }
}
