//! Params and state of any algorithm. A new algorithm is a folder and a line in each table here.

use crate::algorithm::{
    Algorithm, Bucket, CalendarWindow, Concurrency, DatedTat, ExpiryLog, FixedWindow, Gcra,
    LeakyBucket, SlidingLog, SlidingWindow, TokenBucket, calendar_window, fixed_window,
    sliding_window, token_bucket,
};
use crate::{Intent, InvalidParams, Outcome, Rate, Receipt};
use core::cmp::Ordering;

/// The params of a limit for one request: its algorithm with rate, burst, queue or slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is named as its type, which says it all")]
pub enum LimitParams {
    FixedWindow(FixedWindow),
    SlidingLog(SlidingLog),
    SlidingWindow(SlidingWindow),
    TokenBucket(TokenBucket),
    LeakyBucket(LeakyBucket),
    Gcra(Gcra),
    Concurrency(Concurrency),
    CalendarWindow(CalendarWindow),
}

/// The state of one key under [`LimitParams`]. State of another algorithm counts as that of a new
/// key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant names the algorithms that use it")]
pub enum LimitState {
    #[default]
    New,
    FixedWindow(fixed_window::State),
    SlidingWindow(sliding_window::State),
    TokenBucket(token_bucket::State),
    Tat(DatedTat),
    ExpiryLog(ExpiryLog),
    CalendarWindow(calendar_window::State),
}

/// Evaluates one expression for the algorithm of the params.
macro_rules! each {
    ($params:expr, $algorithm:ident => $body:expr) => {
        match $params {
            LimitParams::FixedWindow($algorithm) => $body,
            LimitParams::SlidingLog($algorithm) => $body,
            LimitParams::SlidingWindow($algorithm) => $body,
            LimitParams::TokenBucket($algorithm) => $body,
            LimitParams::LeakyBucket($algorithm) => $body,
            LimitParams::Gcra($algorithm) => $body,
            LimitParams::Concurrency($algorithm) => $body,
            LimitParams::CalendarWindow($algorithm) => $body,
        }
    };
}

impl LimitParams {
    /// The name of the algorithm, as in `tollgate.yaml`.
    pub const fn algorithm(&self) -> &'static str {
        match self {
            // For users, a calendar window is a fixed window whose windows differ in length.
            Self::FixedWindow(_) | Self::CalendarWindow(_) => "fixed-window",
            Self::SlidingLog(_) => "sliding-log",
            Self::SlidingWindow(_) => "sliding-window",
            Self::TokenBucket(_) => "token-bucket",
            Self::LeakyBucket(_) => "leaky-bucket",
            Self::Gcra(_) => "gcra",
            Self::Concurrency(_) => "concurrency",
        }
    }

    /// The rate's period, which is part of the state id; zero if there is none.
    pub fn period_us(&self) -> u64 {
        match self {
            Self::Concurrency(_) => 0,
            _ => match self.bucket() {
                Some(bucket) => bucket.period_us(),
                None => self.window_us().unwrap_or(0),
            },
        }
    }

    /// Returns the params for a store without time zones, at about `now_us`: see
    /// [`CalendarWindow::resolve_windows`].
    #[must_use]
    #[inline]
    pub fn resolve_calendar(&self, now_us: u64) -> Self {
        match self {
            Self::CalendarWindow(window) => Self::CalendarWindow(window.resolve_windows(now_us)),
            other => *other,
        }
    }

    /// The units per period; without a period, the capacity.
    pub fn count(&self) -> u64 {
        self.bucket().map_or_else(|| self.capacity(), |bucket| bucket.count().into())
    }

    /// The burst of gcra, token bucket and leaky bucket, if it differs from the rate's count.
    #[inline]
    pub fn burst(&self) -> Option<u64> {
        let bucket = self.bucket()?;
        Some(bucket.burst()).filter(|burst| *burst != u64::from(bucket.count()))
    }

    /// The bucket of gcra, token bucket and leaky bucket.
    pub const fn bucket(&self) -> Option<&Bucket> {
        match self {
            Self::TokenBucket(one) => Some(one.bucket()),
            Self::LeakyBucket(one) => Some(one.bucket()),
            Self::Gcra(one) => Some(one.bucket()),
            _ => None,
        }
    }
}

