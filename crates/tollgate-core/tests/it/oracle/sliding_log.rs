//! At most `count` units in any window: every entry counts until it is a window old.

use super::{AlgorithmOracle, Charged, END, Plan};

/// Units by their instant; units given back are negative.
#[derive(Clone, Debug, Default)]
pub struct SlidingLog {
    entries: Vec<(i128, i128)>,
    latest: i128,
}

impl SlidingLog {
    fn used(&self, plan: &Plan, t: i128) -> i128 {
        let t = t.max(self.latest);
        self.entries.iter().filter(|e| t - e.0 < plan.period_us).map(|e| e.1).sum()
    }

    fn dated(&self, at: i128) -> i128 {
        self.entries.iter().filter(|entry| entry.0 == at).map(|entry| entry.1).sum()
    }
}

impl AlgorithmOracle for SlidingLog {
    fn capacity(plan: &Plan) -> i128 {
        plan.count
    }

    fn fits(&self, plan: &Plan, t: i128, cost: i128) -> bool {
        self.used(plan, t) + cost <= plan.count
    }

    fn see(&mut self, plan: &Plan, now: i128) {
        let ahead = now + plan.period_us;
        if self.latest > ahead {
            // These entries had ended at the latest instant seen, so an earlier clock must not
            // count them again.
            let latest = self.latest;
            self.entries.retain(|entry| latest - entry.0 < plan.period_us);
            self.entries.iter_mut().for_each(|entry| entry.0 = entry.0.min(ahead));
            self.latest = ahead;
        }
    }

    fn charge(&mut self, plan: &Plan, now: i128, cost: i128) -> Charged {
        let now = now.min(END);
        self.see(plan, now);
        let at = now.max(self.latest);
        self.entries.push((at, cost.min(END - self.used(plan, at))));
        self.latest = at;
        Charged { at, plan: *plan, left: (0, 1) }
    }

    fn give_back(&mut self, now: i128, units: i128, charged: &Charged) {
        if now - charged.at < charged.plan.period_us {
            self.entries.push((charged.at, -units.min(self.dated(charged.at))));
        }
    }

    fn reset_at(&self, plan: &Plan, now: i128) -> i128 {
        let now = now.max(self.latest);
        let kept = self.entries.iter().map(|entry| entry.0).filter(|&at| self.dated(at) > 0);
        kept.max().map_or(now, |newest| now.max(newest + plan.period_us))
    }
}
