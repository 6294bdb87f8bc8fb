//! The bucket of gcra, token bucket and leaky bucket: an exact rate, and the theoretical arrival
//! time (TAT) up to which a key has spent.
//!
//! The emission interval is E = period / count. With `E = interval / scale` in lowest terms, every
//! backlog is a whole number of `1/scale` microseconds. So no value is rounded: 7 per minute is
//! exactly that.

use super::muldiv::{BacklogInt, Divisor, div_ceil_wide};
use super::{LEAP_US_MIN, Taken};
use crate::{Intent, InvalidParams, MAX_US, Outcome, Rate, Receipt};

/// The longest time in which a full bucket may drain: 100 years of 365.25 days.
const HORIZON_US: u128 = 36_525 * 86_400 * 1_000_000;

/// The largest scale with which all values fit 64 bits. An instant has 53 bits, so a backlog has
/// 63. A full bucket takes at most 100 years to drain and has 62.
const SCALE_NARROW: u64 = 1 << 10;

/// The instant up to which a key has spent: `us + fraction / scale`. `count` determines the scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tat {
    /// Whole microseconds since the epoch.
    pub us: u64,
    /// The fraction, in units of `1 / scale` microseconds.
    pub fraction: u32,
    /// The rate's count when the fraction was written; meaningless if the fraction is zero.
    pub count: u32,
}

/// A bucket of `capacity` units that drains one unit every E.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// E in units of `1 / scale` microseconds; zero only if the count is zero.
    interval: Divisor,
    scale: Divisor,
    count: u32,
    period_us: u64,
    /// The most units admitted at one instant; zero if the count is zero.
    capacity: u64,
    /// Units that pass without delay; the rest of the capacity queues.
    burst: u64,
    /// The time in which a full bucket drains, rounded up.
    window_us: u64,
    leap_us: u64,
    /// The largest cost that [`take_scaled`](Self::take_scaled) decides: the capacity. Zero with a
    /// queue, without a rate, or if backlogs exceed 64 bits.
    quick_cost_max: u64,
    /// `capacity * E`, scaled; zero if `quick_cost_max` is zero.
    quick_full: u64,
    /// The last instant at which a full bucket drains before [`MAX_US`].
    quick_now_us_max: u64,
}

impl Bucket {
    pub(crate) fn try_new(rate: Rate, burst: u64, queue: u64) -> Result<Self, InvalidParams> {
        let most = u64::from(u32::MAX);
        if burst > most || queue > most {
            return Err(InvalidParams::CountTooLarge);
        }
        let (count, period_us) = (u64::from(rate.count()), rate.period_us());
        if count == 0 {
            let nothing = Self {
                interval: Divisor::new(0),
                scale: Divisor::new(1),
                count: 0,
                period_us,
                capacity: 0,
                burst: 0,
                // The bucket never refills, so any period will do.
                window_us: period_us,
                leap_us: LEAP_US_MIN,
                quick_cost_max: 0,
                quick_full: 0,
                quick_now_us_max: 0,
            };
            return Ok(nothing);
        }
        if burst == 0 {
            return Err(InvalidParams::ZeroBurst);
        }
        let capacity = burst + queue;
        if u128::from(capacity) * u128::from(period_us) > HORIZON_US * u128::from(count) {
            return Err(InvalidParams::HorizonTooFar);
        }
        let common = gcd(count, period_us);
        let (interval, scale) = (period_us / common, count / common);
        let is_quick = scale <= SCALE_NARROW && queue == 0;
        let (quick_cost_max, quick_full) =
            if is_quick { (capacity, capacity * interval) } else { (0, 0) };
        let (interval, scale) = (Divisor::new(interval), Divisor::new(scale));
        let window_us = div_ceil_wide(u128::product(capacity, interval.get()), scale);
        Ok(Self {
            interval,
            scale,
            count: rate.count(),
            period_us,
            capacity,
            burst,
            window_us,
            leap_us: window_us.max(LEAP_US_MIN),
            quick_cost_max,
            quick_full,
            quick_now_us_max: MAX_US - 1 - window_us,
        })
    }

    pub(crate) const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Units that pass without delay; the rest of the capacity queues.
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    pub(crate) const fn queues(&self) -> bool {
        self.capacity > self.burst
    }

    /// The emission interval E, in units of `1 / scale` microseconds.
    pub const fn interval(&self) -> u64 {
        self.interval.get()
    }

    /// The denominator of [`Tat::fraction`]: one if E is a whole number of microseconds.
    pub const fn scale(&self) -> u64 {
        self.scale.get()
    }

    /// The rate's count, which [`Tat::count`] repeats if there is a fraction.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// The rate's period, which is part of the state id.
    pub const fn period_us(&self) -> u64 {
        self.period_us
    }

    /// The time in which a full bucket drains, rounded up.
    #[inline(always)]
    pub const fn window_us(&self) -> u64 {
        self.window_us
    }