impl Algorithm for LimitParams {
    type State = LimitState;

    fn capacity(&self) -> u64 {
        each!(self, algorithm => algorithm.capacity())
    }

    fn window_us(&self) -> Option<u64> {
        each!(self, algorithm => algorithm.window_us())
    }

    #[inline]
    fn redate(&self, state: &mut LimitState, now_us: u64) -> bool {
        each!(self, algorithm => StateVariant::if_mut(state).is_some_and(|s| algorithm.redate(s, now_us)))
    }

    fn decide(&self, state: &LimitState, now_us: u64, cost: u64, intent: Intent) -> Outcome {
        each!(self, algorithm => match StateVariant::of(state) {
            Some(state) => algorithm.decide(state, now_us, cost, intent),
            None => algorithm.decide(&Default::default(), now_us, cost, intent),
        })
    }

    fn charge(&self, state: &mut LimitState, now_us: u64, cost: u64) -> Receipt {
        each!(self, algorithm => algorithm.charge(StateVariant::of_mut(state), now_us, cost))
    }

    fn give_back(&self, state: &mut LimitState, now_us: u64, units: u64, receipt: &Receipt) {
        each!(self, algorithm => algorithm.give_back(StateVariant::of_mut(state), now_us, units, receipt));
    }

    fn idle_at_us(&self, state: &LimitState) -> u64 {
        each!(self, algorithm => StateVariant::of(state).map_or(0, |state| algorithm.idle_at_us(state)))
    }
}

/// The variant of [`LimitState`] that belongs to an algorithm.
trait StateVariant: Default {
    fn of(state: &LimitState) -> Option<&Self>;
    fn if_mut(state: &mut LimitState) -> Option<&mut Self>;
    fn of_mut(state: &mut LimitState) -> &mut Self;
}

macro_rules! state_variants {
    ($($variant:ident: $part:ty),*) => {$(
        impl StateVariant for $part {
            fn of(state: &LimitState) -> Option<&Self> {
                match state {
                    LimitState::$variant(part) => Some(part),
                    _ => None,
                }
            }

            fn if_mut(state: &mut LimitState) -> Option<&mut Self> {
                match state {
                    LimitState::$variant(part) => Some(part),
                    _ => None,
                }
            }

            fn of_mut(state: &mut LimitState) -> &mut Self {
                if Self::of(state).is_none() {
                    *state = LimitState::$variant(Self::default());
                }
                match state {
                    LimitState::$variant(part) => part,
                    _ => unreachable!("the variant was set above"),
                }
            }
        }
    )*};
}

state_variants! {
    FixedWindow: fixed_window::State,
    SlidingWindow: sliding_window::State,
    TokenBucket: token_bucket::State,
    Tat: DatedTat,
    ExpiryLog: ExpiryLog,
    CalendarWindow: calendar_window::State
}

impl LimitParams {
    /// Returns the share of each of `nodes`, with every count divided and rounded down, so that the
    /// nodes together keep the limit. A share of zero refuses everything.
    pub fn share(&self, nodes: u32) -> Self {
        let nodes = u64::from(nodes.max(1));
        let nothing = Self::FixedWindow(FixedWindow::new(Rate::NOTHING));
        self.divided(nodes).unwrap_or(nothing)
    }

