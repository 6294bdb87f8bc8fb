//! Coverage of the generators: a property that is tested only on admitted requests proves little.

use crate::generate::{self, EVERYTHING, Trace};
use crate::world::{Done, World};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::fmt;
use tollgate_core::{Intent, Outcome};

const TRACES: usize = 1_000;

/// Counts of the outcomes.
#[derive(Debug, Default)]
struct Coverage {
    moves: u64,
    decisions: u64,
    refusals: u64,
    refusals_for_ever: u64,
    costs_above_one: u64,
    peeks: u64,
    debts: u64,
    give_backs: u64,
    partial_give_backs: u64,
    tier_changes: u64,
    steps_back: u64,
    redated_traces: u64,
    delayed: u64,
    traces: u64,
    uneven_rates: u64,
    kinds: std::collections::BTreeMap<&'static str, u64>,
    /// Operations one microsecond before, at, and one microsecond after each boundary.
    edges: [u64; 3],
    retries: [u64; 3],
    resets: [u64; 3],
    mores: [u64; 3],
}

#[test]
fn generators_reach_what_matters() {
    let mut runner = TestRunner::deterministic();
    let mut coverage = Coverage::default();
    for _ in 0..TRACES {
        let tree = generate::trace(EVERYTHING).new_tree(&mut runner).expect("it draws");
        coverage.add(&tree.current());
    }
    eprintln!("{coverage}");
    coverage.is_enough();
}

impl Coverage {
    fn add(&mut self, trace: &Trace) {
        let mut world = World::new(trace);
        let setup = *world.setup();
        self.traces += 1;
        let uneven = setup.count > 0 && !setup.period_us.is_multiple_of(setup.count);
        self.uneven_rates += u64::from(uneven);
        *self.kinds.entry(world.params.algorithm()).or_default() += 1;
        let mut named: Option<(u64, Outcome)> = None;
        for next in &trace.moves {
            let before_us = world.now_us;
            let done = world.make(next);
            self.moves += 1;
            self.steps_back += u64::from(world.now_us < before_us);
            self.meet(&world, named);
            self.count(&world, done);
            if let Done::Decided { outcome, .. } = done {
                named = Some((world.now_us, outcome));
            }
        }
        self.redated_traces += u64::from(world.redated);
    }

    fn count(&mut self, world: &World, done: Done) {
        match done {
            Done::Decided { cost, intent, outcome } => {
                self.decisions += 1;
                self.peeks += u64::from(intent == Intent::Peek);
                self.refusals += u64::from(!outcome.admitted);
                self.refusals_for_ever += u64::from(outcome.retry_after_us.is_none());
                self.costs_above_one += u64::from(cost > 1);
                self.delayed += u64::from(outcome.delay_us > 0);
            }
            Done::Owed { .. } => self.debts += 1,
            Done::GaveBack { held, .. } => {
                self.give_backs += 1;
                self.partial_give_backs += u64::from(world.held[held].units > 0);
            }
            Done::Nothing => self.tier_changes += 1,
        }
    }

    /// Whether this instant is at most one microsecond from a boundary.
    fn meet(&mut self, world: &World, named: Option<(u64, Outcome)>) {
        let window_us = world.setup().period_us;
        let edge_us = (world.now_us + 1) / window_us * window_us;
        tally(&mut self.edges, edge_us, world.now_us);
        if let Some((asked_us, outcome)) = named {
            let near = |counts: &mut [u64; 3], wait: Option<u64>| {
                if let Some(wait_us) = wait.filter(|&us| us > 0) {
                    tally(counts, asked_us.saturating_add(wait_us), world.now_us);
                }
            };
            near(&mut self.retries, outcome.retry_after_us);
            near(&mut self.resets, Some(outcome.reset_after_us));
            near(&mut self.mores, outcome.more_after_us);
        }
    }

    fn is_enough(&self) {
        let share = |part: u64, whole: u64| part * 100 / whole;
        assert!(share(self.refusals, self.decisions) >= 30, "too few refusals");
        assert!(share(self.costs_above_one, self.decisions) >= 10, "too few costs above one");
        assert!(share(self.uneven_rates, self.traces) >= 30, "too few rates that do not divide");
        assert!(share(self.give_backs, self.moves) >= 5, "too few give-backs");
        assert!(share(self.debts, self.moves) >= 2, "too few debts");
        assert!(share(self.steps_back, self.moves) >= 2, "too few steps back");
        assert!(share(self.redated_traces, self.traces) >= 2, "too few leaps");
        assert!(self.delayed > 0 && self.refusals_for_ever > 0 && self.partial_give_backs > 0);
        assert_eq!(self.kinds.len(), 7, "an algorithm was never drawn");
        for (boundary, counts) in self.boundaries() {
            assert!(counts.iter().all(|&n| n >= 50), "too little around each {boundary}");
        }
    }

    fn boundaries(&self) -> [(&'static str, [u64; 3]); 4] {
        [
            ("window edge", self.edges),
            ("retry instant", self.retries),
            ("reset (expiry, TAT)", self.resets),
            ("next unit", self.mores),
        ]
    }
}

fn tally(counts: &mut [u64; 3], boundary_us: u64, now_us: u64) {
    for (count, more) in counts.iter_mut().zip([-1, 0, 1]) {
        *count += u64::from(boundary_us.checked_add_signed(more) == Some(now_us));
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, part: u64, whole: u64| {
            writeln!(f, "{name:>24} {part:>7} {:>3} %", part * 100 / whole)
        };
        row("decisions", self.decisions, self.moves)?;
        row("refusals", self.refusals, self.decisions)?;
        row("refusals for ever", self.refusals_for_ever, self.decisions)?;
        row("costs above one", self.costs_above_one, self.decisions)?;
        row("peeks", self.peeks, self.decisions)?;
        row("delayed", self.delayed, self.decisions)?;
        row("debts", self.debts, self.moves)?;
        row("give-backs", self.give_backs, self.moves)?;
        row("of them partial", self.partial_give_backs, self.give_backs)?;
        row("tier changes, no-ops", self.tier_changes, self.moves)?;
        row("clock stepped back", self.steps_back, self.moves)?;
        row("traces re-dated", self.redated_traces, self.traces)?;
        row("rates that do not divide", self.uneven_rates, self.traces)?;
        for (boundary, [before, at, after]) in self.boundaries() {
            writeln!(f, "{boundary:>24} -1us {before}, at {at}, +1us {after}")?;
        }
        writeln!(f, "{:>24} {:?}", "algorithms", self.kinds)
    }
}
