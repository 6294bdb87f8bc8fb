//! Tokens: `x = min(B, x + dt*R/P)`, a cost passes when `x >= c`. All terms are multiplied by P, so
//! they are integers.

use super::{AlgorithmOracle, Charged, END, Plan, search, tat::window};

/// All charges and give-backs, in order.
#[derive(Clone, Debug, Default)]
pub struct TokenBucket {
    events: Vec<BucketEvent>,
    latest: i128,
}

#[derive(Clone, Copy, Debug)]
enum BucketEvent {
    Charge {
        plan: Plan,
        at: i128,
        cost: i128,
        end: i128,
    },
    GiveBack {
        plan: Plan,
        elapsed: i128,
        units: i128,
    },
    /// The clock leapt: all earlier events move back by `by`.
    MovedBack {
        by: i128,
    },
}

/// The tokens at one instant, times the price, in the terms of one plan.
#[derive(Clone, Copy, Debug)]
struct Level {
    tokens: i128,
    at: i128,
    terms: Terms,
}

/// The full bucket, the refill of a microsecond, and the price of a unit. Without a rate there are
/// no tokens, only time.
#[derive(Clone, Copy, Debug)]
struct Terms {
    full: i128,
    rate: i128,
    price: i128,
    count: i128,
}

impl Terms {
    fn of(plan: &Plan) -> Self {
        match plan.count {
            0 => Self { full: 0, rate: 1, price: 0, count: 0 },
            count => {
                let price = plan.period_us;
                Self { full: plan.burst * price, rate: count, price, count }
            }
        }
    }
}

impl Level {
    /// The same debt in other terms, rounded up to a whole microsecond if the rate differs.
    fn under(self, terms: Terms) -> Self {
        let owed = self.terms.full - self.tokens;
        let owed = match self.terms.count == terms.count {
            true => owed,
            false => -(-owed).div_euclid(self.terms.rate) * terms.rate,
        };
        Self { tokens: terms.full - owed, at: self.at, terms }
    }

    fn tokens_at(&self, t: i128) -> i128 {
        let brought = (t.max(self.at) - self.at) * self.terms.rate;
        self.terms.full.min(self.tokens + brought)
    }
}

impl TokenBucket {
    fn level(&self, terms: Terms) -> Level {
        let mut level = Level { tokens: terms.full, at: 0, terms };
        for event in &self.events {
            match *event {
                BucketEvent::Charge { plan, at, cost, end } => {
                    level = level.under(Terms::of(&plan));
                    let terms = level.terms;
                    let tokens = level.tokens_at(at) - cost.min(END) * terms.price;
                    // A bucket is full again at the end of time at the latest.
                    level.tokens = tokens.max(terms.full - (end - at) * terms.rate);
                    level.at = at;
                }
                BucketEvent::MovedBack { by } => {
                    level.at -= by;
                    // The bucket is never full before time begins.
                    let most = level.terms.full + level.at * level.terms.rate;
                    level.tokens = level.tokens.min(most);
                }
                BucketEvent::GiveBack { plan, elapsed, units } => {
                    let terms = Terms::of(&plan);
                    let returned = units.min(END) * terms.price - elapsed * terms.rate;
                    if returned > 0 {
                        level = level.under(terms);
                        // The bucket is never full before time begins.
                        let most = terms.full + level.at * terms.rate;
                        level.tokens = (level.tokens + returned).min(most);
                    }
                }
            }
        }
        level.under(terms)
    }
}

impl AlgorithmOracle for TokenBucket {
    fn capacity(plan: &Plan) -> i128 {
        if plan.count == 0 { 0 } else { plan.burst }
    }

    fn fits(&self, plan: &Plan, t: i128, cost: i128) -> bool {
        plan.count > 0 && self.level(Terms::of(plan)).tokens_at(t) >= cost * plan.period_us
    }

    fn see(&mut self, plan: &Plan, now: i128) {
        let waited_out = if plan.count == 0 { 0 } else { window(plan, plan.burst) };
        if self.latest > now + waited_out.max(1_000_000) {
            self.events.push(BucketEvent::MovedBack { by: self.latest - now });
            self.latest = now;
        }
    }

    fn charge(&mut self, plan: &Plan, now: i128, cost: i128) -> Charged {
        self.see(plan, now.min(END));
        let at = now.min(END).max(self.latest);
        self.latest = at;
        self.events.push(BucketEvent::Charge { plan: *plan, at, cost, end: END });
        Charged { at, plan: *plan, left: (0, 1) }
    }

    fn suppose(&mut self, plan: &Plan, now: i128, cost: i128) {
        let at = now.max(self.latest);
        self.events.push(BucketEvent::Charge { plan: *plan, at, cost, end: 2 * END });
    }

    fn give_back(&mut self, now: i128, units: i128, charged: &Charged) {
        let elapsed = (now.max(self.latest) - charged.at).max(0);
        self.events.push(BucketEvent::GiveBack { plan: charged.plan, elapsed, units });
    }

    fn reset_at(&self, plan: &Plan, now: i128) -> i128 {
        let now = now.max(self.latest);
        let level = self.level(Terms::of(plan));
        search::first(now, |t| level.tokens_at(t) == level.terms.full).unwrap_or(now)
    }
}
