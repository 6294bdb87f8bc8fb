//! Quotas: amount, period and algorithm.

mod algorithm;
mod invalid;
mod text;

use crate::limiter::micros;
pub use algorithm::Algorithm;
pub use invalid::InvalidQuota;
use std::hash::{Hash, Hasher};
use std::time::Duration;
use tollgate_core::{Algorithm as _, LimitParams, Rate, algorithm as core};

const SECOND_US: u64 = 1_000_000;
/// The default of [`Quota::with_ttl`].
const TTL_US: u64 = 30 * SECOND_US;

/// An amount, a period and an algorithm.
///
/// ```
/// use std::time::Duration;
/// use tollgate::quota::{Algorithm, Quota};
///
/// const BROWSING: Quota = Quota::per_minute(100);
/// let api = Quota::per_second(20).with_burst(50)?;
/// let exports = Quota::of(3).every(Duration::from_secs(90))?;
/// let exports = exports.with_algorithm(Algorithm::SlidingLog)?;
/// let uploads = Quota::concurrency(4).with_ttl(Duration::from_secs(120))?;
/// let from_a_file: Quota = "100/min".parse()?;
///
/// assert_eq!(from_a_file, BROWSING);
/// assert_eq!(api.to_string(), "20 per second, up to 50 at once (gcra)");
/// # Ok::<(), tollgate::quota::InvalidQuota>(())
/// ```
///
/// A rate alone is always valid. A setting that contradicts another one is an error.
///
/// Zero means nothing: a quota of zero refuses every cost but zero, and the refusal says that no
/// wait can help. No number means "unlimited"; leave the limiter out instead.
///
/// ```
/// use tollgate::{Limiter, Quota};
///
/// let closed = Limiter::new(Quota::per_minute(0));
/// let refusal = closed.check("alice");
/// assert_eq!(refusal.refusal().and_then(|refusal| refusal.retry_after()), None);
/// ```
///
/// A rate without a burst is a sliding window: a client that never pauses gets one unit less per
/// period, and one in two periods of `per_minute(1)`. Give small quotas a
/// [burst](Self::with_burst).
///
/// # What a quota promises
///
/// "100 per minute" is not yet a promise about every minute: the guarantee for any minute, wherever
/// it starts, depends on the algorithm. [`bound`](Self::bound) returns it:
///
/// ```
/// use std::time::Duration;
/// use tollgate::quota::{Algorithm, Quota};
///
/// let minute = Duration::from_secs(60);
/// let quota = Quota::per_minute(100);
/// // A burst at the end of one minute, and a ramp in the next.
/// assert_eq!(quota.bound(minute), Some(199));
/// assert_eq!(quota.with_algorithm(Algorithm::FixedWindow)?.bound(minute), Some(200));
/// assert_eq!(quota.with_algorithm(Algorithm::SlidingLog)?.bound(minute), Some(100));
/// assert_eq!(quota.with_burst(10)?.bound(minute), Some(109));
/// # Ok::<(), tollgate::quota::InvalidQuota>(())
/// ```
#[derive(Clone, Copy)]
pub struct Quota {
    amount: Amount,
    /// The chosen algorithm; `None`: `burst` decides.
    algorithm: Option<Algorithm>,
    burst: Option<u32>,
    queue: Option<u32>,
    /// The resulting parameters.
    params: LimitParams,
}

#[derive(Clone, Copy)]
enum Amount {
    Rate(Rate),
    Slots { count: u32, ttl_us: u64 },
}

/// The units of a quota, from [`Quota::of`].
///
/// ```
/// use std::time::Duration;
/// use tollgate::Quota;
///
/// assert_eq!(Quota::of(5).every(Duration::from_secs(60)), Ok(Quota::per_minute(5)));
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "say how often, with `every`"]
pub struct Units(u32);

impl Units {
    /// Completes the quota: this many units in every `period`, a whole number of microseconds
    /// between 1 ms and 366 days ([example](Quota)).
    pub fn every(self, period: Duration) -> Result<Quota, InvalidQuota> {
        let period_us = whole_us(period).ok_or(InvalidQuota::FractionOfMicrosecond)?;
        Quota::try_new(Amount::Rate(Rate::try_new(self.0.into(), period_us)?), None, None, None)
    }
}

impl Quota {
    /// `units` in every second ([example](Quota)).
    pub const fn per_second(units: u32) -> Self {
        Self::per(units, SECOND_US)
    }

    /// `units` in every minute ([example](Quota)).
    pub const fn per_minute(units: u32) -> Self {
        Self::per(units, 60 * SECOND_US)
    }

    /// `units` in every hour ([example](Quota)).
    pub const fn per_hour(units: u32) -> Self {
        Self::per(units, 3_600 * SECOND_US)
    }

    /// `units` in every day of 24 hours ([example](Quota)).
    pub const fn per_day(units: u32) -> Self {
        Self::per(units, 86_400 * SECOND_US)
    }

    /// Starts a quota with its units: `Quota::of(5).every(Duration::from_millis(250))`
    /// ([example](Quota)).
    pub const fn of(units: u32) -> Units {
        Units(units)
    }

