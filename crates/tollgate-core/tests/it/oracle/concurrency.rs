//! At most `count` slots held at once, each until its time to live.

use super::{AlgorithmOracle, Charged, END, Plan};

/// Slots by the instant at which they end; released slots are negative.
#[derive(Clone, Debug, Default)]
pub struct Concurrency {
    entries: Vec<(i128, i128)>,
    latest: i128,
}

impl Concurrency {
    fn live(&self, t: i128) -> i128 {
        let t = t.max(self.latest);
        self.entries.iter().filter(|entry| entry.0 > t).map(|entry| entry.1).sum()
    }

    fn ending(&self, end: i128) -> i128 {
        self.entries.iter().filter(|entry| entry.0 == end).map(|entry| entry.1).sum()
    }
}

impl AlgorithmOracle for Concurrency {
    fn capacity(plan: &Plan) -> i128 {
        plan.count
    }

    fn fits(&self, plan: &Plan, t: i128, cost: i128) -> bool {
        self.live(t) + cost <= plan.count
    }

    fn see(&mut self, plan: &Plan, now: i128) {
        if self.latest > now + plan.period_us.max(1_000_000) {
            let latest = self.latest;
            self.entries.retain(|entry| entry.0 > latest);
            self.entries.iter_mut().for_each(|entry| entry.0 = now + plan.period_us);
            self.latest = now;
        }
    }

    fn charge(&mut self, plan: &Plan, now: i128, cost: i128) -> Charged {
        self.see(plan, now.min(END));
        let at = now.min(END).max(self.latest);
        self.entries.push((at + plan.period_us, cost.min(END - self.live(at))));
        self.latest = at;
        Charged { at, plan: *plan, left: (0, 1) }
    }

    fn give_back(&mut self, now: i128, units: i128, charged: &Charged) {
        let end = charged.at + charged.plan.period_us;
        if end > now {
            self.entries.push((end, -units.min(self.ending(end))));
        }
    }

    fn reset_at(&self, _plan: &Plan, now: i128) -> i128 {
        let now = now.max(self.latest);
        let held = self.entries.iter().map(|entry| entry.0).filter(|&end| self.ending(end) > 0);
        held.max().map_or(now, |last| now.max(last))
    }

    fn refills() -> bool {
        false
    }
}
