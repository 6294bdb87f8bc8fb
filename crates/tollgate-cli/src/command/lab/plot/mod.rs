//! `--plot`: what was asked, admitted and refused over time, as a picture.
//!
//! One panel for the whole stream and one for each limit, above one another on one time axis. A
//! limit's panel shows that limit's own answers, whatever the others said, so that limits can be
//! compared on the same traffic.

mod buckets;
mod key_rates;
mod svg;

pub(in crate::command) use buckets::{Buckets, Count};
pub(in crate::command) use key_rates::KeyRates;
pub(in crate::command) use svg::{LeftOut, Legend, Picture};

use key_rates::Rate;
use std::ops::Range;
use tollgate::engine::Row;
use tollgate::engine::limit::{CostRule, Limit};
use tollgate_picture::axis::format_grouped;

/// The most limits to draw; the busiest are.
const PANELS_MAX: usize = 32;

/// Counts of a run, and what to call them.
#[derive(Debug)]
pub(in crate::command) struct Plot {
    limits: Vec<Panel>,
    /// The whole stream first, then each limit.
    buckets: Buckets,
    /// The keys of each limit.
    rates: Vec<KeyRates>,
}

/// Counts over time, in steps of one width.
#[derive(Clone, Debug)]
pub(in crate::command) struct Series {
    pub(in crate::command) start_us: u64,
    pub(in crate::command) width_us: u64,
    /// All requests first, then each limit.
    pub(in crate::command) counts: Vec<Vec<Count>>,
}

/// One limit's own answer to a request.
#[derive(Clone, Copy, Debug)]
pub(in crate::command) struct LimitAnswer {
    /// Its place in the file.
    pub(in crate::command) limit: usize,
    pub(in crate::command) admitted: bool,
    /// A hash of the key.
    pub(in crate::command) key: u64,
    /// The requests of the key's tier, and in which time; `None` where the limit has no rate, or
    /// requests differ in cost.
    pub(in crate::command) rate: Option<Rate>,
}

/// What is said about one limit.
#[derive(Clone, Debug)]
pub(in crate::command) struct Panel {
    /// Its name.
    pub(in crate::command) name: String,
    /// Algorithm, numbers, key and mode.
    pub(in crate::command) description: String,
    /// What the bars below and those on top of them count.
    pub(in crate::command) words: [&'static str; 2],
}

impl Panel {
    /// A panel of requests that were admitted and refused.
    pub(in crate::command) fn new(name: String, description: String) -> Self {
        Self { name, description, words: ["admitted", "refused"] }
    }

    /// The figures in words, behind those of all requests.
    fn figures(&self, count: Count) -> String {
        let [below, above] = self.words;
        let [admitted, refused] = [count.admitted, count.refused].map(format_grouped);
        format!("{admitted} {below}, {refused} {above}")
    }
}

impl LimitAnswer {
    /// The answer of a row, whose limit is an element of `limits`.
    pub(in crate::command) fn new(limits: &[Limit], row: &Row<'_>) -> Option<Self> {
        // Bars count requests, so a rate is one of requests too, if all cost the same.
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
    pub(in crate::command) fn new(limits: Vec<Panel>) -> Self {
        let buckets = Buckets::new(limits.len() + 1);
        let rates = limits.iter().map(|_| KeyRates::default()).collect();
        Self { limits, buckets, rates }
    }

    /// Counts one request: the answer, and the own answer of each limit that applied.
    pub(in crate::command) fn count(
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

    /// The counts over time: the start, the width of each step, and for all requests, then for
    /// each limit, the counts of every step.
    pub(in crate::command) fn series(&self) -> Series {
        let shown = self.buckets.for_show();
        let counts = (0..=self.limits.len()).map(|series| shown.series(series).collect());
        Series { start_us: shown.start_us(), width_us: shown.width_us(), counts: counts.collect() }
    }

    /// The picture, `title` above it.
    pub(in crate::command) fn svg(&self, title: &str) -> String {
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
    /// The series to draw, in order: those with most refusals, then with most requests.
    pub(in crate::command) fn busiest(&self, series: Range<usize>) -> (Vec<usize>, LeftOut) {
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