    /// The largest backward step of a clock that is waited out: the time in which a full bucket
    /// drains, but at least a second. Without a rate it is a second, since a Lua script does not
    /// know the period then.
    #[inline(always)]
    pub const fn leap_us(&self) -> u64 {
        self.leap_us
    }

    /// `units * E`, scaled.
    #[inline]
    fn span<L: BacklogInt>(&self, units: u64) -> L {
        L::product(units, self.interval.get())
    }

    /// Returns the whole microseconds of a TAT, and its fraction. A fraction written under another
    /// count is rounded up.
    #[inline(always)]
    const fn instant(&self, tat: Tat) -> (u64, u32) {
        match tat.fraction {
            0 => (tat.us, 0),
            fraction if tat.count == self.count => (tat.us, fraction),
            _ => (tat.us + 1, 0),
        }
    }

    /// The time that the key has spent beyond `now_us`, scaled.
    #[inline(always)]
    pub(crate) fn backlog(&self, tat: Tat, now_us: u64) -> u128 {
        let (us, fraction) = self.instant(tat);
        match us.checked_sub(now_us) {
            Some(ahead_us) => {
                u128::from(ahead_us) * u128::from(self.scale.get()) + u128::from(fraction)
            }
            None => 0,
        }
    }

    #[inline(always)]
    fn tat(&self, now_us: u64, backlog: impl BacklogInt) -> Tat {
        let (ahead_us, fraction) = self.whole_us(backlog);
        self.tat_after(now_us, ahead_us, fraction)
    }

    /// Returns the TAT at `ahead_us + fraction / scale` after `now_us`.
    #[inline(always)]
    fn tat_after(&self, now_us: u64, ahead_us: u64, fraction: u64) -> Tat {
        match now_us.checked_add(ahead_us) {
            Some(us) if us < MAX_US => self.tat_at(us, fraction as u32),
            _ => Tat { us: MAX_US, fraction: 0, count: 0 },
        }
    }

    #[inline(always)]
    const fn tat_at(&self, us: u64, fraction: u32) -> Tat {
        Tat { us, fraction, count: if fraction == 0 { 0 } else { self.count } }
    }

    /// Decides at the counted instant, `now_us + ahead_us`. Durations start at `now_us`.
    #[inline(always)]
    pub(crate) fn decide(
        &self,
        backlog: u128,
        ahead_us: u64,
        cost: u64,
        intent: Intent,
    ) -> Outcome {
        if self.scale.get() <= SCALE_NARROW {
            self.decide_at(backlog as u64, ahead_us, cost, intent)
        } else {
            self.decide_wide(backlog, ahead_us, cost, intent)
        }
    }

    #[cold]
    fn decide_wide(&self, backlog: u128, ahead_us: u64, cost: u64, intent: Intent) -> Outcome {
        self.decide_at(backlog, ahead_us, cost, intent)
    }

    #[inline(always)]
    fn decide_at<L: BacklogInt>(
        &self,
        backlog: L,
        ahead_us: u64,
        cost: u64,
        intent: Intent,
    ) -> Outcome {
        let full = self.span::<L>(self.capacity);
        let wanted = backlog + self.span(cost.min(self.capacity));
        let possible = cost <= self.capacity;
        let admitted = cost == 0 || (possible && wanted <= full);
        let after = if admitted && intent == Intent::Take { wanted } else { backlog };
        let delays = self.queues() && admitted && cost > 0;
        let delayed = if delays { wanted.checked_sub(self.span(self.burst)) } else { None };
        let short = if admitted { Some(L::product(0, 0)) } else { wanted.checked_sub(full) };
        let short = if possible { short } else { None };
        let outcome = self.outcome(admitted, short, full, after, ahead_us);
        let delay_us = match delayed {
            Some(span) if span > L::product(0, 0) => self.wait_us(span, ahead_us),
            _ => 0,
        };
        Outcome { delay_us, ..outcome }
    }

    /// Returns the outcome for a backlog of `after` and a cost that lacks `short`. `short` is
    /// `None` if no wait helps.
    // Inlined, so that callers compute only the figures that they read.
    #[inline(always)]
    fn outcome<L: BacklogInt>(
        &self,
        admitted: bool,
        short: Option<L>,
        full: L,
        after: L,
        ahead_us: u64,
    ) -> Outcome {
        // The units that still fit, and the backlog that must drain until one more fits.
        let one = self.span::<L>(1);
        let (remaining, short_of_one) = if after + one > full {
            // As in most refusals: no need to divide.
            (0, after + one - full)
        } else if self.interval.get() > 0 {
            let (units, rest) = (full - after).div_rem(self.interval);
            (units, one - L::product(1, rest))
        } else {
            (0, one)
        };
        let retry_after_us = match short {
            _ if admitted => Some(0),
            Some(span) => Some(self.wait_us(span, ahead_us)),
            None => None,
        };
        Outcome {
            admitted,
            limit: self.capacity,
            remaining,
            retry_after_us,
            reset_after_us: self.wait_us(after, ahead_us),
            delay_us: 0,
            more_after_us: (remaining < self.capacity)
                .then(|| self.wait_us(short_of_one, ahead_us)),
        }
    }

