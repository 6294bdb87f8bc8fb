//! The count of the previous window weighs less as the current window passes.

use super::{AlgorithmOracle, Charged, END, Plan};

/// Units by the number of their window; units given back are negative.
#[derive(Clone, Debug, Default)]
pub struct SlidingWindow {
    entries: Vec<(i128, i128)>,
    latest: i128,
}

impl SlidingWindow {
    fn counted(&self, window: i128) -> i128 {
        self.entries.iter().filter(|entry| entry.0 == window).map(|entry| entry.1).sum()
    }

    /// The window in force at `t`, and the time since its start: zero if the clock is before the
    /// window.
    fn place(&self, plan: &Plan, t: i128) -> (i128, i128) {
        let window = self.latest.max(t / plan.period_us);
        (window, (t - window * plan.period_us).max(0))
    }
}

impl AlgorithmOracle for SlidingWindow {
    fn capacity(plan: &Plan) -> i128 {
        plan.count
    }

    fn fits(&self, plan: &Plan, t: i128, cost: i128) -> bool {
        let w = plan.period_us;
        let (window, elapsed) = self.place(plan, t);
        let (previous, current) = (self.counted(window - 1), self.counted(window));
        previous * (w - elapsed) + (current + cost) * w <= plan.count * w
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
        let (window, _) = self.place(plan, now);
        self.entries.push((window, cost.min(END - self.counted(window))));
        self.latest = window;
        Charged { at: now.max(window * plan.period_us), plan: *plan, left: (0, 1) }
    }

    fn give_back(&mut self, now: i128, units: i128, charged: &Charged) {
        let window = charged.at / charged.plan.period_us;
        if now / charged.plan.period_us <= window + 1 {
            self.entries.push((window, -units.min(self.counted(window))));
        }
    }

    fn reset_at(&self, plan: &Plan, now: i128) -> i128 {
        let (window, _) = self.place(plan, now);
        let windows = match (self.counted(window), self.counted(window - 1)) {
            (0, 0) => return now.max(window * plan.period_us),
            (0, _) => 1,
            (_, _) => 2,
        };
        (window + windows) * plan.period_us
    }
}
