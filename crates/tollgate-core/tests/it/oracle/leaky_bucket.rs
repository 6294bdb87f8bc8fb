//! `new = max(TAT, t) + cE`; refused when `new - t > (B+Q)E`, else delayed by `max(0, new - t -
//! BE)`.

use super::{AlgorithmOracle, Charged, Plan, search, tat::History};

/// All charges and give-backs.
#[derive(Clone, Debug, Default)]
pub struct LeakyBucket {
    history: History,
}

impl AlgorithmOracle for LeakyBucket {
    fn capacity(plan: &Plan) -> i128 {
        if plan.count == 0 { 0 } else { plan.burst + plan.queue }
    }

    fn fits(&self, plan: &Plan, t: i128, cost: i128) -> bool {
        let units = plan.burst + plan.queue;
        plan.count > 0 && self.history.tat(plan).fits(plan, t, cost, units)
    }

    fn see(&mut self, plan: &Plan, now: i128) {
        self.history.see(plan, plan.burst + plan.queue, now);
    }

    fn charge(&mut self, plan: &Plan, now: i128, cost: i128) -> Charged {
        self.history.charge(plan, plan.burst + plan.queue, now, cost)
    }

    fn suppose(&mut self, plan: &Plan, now: i128, cost: i128) {
        self.history.suppose(plan, plan.burst + plan.queue, now, cost);
    }

    fn give_back(&mut self, now: i128, units: i128, charged: &Charged) {
        // Requests queued after this charge keep their instants, so only the last one in the queue
        // can be given back.
        let queues = charged.plan.count > 0 && charged.plan.queue > 0;
        if !queues || self.history.is_left_by(charged) {
            self.history.give_back(now, units, charged);
        }
    }

    fn reset_at(&self, plan: &Plan, now: i128) -> i128 {
        let tat = self.history.tat(plan);
        search::first(now, |t| tat.has_passed(t)).unwrap_or(now)
    }

    fn delay(&self, plan: &Plan, now: i128, cost: i128) -> i128 {
        self.history.tat(plan).beyond(plan, now, cost, plan.burst)
    }
}