    /// Returns the same algorithm at another rate; for slots, the rate's count. A bucket, with its
    /// queue, holds no more than before and no more than the count.
    ///
    /// # Errors
    ///
    /// Fails if a bucket would take more than 100 years to refill.
    pub fn at_rate(&self, rate: Rate) -> Result<Self, InvalidParams> {
        let most = u64::from(rate.count().max(1));
        let burst = |one: &Bucket| Some(one.burst().min(most));
        Ok(match self {
            Self::FixedWindow(_) | Self::CalendarWindow(_) => {
                Self::FixedWindow(FixedWindow::new(rate))
            }
            Self::SlidingLog(_) => Self::SlidingLog(SlidingLog::new(rate)),
            Self::SlidingWindow(_) => Self::SlidingWindow(SlidingWindow::new(rate)),
            Self::TokenBucket(one) => {
                Self::TokenBucket(TokenBucket::try_new(rate, burst(one.bucket()))?)
            }
            Self::Gcra(one) => Self::Gcra(Gcra::try_new(rate, burst(one.bucket()))?),
            Self::LeakyBucket(one) => {
                let queue = one.capacity().min(most).saturating_sub(one.bucket().burst());
                let burst = burst(one.bucket());
                Self::LeakyBucket(LeakyBucket::try_new(rate, burst, Some(queue))?)
            }
            Self::Concurrency(slots) => {
                Self::Concurrency(Concurrency::try_new(rate.count().into(), slots.ttl_us())?)
            }
        })
    }

    /// Returns this limit with the largest possible capacity. A peek with it shows how many units
    /// are used, even if none remain. `None` for buckets, whose state is a time.
    #[must_use]
    pub fn widest(&self) -> Option<Self> {
        const NO_PERIOD_US: u64 = 1_000;
        let rate = || Rate::try_new(u32::MAX.into(), self.window_us().unwrap_or(NO_PERIOD_US));
        match self {
            Self::CalendarWindow(window) => Some(Self::CalendarWindow(window.with_limit(u32::MAX))),
            _ if self.bucket().is_some() => None,
            _ => self.at_rate(rate().ok()?).ok(),
        }
    }

    /// Compares with `other` in the long run (units per time) and at once (capacity).
    pub fn compare(&self, other: &Self) -> (Ordering, Ordering) {
        let per = |one: &Self, period_us: u64| u128::from(one.count()) * u128::from(period_us);
        let at_once = self.capacity().cmp(&other.capacity());
        let (ours_us, theirs_us) = (self.period_us(), other.period_us());
        if ours_us == 0 || theirs_us == 0 {
            return (at_once, at_once);
        }
        (per(self, theirs_us).cmp(&per(other, ours_us)), at_once)
    }

    fn divided(&self, nodes: u64) -> Result<Self, InvalidParams> {
        let capacity = self.capacity() / nodes;
        let window = || Rate::try_new(capacity, self.period_us());
        let rate = |one: &Bucket| Rate::try_new(u64::from(one.count()) / nodes, self.period_us());
        Ok(match self {
            Self::FixedWindow(_) => Self::FixedWindow(FixedWindow::new(window()?)),
            Self::SlidingLog(_) => Self::SlidingLog(SlidingLog::new(window()?)),
            Self::SlidingWindow(_) => Self::SlidingWindow(SlidingWindow::new(window()?)),
            Self::TokenBucket(one) => {
                Self::TokenBucket(TokenBucket::try_new(rate(one.bucket())?, Some(capacity))?)
            }
            Self::Gcra(one) => Self::Gcra(Gcra::try_new(rate(one.bucket())?, Some(capacity))?),
            Self::LeakyBucket(one) => {
                let ahead = one.bucket().burst();
                let (burst, queue) = (ahead / nodes, (one.capacity() - ahead) / nodes);
                let rate = rate(one.bucket())?;
                Self::LeakyBucket(LeakyBucket::try_new(rate, Some(burst), Some(queue))?)
            }
            Self::CalendarWindow(window) => {
                let limit = u32::try_from(capacity).map_err(|_| InvalidParams::CountTooLarge)?;
                Self::CalendarWindow(window.with_limit(limit))
            }
            Self::Concurrency(slots) => {
                Self::Concurrency(Concurrency::try_new(capacity, slots.ttl_us())?)
            }
        })
    }
}

#[cfg(test)]
mod tests;
