//! At most `count` units in each window of the epoch.

use super::{AlgorithmOracle, Charged, END, Plan};

/// Units by the number of their window; units given back are negative.
#[derive(Clone, Debug, Default)]
pub struct FixedWindow {
    entries: Vec<(i128, i128)>,
    latest: i128,
}

impl FixedWindow {
    fn counted(&self, window: i128) -> i128 {
        self.entries.iter().filter(|entry| entry.0 == window).map(|entry| entry.1).sum()
    }

    /// The window in force at `t`, which is never before the latest window.
    fn window(&self, plan: &Plan, t: i128) -> i128 {
        self.latest.max(t / plan.period_us)
    }
}

impl AlgorithmOracle for FixedWindow {
    fn capacity(plan: &Plan) -> i128 {
        plan.count
    }

    fn fits(&self, plan: &Plan, t: i128, cost: i128) -> bool {
        self.counted(self.window(plan, t)) + cost <= plan.count
    }

    fn see(&mut self, plan: &Plan, now: i128) {
        let late = self.latest - (now / plan.period_us + 1);
        if late > 0 {
            self.latest -= late;
            self.entries.iter_mut().for_each(|entry| entry.0 -= late);
        }
    }

    fn charge(&mut self, plan: &Plan, now: i128, cost: i128) -> Charged {
        let now = now.min(END);
        self.see(plan, now);
        let window = self.window(plan, now);
        self.entries.push((window, cost.min(END - self.counted(window))));
        self.latest = window;
        Charged { at: now.max(window * plan.period_us), plan: *plan, left: (0, 1) }
    }

    fn give_back(&mut self, now: i128, units: i128, charged: &Charged) {
        let window = charged.at / charged.plan.period_us;
        if now / charged.plan.period_us <= window {
            self.entries.push((window, -units.min(self.counted(window))));
        }
    }

    fn reset_at(&self, plan: &Plan, now: i128) -> i128 {
        (self.window(plan, now) + 1) * plan.period_us
    }
}
