//! A brute-force judge. Every charge and every give-back is kept in a list, and every answer is
//! worked out again from that list and from the sentences of the design: whether a cost fits is the
//! definition, everything else is found by asking that question again, for other costs and other
//! instants. It shares no line with what it judges.

pub mod concurrency;
pub mod fixed_window;
pub mod gcra;
pub mod leaky_bucket;
pub mod search;
pub mod sliding_log;
pub mod sliding_window;
pub mod tat;
pub mod token_bucket;

/// The last instant, and where counters stop: the largest integer that a double holds exactly.
pub const END: i128 = (1 << 53) - 1;

/// A limit's numbers, whichever of them its algorithm uses. For slots, the period is their time to
/// live.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub count: i128,
    pub period_us: i128,
    pub burst: i128,
    pub queue: i128,
}

/// What is remembered of one charge for a later give-back.
#[derive(Clone, Copy, Debug)]
pub struct Charged {
    /// The instant at which it was counted.
    pub at: i128,
    /// The plan it was charged under.
    pub plan: Plan,
    /// The theoretical arrival time it left, as a fraction, where there is one.
    pub left: (i128, i128),
}

/// One answer, durations from the caller's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub admitted: bool,
    pub limit: i128,
    pub remaining: i128,
    pub retry_after: Option<i128>,
    pub reset_after: i128,
    pub delay: i128,
    pub more_after: Option<i128>,
}

/// What each algorithm has to define; the rest follows from it.
pub trait AlgorithmOracle: Clone + Default {
    /// The largest cost that ever fits.
    fn capacity(plan: &Plan) -> i128;

    /// Whether a positive cost fits at `t`.
    fn fits(&self, plan: &Plan, t: i128, cost: i128) -> bool;

    /// Writes a positive charge down, whether it fits or not.
    fn charge(&mut self, plan: &Plan, now: i128, cost: i128) -> Charged;

    /// Supposes a charge, for the answer that goes with it. What reaches beyond the end of time is
    /// cut off when it is written, not before.
    fn suppose(&mut self, plan: &Plan, now: i128, cost: i128) {
        self.charge(plan, now, cost);
    }

    /// Writes a give-back down.
    fn give_back(&mut self, now: i128, units: i128, charged: &Charged);

    /// The instant from which the limit is as if never used.
    fn reset_at(&self, plan: &Plan, now: i128) -> i128;

    /// Re-dates what lies more than one window ahead.
    fn see(&mut self, _plan: &Plan, _now: i128) {}

    /// How long a cost that fits is held back.
    fn delay(&self, _plan: &Plan, _now: i128, _cost: i128) -> i128 {
        0
    }

    /// Whether time alone is what brings more.
    fn refills() -> bool {
        true
    }

    /// The whole answer.
    fn answer(&mut self, plan: &Plan, clock: i128, cost: i128, take: bool) -> Answer {
        let now = clock.min(END);
        self.see(plan, now);
        let admitted = cost == 0 || self.fits(plan, now, cost);
        let mut after = self.clone();
        if admitted && take && cost > 0 {
            after.suppose(plan, now, cost);
        }
        let capacity = Self::capacity(plan);
        let remaining = search::largest(capacity, |k| after.fits(plan, now, k));
        let wait = |judge: &Self, cost| {
            search::first(now, |t| judge.fits(plan, t, cost)).map(|instant| instant - now)
        };
        Answer {
            admitted,
            limit: capacity,
            remaining,
            retry_after: if admitted { Some(0) } else { wait(self, cost) },
            reset_after: after.reset_at(plan, now) - now,
            delay: if admitted && cost > 0 { self.delay(plan, now, cost) } else { 0 },
            more_after: match Self::refills() && remaining < capacity {
                true => wait(&after, remaining + 1),
                false => None,
            },
        }
    }
}
