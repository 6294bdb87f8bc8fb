//! What one way of spreading keys over nodes, one limit and one lifetime come to, stratum by
//! stratum.

use super::key::{Key, KeyPlan};
use super::strata::Stratum;
use tollgate_core::algorithm::{FixedWindow, Gcra, SlidingWindow};
use tollgate_core::{LimitParams, Rate};
use tollgate_store::lease::LeaseTerms;

/// Every key has this limit: so many...
pub(super) const LIMIT: u64 = 100_000;
/// ...in so many seconds, of which the second half of the run counts.
pub(super) const SECONDS: u64 = 10;
/// Below it a limit is decided directly, as in the file.
const MIN_LIMIT: u64 = 100;
/// What the shortest grace period has beyond the lifetime: one and a half probes and the deadline.
const GRACE_US: u64 = 775_000;

/// One column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    pub(super) algorithm: &'static str,
    /// Nodes that the requests for one key come to.
    pub(super) nodes: u64,
    /// Zero where nothing is leased.
    pub(super) lifetime_ms: u64,
}

/// What came of one stratum, as a line of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) requests: u64,
    pub(super) ideal: u64,
    pub(super) admitted: u64,
    /// Requests that waited for the store.
    pub(super) direct: u64,
    pub(super) calls: u64,
    /// Of the calls, those in the first tenth of a second of the window.
    pub(super) opening: u64,
}

impl Cell {
    pub(super) fn params(self) -> LimitParams {
        let rate = Rate::try_new(LIMIT, SECONDS * 1_000_000).unwrap();
        match self.algorithm {
            "fixed-window" => LimitParams::FixedWindow(FixedWindow::new(rate)),
            "sliding-window" => LimitParams::SlidingWindow(SlidingWindow::new(rate)),
            _ => LimitParams::Gcra(Gcra::try_new(rate, None).unwrap()),
        }
    }

    pub(super) fn grace_us(self) -> u64 {
        self.lifetime_ms * 1_000 + GRACE_US
    }

    fn terms(self) -> Option<LeaseTerms> {
        let lifetime_us = (self.lifetime_ms > 0).then_some(self.lifetime_ms * 1_000)?;
        LeaseTerms::for_limit(&self.params(), lifetime_us, MIN_LIMIT, self.grace_us())
    }

    /// Simulates the keys that stand for a stratum.
    pub(super) fn run(self, stratum: &Stratum) -> Sums {
        let plan = KeyPlan {
            params: self.params(),
            terms: self.terms(),
            nodes: self.nodes as usize,
            per_1000_s: stratum.per_1000_s,
            windows: (1, 1),
        };
        let mut sums = Sums::default();
        for copy in 0..stratum.copies {
            let seed = (self.nodes << 20 | self.lifetime_ms) << 40 | stratum.first << 10 | copy;
            let outcome = Key::run(plan, seed);
            sums.requests += outcome.requests;
            sums.ideal += outcome.ideal;
            sums.admitted += outcome.admitted;
            sums.direct += outcome.direct + outcome.waited;
            sums.calls += outcome.calls.iter().sum::<u64>();
            sums.opening += outcome.calls[0];
        }
        sums
    }
}
