//! `--plot`: what was asked, admitted and refused over time, as a picture.
//!
//! One panel for the whole stream and one for each limit, above one another on one time axis. A
//! limit's panel shows that limit's own answers, whatever the others said, so that limits can be
//! compared on the same traffic.

mod buckets;
mod key_rates;
mod svg;

use buckets::Buckets;
pub(in crate::command) use buckets::Count;
use key_rates::{KeyRates, Rate};

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
    /// The rate of the key's tier; `None` where the limit has no rate.
    pub(in crate::command) rate: Option<Rate>,
}

/// What is said about one limit.
#[derive(Clone, Debug, Default)]
pub(in crate::command) struct Panel {
    /// Its name.
    pub(in crate::command) name: String,
    /// Algorithm, numbers, key and mode.
    pub(in crate::command) description: String,
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
                *(if admitted { &mut count.admitted } else { &mut count.refused }) += 1;
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
        let total = |series: usize| {
            shown.series(series).fold(Count::default(), |sum, count| Count {
                admitted: sum.admitted + count.admitted,
                refused: sum.refused + count.refused,
            })
        };
        let mut drawn: Vec<usize> =
            (0..self.limits.len()).filter(|limit| total(limit + 1).total() > 0).collect();
        let idle = self.limits.len() - drawn.len();
        drawn.sort_by_cached_key(|limit| {
            let total = total(limit + 1);
            std::cmp::Reverse((total.refused, total.admitted))
        });
        let left_out = drawn.len().saturating_sub(PANELS_MAX);
        drawn.truncate(PANELS_MAX);
        drawn.sort_unstable();

        let whole = Panel {
            name: "all requests".into(),
            description: "admitted when every enforced limit admits".into(),
        };
        let mut picture = svg::Picture::new(title, &shown, drawn.len() + 1);
        picture.panel(&whole, total(0), shown.series(0), &KeyRates::default());
        for limit in drawn {
            let (panel, rates) = (&self.limits[limit], &self.rates[limit]);
            picture.panel(panel, total(limit + 1), shown.series(limit + 1), rates);
        }
        picture.finish(left_out, idle)
    }
}

#[cfg(test)]
mod tests;
