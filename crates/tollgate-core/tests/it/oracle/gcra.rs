//! `new = max(TAT, t) + cE`; admitted when `new - BE <= t`.

use super::{AlgorithmOracle, Charged, Plan, search, tat::History};

/// All charges and give-backs.
#[derive(Clone, Debug, Default)]
pub struct Gcra {
    history: History,
}

impl AlgorithmOracle for Gcra {
    fn capacity(plan: &Plan) -> i128 {
        if plan.count == 0 { 0 } else { plan.burst }
    }

    fn fits(&self, plan: &Plan, t: i128, cost: i128) -> bool {
        plan.count > 0 && self.history.tat(plan).fits(plan, t, cost, plan.burst)
    }

    fn see(&mut self, plan: &Plan, now: i128) {
        self.history.see(plan, plan.burst, now);
    }

    fn charge(&mut self, plan: &Plan, now: i128, cost: i128) -> Charged {
        self.history.charge(plan, plan.burst, now, cost)
    }

    fn suppose(&mut self, plan: &Plan, now: i128, cost: i128) {
        self.history.suppose(plan, plan.burst, now, cost);
    }

    fn give_back(&mut self, now: i128, units: i128, charged: &Charged) {
        self.history.give_back(now, units, charged);
    }

    fn reset_at(&self, plan: &Plan, now: i128) -> i128 {
        let tat = self.history.tat(plan);
        search::first(now, |t| tat.has_passed(t)).unwrap_or(now)
    }
}
