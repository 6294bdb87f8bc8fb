//! What one seed is about: a limit, a load, and the faults that happen to it.

use crate::rng::Rng;
use tollgate_core::algorithm::{FixedWindow, Gcra, LeakyBucket, SlidingWindow, TokenBucket};
use tollgate_core::{Algorithm, LimitParams, Rate};
use tollgate_store::lease::LeaseTerms;

/// Which faults happen, each once in so many chances; zero is never.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) lose: u64,
    pub(crate) double: u64,
    /// Messages take up to this long.
    pub(crate) delay_us: u64,
    pub(crate) crash: u64,
    pub(crate) pause: u64,
    /// Nodes that stop between any two steps, again and again.
    pub(crate) stall: u64,
    pub(crate) partition: u64,
    pub(crate) failover: u64,
    /// Failovers that lose nothing.
    pub(crate) hand_over: u64,
    pub(crate) wipe: u64,
    pub(crate) step: u64,
    pub(crate) slot_move: u64,
    /// Nodes that have no room for what is spent.
    pub(crate) evict: u64,
    /// Requests that another limit refuses, and those that are cancelled later.
    pub(crate) refuse: u64,
    pub(crate) cancel: u64,
    /// How many parts in a million the clocks of the nodes are off.
    pub(crate) pace_ppm: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) params: LimitParams,
    pub(crate) terms: LeaseTerms,
    /// Those of every second node, where an operator changes them one node after the other.
    pub(crate) others: Option<LeaseTerms>,
    pub(crate) nodes: usize,
    pub(crate) keys: usize,
    pub(crate) length_us: u64,
    /// Between requests, over all nodes.
    pub(crate) between_us: u64,
    /// Of ten requests, how many the first node gets beyond its share.
    pub(crate) skew: u64,
    pub(crate) cost_most: u64,
    /// Requests come for so long, and then for so long none do; or always.
    pub(crate) phases_us: Option<(u64, u64)>,
    /// Whether nodes take all that they can get, whoever wants it, and now and then spend it all at
    /// once: the worst that is allowed.
    pub(crate) hoard: bool,
    /// Whether the store decides what comes in a grace period, as for limits that fail open.
    pub(crate) direct: bool,
    /// One in so many requests that find no units is left to the store, as for keys that hardly
    /// anybody uses; zero is never.
    pub(crate) sparse: u64,
    pub(crate) faults: Faults,
}

impl Plan {
    /// The terms by which a node leases.
    pub(crate) fn terms_of(&self, node: usize) -> LeaseTerms {
        self.others.filter(|_| node % 2 == 1).unwrap_or(self.terms)
    }

    /// Units that lifetimes that differ allow beyond the limit.
    ///
    /// Units of the longer lifetime are spent after what returned meanwhile was granted again, and
    /// the store keeps back only what returns within the shorter one. A fixed window ends all
    /// units, so it allows nothing. The terms are not asked: a fault in them would excuse itself.
    pub(crate) fn allowed_by_lifetimes(&self) -> u64 {
        let Some(others) = self.others else { return 0 };
        let mut lifetimes_us = [self.terms.lifetime_us, others.lifetime_us];
        lifetimes_us.sort_unstable();
        let [short_us, long_us] = lifetimes_us;
        let (count, period_us) = (self.params.count(), self.params.period_us());
        match self.params {
            LimitParams::FixedWindow(_) => 0,
            LimitParams::SlidingWindow(_) => {
                let granted = count * period_us / (period_us + short_us);
                (granted * (period_us + long_us)).div_ceil(period_us).saturating_sub(count)
            }
            _ => (count * long_us).div_ceil(period_us) - (count * short_us).div_ceil(period_us),
        }
    }

