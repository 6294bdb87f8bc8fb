//! A brute-force oracle. It keeps every charge and every give-back in a list, and computes every
//! answer from that list by the sentences of the design. Whether a cost fits is the definition. All
//! other figures are found by asking that question for other costs and other instants. The oracle
//! shares no code with the algorithms.

pub mod concurrency;
pub mod fixed_window;
pub mod gcra;
pub mod leaky_bucket;
pub mod search;
pub mod sliding_log;
pub mod sliding_window;
pub mod tat;
pub mod token_bucket;

/// The last instant, and the limit of counters: the largest integer that a double holds exactly.
pub const END: i128 = (1 << 53) - 1;

/// The parameters of a limit; an algorithm uses some of them. For slots, the period is their time
/// to live.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub count: i128,
    pub period_us: i128,
    pub burst: i128,
    pub queue: i128,
}

/// A charge, as a later give-back needs it.
#[derive(Clone, Copy, Debug)]
pub struct Charged {
    /// The instant at which the charge was counted.
    pub at: i128,
    /// The plan of the charge.
    pub plan: Plan,
    /// The theoretical arrival time after the charge, as a fraction, if the algorithm has one.
    pub left: (i128, i128),
}

/// One answer. Durations start at the caller's clock.
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

/// The rules of one algorithm; all figures follow from them.
pub trait AlgorithmOracle: Clone + Default {
    /// The largest cost that ever fits.
    fn capacity(plan: &Plan) -> i128;

    /// Whether a positive cost fits at `t`.
    fn fits(&self, plan: &Plan, t: i128, cost: i128) -> bool;

    /// Records a positive charge, whether it fits or not.
    fn charge(&mut self, plan: &Plan, now: i128, cost: i128) -> Charged;

    /// Charges for the answer of an admission. Recording clamps a charge to the end of time; this
    /// does not.
    fn suppose(&mut self, plan: &Plan, now: i128, cost: i128) {
        self.charge(plan, now, cost);
    }

    /// Records a give-back.
    fn give_back(&mut self, now: i128, units: i128, charged: &Charged);

    /// The instant from which the limit behaves as if unused.
    fn reset_at(&self, plan: &Plan, now: i128) -> i128;

    /// Re-dates state that lies more than one window ahead.
    fn see(&mut self, _plan: &Plan, _now: i128) {}

    /// The delay of a cost that fits.
    fn delay(&self, _plan: &Plan, _now: i128, _cost: i128) -> i128 {
        0
    }

    /// Whether capacity comes back with time.
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
