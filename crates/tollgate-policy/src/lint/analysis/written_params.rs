//! The parameters of a limit as written, for every tier. The compiled parameters have lost some of
//! these distinctions.

use crate::diagnostic::Position;
use crate::grammar;
use crate::raw::{Algorithm, At, Limit, LimitTier};
use tollgate_core::CalendarUnit;
use tollgate_core::written_rate::WrittenRate;

/// The parameters of one tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrittenParams {
    Unlimited,
    Slots {
        slots: u64,
        ttl_us: u64,
    },
    Per {
        count: u64,
        period_us: u64,
        /// The burst, or its default. Only algorithms with a burst use it.
        burst: u64,
        queue: u64,
        /// The unit of calendar windows, if the limit has them.
        calendar: Option<CalendarUnit>,
    },
}

/// The parameters of a limit and its tiers.
pub(crate) struct WrittenParamsByTier<'a> {
    pub(crate) algorithm: Algorithm,
    /// The time zone of calendar windows.
    pub(crate) zone: Option<&'a str>,
    pub(crate) base: (WrittenParams, Position),
    pub(crate) tiers: Vec<(&'a str, WrittenParams, Position)>,
}

const TTL_US: u64 = 30_000_000;

impl<'a> WrittenParamsByTier<'a> {
    /// Reads the parameters of an entry. Their position is that of the burst if there is one, else
    /// of the rate.
    pub(crate) fn new(entry: &'a At<Limit>) -> Self {
        let algorithm = entry.algorithm();
        let zone = entry.time_zone.as_ref().map(|zone| zone.value.0.as_str());
        let written = |text: &str| grammar::rate(text).unwrap_or(WrittenRate::Unlimited);
        let base_rate = entry.rate.as_ref().map(|rate| (written(rate), rate.at));
        let (rate, rate_at) = base_rate.unwrap_or((WrittenRate::Unlimited, entry.at));
        let burst = entry.burst.as_ref().map(|burst| burst.value);
        let queue = entry.queue.as_ref().map_or(0, |queue| queue.value);
        let ttl = entry.ttl.as_ref().and_then(|ttl| grammar::duration_us(ttl).ok());
        let figures = |rate, burst: Option<u64>, queue| match rate {
            WrittenRate::Unlimited => WrittenParams::Unlimited,
            WrittenRate::Slots(slots) => {
                WrittenParams::Slots { slots, ttl_us: ttl.unwrap_or(TTL_US) }
            }
            WrittenRate::Per { count, period_us, unit } => {
                let default = if algorithm == Algorithm::LeakyBucket { 1 } else { count };
                let of_calendar =
                    |unit: &CalendarUnit| zone.is_some() || *unit == CalendarUnit::Month;
                let calendar = unit.filter(of_calendar);
                let burst = burst.unwrap_or(default);
                WrittenParams::Per { count, period_us, burst, queue, calendar }
            }
        };
        let mut tiers = Vec::new();
        for (name, tier) in entry.tiers.iter().flat_map(|tiers| &tiers.0) {
            let (of_tier, at) = match &tier.value {
                LimitTier::Rate(rate) => (figures(written(rate), burst, queue), tier.at),
                LimitTier::Form(form) => {
                    let own = form.rate.as_ref().map_or(rate, |rate| written(rate));
                    let burst = form.burst.as_ref().map(|burst| burst.value).or(burst);
                    let queue = form.queue.as_ref().map_or(queue, |queue| queue.value);
                    let places =
                        [form.burst.as_ref().map(|at| at.at), form.rate.as_ref().map(|at| at.at)];
                    let at = places.into_iter().flatten().next().unwrap_or(tier.at);
                    (figures(own, burst, queue), at)
                }
            };
            tiers.push((name.value.as_str(), of_tier, at));
        }
        let at = entry.burst.as_ref().map_or(rate_at, |burst| burst.at);
        Self { algorithm, zone, base: (figures(rate, burst, queue), at), tiers }
    }

    /// Returns the parameters of a tier: its own, or those of the limit.
    pub(crate) fn of(&self, tier: &str) -> WrittenParams {
        let own = self.tiers.iter().find(|(name, _, _)| *name == tier);
        own.map_or(self.base.0, |(_, figures, _)| *figures)
    }

    /// Whether all tiers have the same period, and so share one count. Unlimited tiers are ignored.
    pub(crate) fn has_one_period(&self) -> bool {
        let period = |figures: &WrittenParams| match figures {
            WrittenParams::Per { period_us, .. } => Some(*period_us),
            WrittenParams::Slots { .. } | WrittenParams::Unlimited => None,
        };
        let all = self.tiers.iter().map(|(_, figures, _)| figures).chain([&self.base.0]);
        let mut periods = all.filter_map(period);
        let first = periods.next();
        periods.all(|period| Some(period) == first)
    }
}