    /// At most `slots` at once. A slot is freed when its [`Reservation`](crate::Reservation) ends,
    /// or after 30 seconds; [`with_ttl`](Self::with_ttl) changes that. A plain check never frees
    /// its slot early, so [reserve](crate::Limiter::reserve) slots instead. A cost counts as that
    /// many slots, so use two limiters for slots and tokens.
    pub const fn concurrency(slots: u32) -> Self {
        let Ok(params) = core::Concurrency::try_new(slots as u64, TTL_US) else { unreachable!() };
        let amount = Amount::Slots { count: slots, ttl_us: TTL_US };
        let params = LimitParams::Concurrency(params);
        Self { amount, algorithm: None, burst: None, queue: None, params }
    }

    /// Creates a quota with the default algorithm. The period must be in range.
    const fn per(units: u32, period_us: u64) -> Self {
        let Ok(rate) = Rate::try_new(units as u64, period_us) else { unreachable!() };
        let params = LimitParams::SlidingWindow(core::SlidingWindow::new(rate));
        Self { amount: Amount::Rate(rate), algorithm: None, burst: None, queue: None, params }
    }

    /// Decides by `algorithm` instead of the default, [`SlidingWindow`](Algorithm::SlidingWindow).
    ///
    /// # Errors
    ///
    /// If an earlier setting does not fit it, such as a burst for a window.
    pub fn with_algorithm(self, algorithm: Algorithm) -> Result<Self, InvalidQuota> {
        Self::try_new(self.amount, Some(algorithm), self.burst, self.queue)
    }

    /// Admits up to `burst` units at once; they are refilled at the quota's rate. If no algorithm
    /// was chosen, this chooses [`Gcra`](Algorithm::Gcra), because a window has no burst.
    ///
    /// # Errors
    ///
    /// If the burst is zero, or the algorithm has none.
    pub fn with_burst(self, burst: u32) -> Result<Self, InvalidQuota> {
        Self::try_new(self.amount, self.algorithm, Some(burst), self.queue)
    }

    /// Admits up to `queue` units ahead of the rate, each with a [`delay`](crate::Permit::delay).
    /// Only for [`LeakyBucket`](Algorithm::LeakyBucket).
    ///
    /// ```
    /// use tollgate::quota::{Algorithm, Quota};
    ///
    /// let paced = Quota::per_second(10).with_algorithm(Algorithm::LeakyBucket)?.with_queue(5)?;
    /// assert_eq!(paced.to_string(), "10 per second, 1 at once and 5 in a queue (leaky-bucket)");
    /// # Ok::<(), tollgate::quota::InvalidQuota>(())
    /// ```
    pub fn with_queue(self, queue: u32) -> Result<Self, InvalidQuota> {
        Self::try_new(self.amount, self.algorithm, self.burst, Some(queue))
    }

    /// Frees a slot after `ttl` unless its reservation ends earlier. Only for
    /// [`Concurrency`](Algorithm::Concurrency). Choose it longer than the longest work.
    pub fn with_ttl(self, ttl: Duration) -> Result<Self, InvalidQuota> {
        let Amount::Slots { count, .. } = self.amount else {
            return Err(InvalidQuota::NoTtl(self.algorithm()));
        };
        let ttl_us = whole_us(ttl).ok_or(InvalidQuota::FractionOfMicrosecond)?;
        Self::try_new(Amount::Slots { count, ttl_us }, self.algorithm, self.burst, self.queue)
    }

    /// The algorithm ([example](Quota)).
    pub const fn algorithm(&self) -> Algorithm {
        Algorithm::of(&self.params)
    }

    /// The largest amount admitted at once, and so the largest possible cost: the units of a
    /// window, the burst with the queue, or the slots ([example](Quota)).
    pub fn capacity(&self) -> u64 {
        self.params.capacity()
    }

    /// The period of the rate; `None` for slots ([example](Quota)).
    pub fn period(&self) -> Option<Duration> {
        match self.amount {
            Amount::Rate(rate) => Some(Duration::from_micros(rate.period_us())),
            Amount::Slots { .. } => None,
        }
    }

    /// The most units that any interval of the length `window` can admit, wherever it starts, net
    /// of units given back. `None` for slots: they bound concurrent work, and short work can reuse
    /// a slot any number of times.
    ///
    /// T is the window in whole microseconds, the resolution of the limiter's clock. N is the
    /// number of units per period P.
    ///
    /// | algorithm | bound | reached |
    /// | --- | --- | --- |
    /// | `sliding-window` | N + ⌊N (T - 2µs) / P⌋ | for windows up to P |
    /// | `fixed-window` | N (1 + ⌈(T - 1µs) / P⌉) | always |
    /// | `sliding-log` | N ⌈T / P⌉ | always |
    /// | `token-bucket`, `gcra` | B + ⌊N (T - 1µs) / P⌋, B the burst | up to B - 1 units per µs |
    /// | `leaky-bucket` | the same, B the burst with the queue | the same |
    /// | any of these with B = 1 | 1 + ⌊(T - 1µs) / E⌋, E = P / N rounded up to whole µs | always |
    ///
    /// An empty window admits nothing, and none admits more than `u64::MAX`. Capacity that a
    /// [reset](crate::Limiter::reset) grants anew is not part of it.
    pub fn bound(&self, window: Duration) -> Option<u64> {
        bound(self, window)
    }