    #[inline(always)]
    fn wait_us(&self, span: impl BacklogInt, ahead_us: u64) -> u64 {
        let us = match self.scale.get() {
            1 => span.to_u64(),
            _ => div_ceil_wide(span, self.scale),
        };
        us.saturating_add(ahead_us)
    }

    /// The whole microseconds of a scaled span, and the fraction.
    #[inline(always)]
    fn whole_us(&self, span: impl BacklogInt) -> (u64, u64) {
        match self.scale.get() {
            // Most rates: E is a whole number of microseconds.
            1 => (span.to_u64(), 0),
            _ => span.div_rem(self.scale),
        }
    }

    /// [`take_scaled`](Self::take_scaled), on a TAT.
    #[inline(always)]
    pub(crate) fn take(&self, tat: &mut Tat, now_us: u64, cost: u64) -> Option<Taken> {
        let (us, fraction) = self.instant(*tat);
        // Wraps only where nothing is taken.
        let mut scaled = us.wrapping_mul(self.scale.get()).wrapping_add(fraction.into());
        let taken = self.take_scaled(&mut scaled, now_us, cost)?;
        if let Taken::Charged(_, receipt) = &taken {
            *tat = self.tat_at(receipt.mark_us, receipt.mark_fraction);
        }
        Some(taken)
    }

    /// Decides and charges, if the bucket has no queue and all values fit 64 bits. The TAT is in
    /// units of `1 / scale` microseconds. An admission proves that it was less than a full bucket
    /// ahead.
    #[inline(always)]
    pub fn take_scaled(&self, tat: &mut u64, now_us: u64, cost: u64) -> Option<Taken> {
        if cost == 0 || cost > self.quick_cost_max || now_us > self.quick_now_us_max {
            return None;
        }
        let now = now_us * self.scale.get();
        let backlog = tat.saturating_sub(now);
        let (full, after) = (self.quick_full, backlog + cost * self.interval.get());
        if after > full {
            let outcome = self.outcome(false, Some(after - full), full, backlog, 0);
            return Some(Taken::Refused(outcome));
        }
        *tat = now + after;
        let (mark_us, fraction) = self.whole_us(*tat);
        let mark_fraction = fraction as u32;
        Some(Taken::Charged(
            self.outcome(true, None, full, after, 0),
            Receipt { cost, at_us: now_us, mark_us, mark_fraction, is_shared: false },
        ))
    }

    /// The TAT in units of `1 / scale` microseconds; `None` if it was written under another count,
    /// or does not fit 63 bits.
    pub fn to_scaled(&self, tat: Tat) -> Option<u64> {
        let fits = self.scale.get() <= SCALE_NARROW
            && tat.us <= MAX_US
            && u64::from(tat.fraction) < self.scale.get()
            && (tat.fraction == 0 || tat.count == self.count);
        fits.then(|| tat.us * self.scale.get() + u64::from(tat.fraction))
    }

    /// The TAT that [`to_scaled`](Self::to_scaled) converted.
    #[inline(always)]
    pub fn from_scaled(&self, scaled: u64) -> Tat {
        let (us, fraction) = self.whole_us(scaled);
        self.tat_at(us, fraction as u32)
    }

    /// Charges `cost` at `now_us`, even beyond the capacity.
    #[inline(always)]
    pub(crate) fn charge(&self, tat: &mut Tat, now_us: u64, cost: u64) -> Receipt {
        let now_us = now_us.min(MAX_US);
        let backlog = self.backlog(*tat, now_us);
        if self.scale.get() <= SCALE_NARROW && (1..=self.capacity).contains(&cost) {
            *tat = self.tat(now_us, backlog as u64 + self.span::<u64>(cost));
        } else if cost > 0 {
            let spent = self.span::<u128>(cost.min(MAX_US));
            *tat = self.tat(now_us, backlog.saturating_add(spent));
        }
        let (mark_us, mark_fraction) = (tat.us, tat.fraction);
        Receipt { cost, at_us: now_us, mark_us, mark_fraction, is_shared: false }
    }

    /// Computes `TAT -= max(0, units * E - (now - charged))`: units that have drained already are
    /// not returned again.
    pub(crate) fn give_back(&self, tat: &mut Tat, now_us: u64, units: u64, receipt: &Receipt) {
        let mark = (receipt.mark_us, receipt.mark_fraction);
        if self.queues() && mark != (tat.us, tat.fraction) {
            return;
        }
        let elapsed =
            u128::from(now_us.saturating_sub(receipt.at_us)) * u128::from(self.scale.get());
        let returned = self.span::<u128>(units.min(MAX_US)).saturating_sub(elapsed);
        if returned == 0 {
            return;
        }
        // Measured from zero, the backlog is the TAT itself, so a TAT in the past moves too.
        let spent = self.backlog(*tat, 0);
        *tat = self.tat(0, spent.saturating_sub(returned));
    }

    pub(crate) fn idle_at_us(&self, tat: Tat) -> u64 {
        tat.us + u64::from(tat.fraction != 0)
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
