//! The theoretical arrival time, recomputed from all charges and give-backs.

use super::{Charged, END, Plan};

/// All charges and give-backs, in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    events: Vec<TatEvent>,
}

#[derive(Clone, Copy, Debug)]
enum TatEvent {
    Charge { plan: Plan, units: i128, now: i128, cost: i128, end: i128 },
    GiveBack { plan: Plan, elapsed: i128, units: i128 },
    Seen { plan: Plan, units: i128, now: i128 },
}

/// `over / under` microseconds since the epoch, in the fractions of one rate.
#[derive(Clone, Copy, Debug)]
pub struct Tat {
    over: i128,
    under: i128,
    count: i128,
}

/// The price of a unit is `price / under` microseconds; zero without a rate.
fn terms(plan: &Plan) -> (i128, i128) {
    if plan.count == 0 { (0, 1) } else { (plan.period_us, plan.count) }
}

/// The time in which `units` drain, rounded up.
pub fn window(plan: &Plan, units: i128) -> i128 {
    let (price, under) = terms(plan);
    -(-units * price).div_euclid(under)
}

impl Tat {
    /// The first whole microsecond that is not earlier.
    fn whole(self) -> i128 {
        -(-self.over).div_euclid(self.under)
    }

    /// A charge is at most `ahead` before the instant it leaves. If that is too far after `now`,
    /// the clock leapt, and the charge counts as made now.
    fn seen(self, plan: &Plan, units: i128, now: i128, ahead: Option<i128>) -> Self {
        // A charge without a rate has no bound, so one period is the bound.
        let ahead = ahead.unwrap_or(plan.period_us);
        let waited_out = window(plan, units).max(1_000_000);
        if plan.count == 0 || self.whole() - ahead <= now + waited_out {
            return self;
        }
        Self { over: now + ahead, under: 1, count: 0 }
    }

    /// The same instant, rounded up to a whole microsecond if the rate differs.
    fn of(self, plan: &Plan) -> Self {
        let (_, under) = terms(plan);
        if self.count == plan.count {
            return self;
        }
        Self { over: self.whole() * under, under, count: plan.count }
    }

    /// Whether a cost at `t` leaves no more than `units` ahead of `t`.
    pub fn fits(self, plan: &Plan, t: i128, cost: i128, units: i128) -> bool {
        let (price, under) = terms(plan);
        self.over.max(t * under) + cost * price - t * under <= units * price
    }

    /// The time by which a cost at `t` exceeds `units` ahead of `t`, rounded up.
    pub fn beyond(self, plan: &Plan, t: i128, cost: i128, units: i128) -> i128 {
        let (price, under) = terms(plan);
        let beyond = self.over.max(t * under) + cost * price - t * under - units * price;
        -(-beyond.max(0)).div_euclid(under)
    }

    pub fn has_passed(self, t: i128) -> bool {
        self.over <= t * self.under
    }
}

impl History {
    /// The TAT in the fractions of `plan`.
    pub fn tat(&self, plan: &Plan) -> Tat {
        self.as_written().of(plan)
    }

    /// The TAT in the fractions of its last write.
    fn as_written(&self) -> Tat {
        let mut tat = Tat { over: 0, under: 1, count: 0 };
        let mut ahead = None;
        for event in &self.events {
            match *event {
                TatEvent::Seen { plan, units, now } => tat = tat.seen(&plan, units, now, ahead),
                TatEvent::Charge { plan, units, now, cost, end } => {
                    tat = tat.seen(&plan, units, now, ahead).of(&plan);
                    let (price, under) = terms(&plan);
                    let spent = tat.over.max(now * under) + cost.min(END) * price;
                    tat.over = spent.min(end * under);
                    if plan.count > 0 {
                        ahead = Some((tat.whole() - now).max(window(&plan, units)));
                    }
                }
                TatEvent::GiveBack { plan, elapsed, units } => {
                    let (price, under) = terms(&plan);
                    let returned = units.min(END) * price - elapsed * under;
                    if returned > 0 {
                        tat = tat.of(&plan);
                        tat.over = (tat.over - returned).max(0);
                    }
                }
            }
        }
        tat
    }

    /// Re-dates the TAT of a bucket of `units`, before a decision.
    pub fn see(&mut self, plan: &Plan, units: i128, now: i128) {
        self.events.push(TatEvent::Seen { plan: *plan, units, now });
    }

    pub fn charge(&mut self, plan: &Plan, units: i128, now: i128, cost: i128) -> Charged {
        let now = now.min(END);
        self.events.push(TatEvent::Charge { plan: *plan, units, now, cost, end: END });
        let left = self.tat(plan);
        Charged { at: now, plan: *plan, left: (left.over, left.under) }
    }

    pub fn suppose(&mut self, plan: &Plan, units: i128, now: i128, cost: i128) {
        self.events.push(TatEvent::Charge { plan: *plan, units, now, cost, end: 2 * END });
    }

    pub fn give_back(&mut self, now: i128, units: i128, charged: &Charged) {
        let elapsed = (now - charged.at).max(0);
        self.events.push(TatEvent::GiveBack { plan: charged.plan, elapsed, units });
    }

    /// Whether the TAT is still the one that this charge left.
    pub fn is_left_by(&self, charged: &Charged) -> bool {
        let tat = self.as_written();
        tat.over * charged.left.1 == charged.left.0 * tat.under
    }
}
