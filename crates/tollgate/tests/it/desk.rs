//! A gate made from a few lines of YAML.

use tollgate::{Gate, Verdict, Work, policy};

/// Any instant will do; this one starts no window.
pub(crate) const NOW_US: u64 = 1_700_000_000_000_000;

pub(crate) fn gate(limits: &str) -> Gate {
    let text = format!("tiers: {{default: free, from: plan}}\nlimits:\n{limits}");
    let compiled = policy::compile(text.as_bytes()).unwrap();
    let mut options = policy::PolicyOptions::default();
    options.tier_attribute = Some("plan".into());
    options.default_tier = Some("free".into());
    Gate::new(policy::Policy::new(compiled.limits, options).unwrap(), Default::default())
}

pub(crate) fn facts<'g>(gate: &'g Gate, values: &[(&str, &'g str)]) -> policy::Facts<'g> {
    let mut facts = gate.policy().facts(Default::default());
    for (name, value) in values {
        facts.set(name, value).unwrap();
    }
    facts
}

pub(crate) fn check<'g>(gate: &'g Gate, values: &[(&str, &'g str)], cost: u64) -> Verdict<'g> {
    gate.check(NOW_US, &facts(gate, values), cost, &mut Work::default())
}

/// Name, whether it admits, and what remains, for each row.
pub(crate) fn rows<'v>(verdict: &'v Verdict<'_>) -> Vec<(&'v str, bool, u64)> {
    let row =
        |row: &tollgate::Row<'v>| (&*row.limit.name, row.outcome.admitted, row.outcome.remaining);
    verdict.rows.iter().map(row).collect()
}
