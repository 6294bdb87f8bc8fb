//! A gate from a few lines of YAML, with its rules.

use tollgate::MemoryStore;
use tollgate::engine::{Gate, GateBuffers, GateSetup, RulesGuard, Source, Verdict, policy};

/// Any instant that does not start a window.
pub(crate) const NOW_US: u64 = 1_700_000_000_000_000;

/// A gate whose rules never change.
pub(crate) struct GateFixture {
    pub(crate) gate: Gate,
    pub(crate) rules: RulesGuard,
}

pub(crate) fn setup(limits: &str) -> GateSetup {
    let text = format!("tiers: {{default: free, from: plan}}\nlimits:\n{limits}");
    GateSetup::of(&policy::compile(text.as_bytes()).unwrap())
}

pub(crate) fn gate(limits: &str) -> GateFixture {
    fixture(setup(limits))
}

pub(crate) fn fixture(setup: GateSetup) -> GateFixture {
    let gate = Gate::new(setup, MemoryStore::default()).unwrap();
    let rules = gate.rules();
    GateFixture { gate, rules }
}

pub(crate) fn facts<'g>(desk: &'g GateFixture, values: &[(&str, &'g str)]) -> policy::Facts<'g> {
    let mut facts = desk.rules.facts(Default::default());
    for (name, value) in values {
        facts.set(name, value).unwrap();
    }
    desk.rules.identify(&mut facts);
    facts
}

pub(crate) fn check<'g>(
    desk: &'g GateFixture,
    values: &[(&str, &'g str)],
    cost: u64,
) -> Verdict<'g> {
    desk.gate
        .check(&desk.rules, NOW_US, &facts(desk, values), cost, &mut GateBuffers::default())
        .now()
}

/// For each row: the name, whether it admits, and the remaining units.
pub(crate) fn rows<'v>(verdict: &'v Verdict<'_>) -> Vec<(&'v str, bool, u64)> {
    let row = |row: &tollgate::engine::Row<'v>| {
        (&*row.limit.name, row.outcome.admitted, row.outcome.remaining)
    };
    verdict.rows.iter().map(row).collect()
}

/// The verdict on a request: whether it passes, its source, and its rows.
pub(crate) type SeenVerdict = (bool, Source, Vec<(String, bool, u64)>);

pub(crate) fn seen(allowed: bool, source: Source, rows: &[(&str, bool, u64)]) -> SeenVerdict {
    let rows = rows.iter().map(|(name, ok, left)| ((*name).to_owned(), *ok, *left));
    (allowed, source, rows.collect())
}

pub(crate) fn seen_verdict(verdict: &Verdict<'_>) -> SeenVerdict {
    seen(verdict.allowed, verdict.source, &rows(verdict))
}
