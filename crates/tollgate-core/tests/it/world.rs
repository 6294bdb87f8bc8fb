//! One key under one limit, driven by a [`Trace`]: makes each move concrete, and records what tests
//! need.

use crate::generate::{Cost, Move, Op, Step, Trace};
use crate::setup::Setup;
use tollgate_core::{Algorithm, Intent, LimitParams, LimitState, MAX_US, Outcome, Receipt};

/// The limit, the key's state and the clock.
#[derive(Clone, Debug)]
pub struct World {
    tiers: [Setup; 2],
    tier: usize,
    pub params: LimitParams,
    pub state: LimitState,
    pub now_us: u64,
    /// The last answer and its instant, for steps to the instants in it.
    last: Option<(u64, Outcome)>,
    pub held: Vec<Held>,
    /// Whether the state was ever dated more than one window ahead.
    pub redated: bool,
}

/// A charge that may still be given back.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub receipt: Receipt,
    /// The parameters of the charge.
    pub params: LimitParams,
    /// The units not given back yet.
    pub units: u64,
    /// Whether the charge was admitted; otherwise it is a debt.
    pub admitted: bool,
}

/// The result of a move.
#[derive(Clone, Copy, Debug)]
pub enum Done {
    Decided { cost: u64, intent: Intent, outcome: Outcome },
    Owed { cost: u64 },
    GaveBack { held: usize, units: u64 },
    Nothing,
}

impl World {
    pub fn new(trace: &Trace) -> Self {
        Self {
            tiers: trace.tiers,
            tier: 0,
            params: trace.tiers[0].params().expect("only valid setups are drawn"),
            state: LimitState::default(),
            now_us: trace.start_us,
            last: None,
            held: Vec::new(),
            redated: false,
        }
    }

    pub fn setup(&self) -> &Setup {
        &self.tiers[self.tier]
    }

    /// Runs the whole trace, and calls `look` with each result. Stops at the first error of `look`.
    pub fn run<E>(
        trace: &Trace,
        mut look: impl FnMut(&World, Done) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut world = Self::new(trace);
        for next in &trace.moves {
            let done = world.make(next);
            look(&world, done)?;
        }
        Ok(())
    }

    /// Steps the clock, then does the operation like a store: re-dates, decides, and charges if
    /// admitted.
    pub fn make(&mut self, next: &Move) -> Done {
        self.now_us = self.instant(next.step);
        match next.op {
            Op::Check(cost) => self.decide(self.units(cost), Intent::Take),
            Op::Peek(cost) => self.decide(self.units(cost), Intent::Peek),
            Op::Debt(cost) => {
                let cost = self.units(cost);
                self.charge(cost, false);
                Done::Owed { cost }
            }
            Op::GiveBack { which, eighths } => self.give_back(which, eighths),
            Op::Tier => {
                self.tier = 1 - self.tier;
                self.params = self.setup().params().expect("only valid setups are drawn");
                Done::Nothing
            }
        }
    }

    /// The move with its instant and its cost fixed, for another world to repeat.
    pub fn concrete(&self, next: &Move) -> Move {
        let mut probe = self.clone();
        let op = match (next.op, probe.make(next)) {
            (Op::Check(_), Done::Decided { cost, .. }) => Op::Check(Cost::Units(cost)),
            (Op::Peek(_), Done::Decided { cost, .. }) => Op::Peek(Cost::Units(cost)),
            (Op::Debt(_), Done::Owed { cost }) => Op::Debt(Cost::Units(cost)),
            (op, _) => op,
        };
        Move { step: Step::To(probe.now_us), op }
    }

    /// The outcome of a peek with this cost at this instant.
    pub fn peek(&self, cost: u64) -> Outcome {
        self.params.decide(&self.state, self.now_us, cost, Intent::Peek)
    }

    /// Whether time ends before this limit is idle again, so that later instants were clamped.
    pub fn ends_soon(&self) -> bool {
        let setup = self.setup();
        let window_us = self.params.window_us().unwrap_or(0).max(setup.period_us);
        let idle_us = self.params.idle_at_us(&self.state);
        idle_us.max(self.now_us).saturating_add(window_us.saturating_mul(4)) >= MAX_US
    }

    fn decide(&mut self, cost: u64, intent: Intent) -> Done {
        self.redated |= self.params.redate(&mut self.state, self.now_us);
        let outcome = self.params.decide(&self.state, self.now_us, cost, intent);
        self.last = Some((self.now_us, outcome));
        if outcome.admitted && intent == Intent::Take {
            self.charge(cost, true);
        }
        Done::Decided { cost, intent, outcome }
    }

    fn charge(&mut self, units: u64, admitted: bool) {
        self.redated |= self.params.redate(&mut self.state.clone(), self.now_us);
        let receipt = self.params.charge(&mut self.state, self.now_us, units);
        self.held.push(Held { receipt, params: self.params, units, admitted });
    }

    fn give_back(&mut self, which: usize, eighths: u64) -> Done {
        if self.held.is_empty() {
            return Done::Nothing;
        }
        // Newer charges are more likely to have units left.
        let recent = self.held.len().min(6);
        let index = self.held.len() - 1 - which % recent;
        let held = &mut self.held[index];
        let units = (u128::from(held.units) * u128::from(eighths)).div_ceil(8) as u64;
        held.units -= units;
        let held = *held;
        held.params.give_back(&mut self.state, self.now_us, units, &held.receipt);
        Done::GaveBack { held: index, units }
    }

    fn units(&self, cost: Cost) -> u64 {
        let capacity = self.params.capacity();
        match cost {
            Cost::Units(units) => units,
            Cost::Share(eighths) => (capacity * eighths).div_ceil(8),
            Cost::Remaining(more) => self.peek(1).remaining.saturating_add_signed(more),
            Cost::Capacity(more) => capacity.saturating_add_signed(more),
        }
    }

    fn instant(&self, step: Step) -> u64 {
        let (now_us, period_us) = (self.now_us, self.setup().period_us);
        let (asked_us, outcome) = self.last.map_or((now_us, self.peek(1)), |last| last);
        let reach = |instant_us: u64, more: i64| {
            let instant_us = instant_us.saturating_add_signed(more);
            if instant_us > now_us { instant_us } else { now_us }
        };
        let forth = match step {
            Step::Stay => now_us,
            Step::Micros(us) => now_us.saturating_add(us),
            Step::Share(n) => now_us.saturating_add((period_us * n).div_ceil(16)),
            Step::Edge(more) => reach((now_us / period_us + 1).saturating_mul(period_us), more),
            Step::Retry(more) => {
                reach(asked_us.saturating_add(outcome.retry_after_us.unwrap_or(0)), more)
            }
            Step::Reset(more) => reach(asked_us.saturating_add(outcome.reset_after_us), more),
            Step::More(more) => {
                reach(asked_us.saturating_add(outcome.more_after_us.unwrap_or(0)), more)
            }
            Step::Idle(more) => reach(self.params.idle_at_us(&self.state), more),
            Step::Back(n) => return now_us.saturating_sub((period_us * n).div_ceil(16)),
            Step::LeapBack(n) => return now_us.saturating_sub(period_us * n),
            Step::To(us) => return us,
        };
        forth.min(MAX_US.max(now_us))
    }
}