    pub(crate) fn draw(rng: &mut Rng) -> Self {
        loop {
            let (params, lifetime_us) = any_numbers(rng);
            let grace_us = lifetime_us * 2 + 300_000;
            let Some(terms) = LeaseTerms::for_limit(&params, lifetime_us, 2, grace_us) else {
                continue;
            };
            // An operator may be changing the lifetime, one node after the other.
            let other_us = lifetime_us / rng.within(2, 4);
            let others = LeaseTerms::for_limit(&params, other_us, 2, grace_us);
            let others = others.filter(|_| rng.once_in(6));
            let faults = faults(rng);
            let nodes = rng.within(1, 5) as usize;
            let length_us = rng.within(1_000_000, 4_000_000);
            // Mostly more than the limit allows, and never so much that a run takes long.
            let period_us = params.period_us();
            let wanted = params.capacity().max(1) * rng.pick(&[1, 2, 2, 4]) / 2;
            let between_us = (period_us / wanted.max(1)).clamp(length_us / 700, 20_000);
            let phases_us = rng.once_in(2).then(|| {
                let on_us = rng.within(lifetime_us / 20, lifetime_us);
                (on_us.max(1), rng.within(lifetime_us / 2, 2 * lifetime_us))
            });
            let hoard = rng.once_in(3);
            // Hoards are to be spent at once, and not bit by bit before.
            let between_us = if hoard && rng.once_in(2) { length_us / 4 } else { between_us };
            return Self {
                phases_us,
                hoard,
                direct: rng.once_in(2),
                sparse: rng.pick(&[0, 2, 8]),
                params,
                terms,
                others,
                nodes,
                keys: rng.within(1, 2) as usize,
                length_us,
                between_us: between_us.max(1),
                skew: rng.pick(&[0, 0, 5, 9]),
                cost_most: rng.pick(&[1, 1, 3, 8, 30]),
                faults,
            };
        }
    }
}

/// A limit, and a lifetime that its algorithm allows.
pub(crate) fn any_numbers(rng: &mut Rng) -> (LimitParams, u64) {
    let params = params(rng);
    let longest_us = match params {
        LimitParams::SlidingWindow(_) => params.period_us() / 40,
        _ => 500_000,
    };
    (params, rng.within(longest_us / 10, longest_us))
}

fn params(rng: &mut Rng) -> LimitParams {
    let count = rng.pick(&[5, 20, 60, 100, 250, 600]);
    let period_us = rng.pick(&[200_000, 500_000, 1_000_000, 2_000_000]);
    let rate = Rate::try_new(count, period_us).unwrap();
    let burst = Some(count * rng.pick(&[1, 1, 2, 3]));
    match rng.within(0, 9) {
        0..4 => LimitParams::FixedWindow(FixedWindow::new(rate)),
        4..6 => {
            let rate = Rate::try_new(count, period_us.max(1_000_000)).unwrap();
            LimitParams::SlidingWindow(SlidingWindow::new(rate))
        }
        6 => LimitParams::TokenBucket(TokenBucket::try_new(rate, burst).unwrap()),
        7 => LimitParams::LeakyBucket(LeakyBucket::try_new(rate, burst, None).unwrap()),
        _ => LimitParams::Gcra(Gcra::try_new(rate, burst).unwrap()),
    }
}

fn faults(rng: &mut Rng) -> Faults {
    let mut some = |often: u64| if rng.once_in(3) { often } else { 0 };
    let (crash, pause, partition) = (some(25), some(25), some(20));
    let (lose, double, refuse, cancel) = (some(8), some(8), some(2), some(12));
    let (failover, wipe, slot_move) = (some(20), some(25), some(20));
    let (evict, step, hand_over, stall) = (some(6), some(20), some(15), some(12));
    Faults {
        lose,
        double,
        delay_us: rng.pick(&[200, 2_000, 20_000, 60_000]),
        crash,
        pause,
        stall,
        partition,
        failover,
        hand_over,
        wipe,
        step,
        slot_move,
        evict,
        refuse,
        cancel,
        pace_ppm: rng.pick(&[0, 900]),
    }
}