    pub(crate) const fn params(&self) -> &LimitParams {
        &self.params
    }

    fn try_new(
        amount: Amount,
        algorithm: Option<Algorithm>,
        burst: Option<u32>,
        queue: Option<u32>,
    ) -> Result<Self, InvalidQuota> {
        let params = match amount {
            Amount::Rate(rate) => {
                let by_default = match burst {
                    Some(_) => Algorithm::Gcra,
                    None => Algorithm::SlidingWindow,
                };
                params_of_rate(rate, algorithm.unwrap_or(by_default), burst, queue)?
            }
            Amount::Slots { count, ttl_us } => {
                let algorithm = algorithm.unwrap_or(Algorithm::Concurrency);
                if algorithm != Algorithm::Concurrency {
                    return Err(InvalidQuota::NoRate(algorithm));
                }
                no_burst_no_queue(algorithm, burst, queue)?;
                LimitParams::Concurrency(core::Concurrency::try_new(count.into(), ttl_us)?)
            }
        };
        Ok(Self { amount, algorithm, burst, queue, params })
    }
}

fn params_of_rate(
    rate: Rate,
    algorithm: Algorithm,
    burst: Option<u32>,
    queue: Option<u32>,
) -> Result<LimitParams, InvalidQuota> {
    if queue.is_some() && algorithm != Algorithm::LeakyBucket {
        return Err(InvalidQuota::NoQueue(algorithm));
    }
    if !algorithm.has_burst() {
        no_burst_no_queue(algorithm, burst, queue)?;
    }
    let (burst, queue) = (burst.map(u64::from), queue.map(u64::from));
    Ok(match algorithm {
        Algorithm::SlidingWindow => LimitParams::SlidingWindow(core::SlidingWindow::new(rate)),
        Algorithm::FixedWindow => LimitParams::FixedWindow(core::FixedWindow::new(rate)),
        Algorithm::SlidingLog => LimitParams::SlidingLog(core::SlidingLog::new(rate)),
        Algorithm::TokenBucket => {
            LimitParams::TokenBucket(core::TokenBucket::try_new(rate, burst)?)
        }
        Algorithm::Gcra => LimitParams::Gcra(core::Gcra::try_new(rate, burst)?),
        Algorithm::LeakyBucket => {
            LimitParams::LeakyBucket(core::LeakyBucket::try_new(rate, burst, queue)?)
        }
        Algorithm::Concurrency => return Err(InvalidQuota::NoSlots),
    })
}

fn no_burst_no_queue(
    algorithm: Algorithm,
    burst: Option<u32>,
    queue: Option<u32>,
) -> Result<(), InvalidQuota> {
    match (burst, queue) {
        (Some(_), _) => Err(InvalidQuota::NoBurst(algorithm)),
        (_, Some(_)) => Err(InvalidQuota::NoQueue(algorithm)),
        (None, None) => Ok(()),
    }
}

/// The whole microseconds of a duration; `None` if there is a fraction.
fn whole_us(duration: Duration) -> Option<u64> {
    duration.subsec_nanos().is_multiple_of(1_000).then(|| micros(duration))
}

/// Quotas are equal when they decide alike.
impl PartialEq for Quota {
    fn eq(&self, other: &Self) -> bool {
        self.params == other.params
    }
}

impl Eq for Quota {}

impl Hash for Quota {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.params.hash(state);
    }
}

/// See [`Quota::bound`]. A window of T microseconds holds T instants, the first and the last of
/// them T - 1 apart.
fn bound(quota: &Quota, window: Duration) -> Option<u64> {
    let Amount::Rate(rate) = quota.amount else { return None };
    let instants = window.as_nanos().div_ceil(1_000);
    let Some(span) = instants.checked_sub(1) else { return Some(0) };
    let (count, period) = (u128::from(rate.count()), u128::from(rate.period_us()));
    let most = match quota.algorithm() {
        // At the first instant of a window the previous count weighs in full, so the ramp begins an
        // instant later.
        Algorithm::SlidingWindow => count + times_over(count, span.saturating_sub(1), period),
        Algorithm::FixedWindow => count * (1 + span.div_ceil(period)),
        Algorithm::SlidingLog => count * instants.div_ceil(period),
        // A bucket of one is full again at a fraction of a microsecond; the refill until the next
        // whole microsecond is lost.
        _ if quota.capacity() == 1 => 1 + span / period.div_ceil(count),
        _ => u128::from(quota.capacity()) + times_over(count, span, period),
    };
    Some(u64::try_from(most).unwrap_or(u64::MAX))
}

/// Computes `count * span / period`, rounded down. A span has at most 84 bits and a count 32, so
/// the product fits.
fn times_over(count: u128, span: u128, period: u128) -> u128 {
    count * span / period
}
