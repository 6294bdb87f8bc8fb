//! Judges admissions alone, by when they happened. It knows the limit and nothing of leases.

use std::collections::BTreeMap;
use tollgate_core::{Algorithm, LimitParams};

/// What was admitted for one key.
#[derive(Debug)]
pub(crate) struct Oracle {
    params: LimitParams,
    /// Whether the store's clock may step, so that windows are of no certain length.
    stepping: bool,
    /// Instant, units that were not cancelled, and the window by the store's clock.
    admissions: Vec<(u64, u64, u64)>,
    /// By window, of fixed windows.
    windows: BTreeMap<u64, u64>,
    /// What the store's losses may cost: by window, and over all.
    excused: BTreeMap<u64, u64>,
    excused_ever: u64,
    /// Of the admissions so far: the units, and the least of `units before * P - r * instant`.
    total: u64,
    least: i128,
}

impl Oracle {
    pub(crate) fn new(params: LimitParams, stepping: bool) -> Self {
        Self {
            params,
            stepping,
            admissions: Vec::new(),
            windows: BTreeMap::new(),
            excused: BTreeMap::new(),
            excused_ever: 0,
            total: 0,
            least: i128::MAX,
        }
    }

    fn is_fixed(&self) -> bool {
        matches!(self.params, LimitParams::FixedWindow(_))
    }

    /// Units that may be admitted at one instant, and units per period: `sum <= burst + rate * time
    /// / period` for every two admissions.
    fn envelope(&self) -> (u64, u64) {
        let capacity = self.params.capacity();
        match &self.params {
            // Two windows meet, and a step may cut a third one short.
            LimitParams::FixedWindow(_) => (2 * capacity, capacity),
            LimitParams::SlidingLog(_) | LimitParams::Concurrency(_) => {
                unreachable!("these are not leased")
            }
            params => (capacity, params.count()),
        }
    }

    pub(crate) fn excuse(&mut self, window: Option<u64>, units: u64) {
        match window {
            Some(window) => *self.excused.entry(window).or_default() += units,
            None => self.excused_ever += units,
        }
    }

    /// Counts an admission at `at_us`, when the store's clock said `clock_us`, and says what is
    /// wrong with it.
    pub(crate) fn admit(&mut self, at_us: u64, clock_us: u64, units: u64) -> Result<usize, String> {
        let window = clock_us / self.params.period_us();
        self.admissions.push((at_us, units, window));
        *self.windows.entry(window).or_default() += units;
        let place = self.admissions.len() - 1;
        // The answer of a store may come after later admissions.
        match self.admissions.iter().any(|one| one.0 > at_us) {
            true => self.keep_all()?,
            false => self.keep(at_us, units)?,
        }
        self.check_window(window)?;
        Ok(place)
    }

    /// Judges all admissions again, in the order in which they happened.
    fn keep_all(&mut self) -> Result<(), String> {
        let mut all: Vec<_> = self.admissions.iter().map(|one| (one.0, one.1)).collect();
        all.sort_unstable();
        (self.total, self.least) = (0, i128::MAX);
        let judged = all.into_iter().map(|(at_us, units)| self.keep(at_us, units));
        judged.collect::<Vec<_>>().into_iter().collect()
    }

    /// An admission that was taken back: the bounds are those of what remains.
    pub(crate) fn cancel(&mut self, place: usize) -> u64 {
        let (_, units, window) = self.admissions[place];
        self.admissions[place].1 = 0;
        *self.windows.entry(window).or_default() -= units;
        // They were within their bounds before, and less is now.
        let _ = self.keep_all();
        units
    }

    fn check_window(&self, window: u64) -> Result<(), String> {
        if !self.is_fixed() || self.stepping {
            return Ok(());
        }
        let excused = self.excused.get(&window).copied().unwrap_or(0) + self.excused_ever;
        let (admitted, limit) = (self.windows[&window], self.params.capacity());
        match admitted <= limit + excused {
            true => Ok(()),
            false => Err(format!(
                "{admitted} admitted in window {window} of {limit}, of which {excused} are excused"
            )),
        }
    }

    fn keep(&mut self, at_us: u64, units: u64) -> Result<(), String> {
        let (burst, rate) = self.envelope();
        let period_us = i128::from(self.params.period_us());
        let passed = i128::from(rate) * i128::from(at_us);
        self.least = self.least.min(i128::from(self.total) * period_us - passed);
        self.total += units;
        let over = i128::from(self.total) * period_us - passed - self.least;
        let excused: u64 = self.excused_ever + self.excused.values().sum::<u64>();
        match over <= i128::from(burst + excused) * period_us {
            true => Ok(()),
            false => Err(format!(
                "{} units more than burst {burst} and rate {rate} allow, of which {excused} are excused",
                over / period_us - i128::from(burst)
            )),
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Instant, units and window of each.
    pub(crate) fn admissions(&self) -> &[(u64, u64, u64)] {
        &self.admissions
    }

    pub(crate) fn windows(&self) -> &BTreeMap<u64, u64> {
        &self.windows
    }
}
