//! Runs the requests of one source through every algorithm and an exact limiter.

use crate::contestant::{Contestant, Limit};
use crate::exact_log::ExactLog;
use tollgate_core::{Algorithm, Intent, LimitState};

/// The counts of one algorithm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) sources: u64,
    pub(crate) requests: u64,
    pub(crate) admitted: u64,
    /// Requests that the exact limiter admitted. It keeps its own history.
    pub(crate) exactly_admitted: u64,
    /// Requests that were admitted, but refused by the exact limiter.
    pub(crate) wrongly_admitted: u64,
    /// Requests that were refused, but admitted by the exact limiter.
    pub(crate) wrongly_refused: u64,
    /// Requests that were admitted although the algorithm's own last window already held the limit.
    pub(crate) above: u64,
    /// The most admissions in any window.
    pub(crate) most: u64,
    /// The sum of differences between the estimated and the real rate.
    pub(crate) difference: u64,
    /// The sum of real rates.
    pub(crate) real: u64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.sources += 1;
        self.requests += other.requests;
        self.admitted += other.admitted;
        self.wrongly_admitted += other.wrongly_admitted;
        self.wrongly_refused += other.wrongly_refused;
        self.exactly_admitted += other.exactly_admitted;
        self.above += other.above;
        self.most = self.most.max(other.most);
        self.difference += other.difference;
        self.real += other.real;
    }
}

/// One algorithm, run for one source.
struct Runner<'c> {
    contestant: &'c Contestant,
    state: LimitState,
    log: ExactLog,
    tally: Tally,
}

impl Runner<'_> {
    fn step(&mut self, time_us: u64, limit: Limit, exact_admits: bool) {
        let params = &self.contestant.params;
        let outcome = params.decide(&self.state, time_us, 1, Intent::Take);
        let real = self.log.count(time_us, limit.window_us);
        let tally = &mut self.tally;
        tally.requests += 1;
        let left = outcome.remaining + u64::from(outcome.admitted);
        tally.difference += (outcome.limit - left).abs_diff(real);
        tally.real += real;
        tally.exactly_admitted += u64::from(exact_admits);
        tally.wrongly_admitted += u64::from(outcome.admitted && !exact_admits);
        tally.wrongly_refused += u64::from(!outcome.admitted && exact_admits);
        if outcome.admitted {
            params.charge(&mut self.state, time_us, 1);
            self.log.admit(time_us);
            tally.admitted += 1;
            tally.above += u64::from(real >= limit.count);
            tally.most = tally.most.max(real + 1);
        }
    }
}

/// All algorithms, run for one source.
pub(crate) struct Race<'c> {
    limit: Limit,
    runners: Vec<Runner<'c>>,
    /// A limiter with an exact log and its own history.
    exact: ExactLog,
}

impl<'c> Race<'c> {
    pub(crate) fn new(contestants: &'c [Contestant], limit: Limit) -> Self {
        let runner = |contestant| Runner {
            contestant,
            state: LimitState::default(),
            log: ExactLog::default(),
            tally: Tally::default(),
        };
        let runners = contestants.iter().map(runner).collect();
        Self { limit, runners, exact: ExactLog::default() }
    }

    /// Runs the next request of the source.
    pub(crate) fn step(&mut self, time_us: u64) {
        let admits = self.exact.count(time_us, self.limit.window_us) < self.limit.count;
        if admits {
            self.exact.admit(time_us);
        }
        for runner in &mut self.runners {
            runner.step(time_us, self.limit, admits);
        }
    }

    pub(crate) fn add_to(&self, totals: &mut [Tally]) {
        totals.iter_mut().zip(&self.runners).for_each(|(total, runner)| total.add(&runner.tally));
    }

    /// The admissions of each algorithm in the last window.
    pub(crate) fn in_window(&mut self, time_us: u64) -> Vec<u64> {
        let window_us = self.limit.window_us;
        self.runners.iter_mut().map(|runner| runner.log.count(time_us, window_us)).collect()
    }
}
