//! `--plot`: requests, admissions and refusals over time, as a picture.
//!
//! The picture has one panel for all requests and one for each limit, on a common time axis. A
//! limit's panel shows its own decisions, regardless of other limits, so that limits can be
//! compared on the same traffic.

mod buckets;
mod key_rates;
mod svg;

pub(crate) use buckets::{Buckets, Count};
pub(crate) use key_rates::KeyRates;
pub(crate) use svg::{LeftOut, Legend, Picture};

use key_rates::Rate;
use std::ops::Range;
use tollgate::engine::Row;
use tollgate::engine::limit::{CostRule, Limit};
use tollgate_picture::axis::format_grouped;

/// The most limits that are drawn; the busiest are chosen.
const PANELS_MAX: usize = 32;

/// The counts of a run, and the names of the limits.
#[derive(Debug)]
pub(crate) struct Plot {
    limits: Vec<Panel>,
    /// Counts of all requests first, then of each limit.
    buckets: Buckets,
    /// The rates of each limit's keys.
    rates: Vec<KeyRates>,
}

/// Counts over time, in steps of equal width.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) start_us: u64,
    pub(crate) width_us: u64,
    /// Counts of all requests first, then of each limit.
    pub(crate) counts: Vec<Vec<Count>>,
}

/// One limit's own decision on a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitAnswer {
    /// The index of the limit.
    pub(crate) limit: usize,
    pub(crate) admitted: bool,
    /// A hash of the key.
    pub(crate) key: u64,
    /// The requests that the key's tier allows, and in which time; `None` if the limit has no rate,
    /// or if requests differ in cost.
    pub(crate) rate: Option<Rate>,
}

/// The texts of one limit's panel.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// The name of the limit.
    pub(crate) name: String,
    /// The algorithm, the parameters, the key and the mode.
    pub(crate) description: String,
    /// The names of the lower and the upper part of a bar.
    pub(crate) words: [&'static str; 2],
}

impl Panel {
    /// Creates a panel of admitted and refused requests.
    pub(crate) fn new(name: String, description: String) -> Self {
        Self { name, description, words: ["admitted", "refused"] }
    }

    /// Describes a count in words.
    fn figures(&self, count: Count) -> String {
        let [below, above] = self.words;
        let [admitted, refused] = [count.admitted, count.refused].map(format_grouped);
        format!("{admitted} {below}, {refused} {above}")
    }
}

impl LimitAnswer {
    /// Returns the decision of a row, whose limit must be an element of `limits`.
    pub(crate) fn new(limits: &[Limit], row: &Row<'_>) -> Option<Self> {
        // Bars count requests, so the rate must be in requests too; that works if all cost the
        // same.
        let rate = match row.limit.cost {
            CostRule::Fixed(cost) => row.window_us.map(|us| us.saturating_mul(cost.max(1))),
            _ => None,
        };
        Some(Self {
            limit: limits.element_offset(row.limit)?,
            admitted: row.outcome.admitted,
            key: row.bucket,
            rate: rate.map(|window_us| (row.outcome.limit, window_us)),
        })
    }
}

impl Plot {
    pub(crate) fn new(limits: Vec<Panel>) -> Self {
        let buckets = Buckets::new(limits.len() + 1);
        let rates = limits.iter().map(|_| KeyRates::default()).collect();
        Self { limits, buckets, rates }
    }

    /// Counts one request: the decision, and the own decision of each limit that applied.
    pub(crate) fn count(
        &mut self,
        time_us: u64,
        admitted: bool,
        limits: impl Iterator<Item = LimitAnswer>,
    ) {
        let Self { buckets, rates, .. } = self;
        let counts = buckets.at(time_us);
        let answers = limits.map(|answer| {
            if let (Some(rate), Some(rates)) = (answer.rate, rates.get_mut(answer.limit)) {
                rates.note(answer.key, rate);
            }
            (answer.limit + 1, answer.admitted)
        });
        for (series, admitted) in std::iter::once((0, admitted)).chain(answers) {
            if let Some(count) = counts.get_mut(series) {
                count.count(admitted);
            }
        }
    }

    /// Returns the counts over time, for all requests and for each limit.
    pub(crate) fn series(&self) -> Series {
        let shown = self.buckets.for_show();
        let counts = (0..=self.limits.len()).map(|series| shown.series(series).collect());
        Series { start_us: shown.start_us(), width_us: shown.width_us(), counts: counts.collect() }
    }

    /// Draws the picture with this title.
    pub(crate) fn svg(&self, title: &str) -> String {
        let shown = self.buckets.for_show();
        let (drawn, left_out) = shown.busiest(1..self.limits.len() + 1);
        let description = "admitted when every enforced limit admits";
        let whole = Panel::new("all requests".into(), description.into());
        let about = "a limit's panel shows its own answers";
        let mut picture = Picture::new(title, about, &shown, drawn.len() + 1);
        picture.panel(&whole, shown.series(0), &KeyRates::default());
        for series in drawn {
            let (panel, rates) = (&self.limits[series - 1], &self.rates[series - 1]);
            picture.panel(panel, shown.series(series), rates);
        }
        let labels = ["admitted", "refused (in shadow mode: would be)"];
        picture.finish(&Legend { labels, apart: 1_000 }, left_out)
    }
}

impl Buckets {
    /// Returns the series to draw: first by refusals, then by requests. Also returns how many are
    /// left out.
    pub(crate) fn busiest(&self, series: Range<usize>) -> (Vec<usize>, LeftOut) {
        let all = series.len();
        let mut drawn: Vec<usize> = series.filter(|one| self.total(*one).total() > 0).collect();
        let idle = all - drawn.len();
        drawn.sort_by_cached_key(|one| {
            let total = self.total(*one);
            std::cmp::Reverse((total.refused, total.admitted))
        });
        let minor = drawn.len().saturating_sub(PANELS_MAX);
        drawn.truncate(PANELS_MAX);
        drawn.sort_unstable();
        (drawn, LeftOut { minor, idle })
    }
}

#[cfg(test)]
mod tests;
