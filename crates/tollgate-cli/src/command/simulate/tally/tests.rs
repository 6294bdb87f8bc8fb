use super::*;
use tollgate::{Gate, Work};
use tollgate_policy::policy::{Policy, PolicyOptions};
use tollgate_store::MemoryStore;

const FILE: &[u8] = b"
limits:
  - {name: two, key: [user], algorithm: fixed-window, rate: 2/10s}
  - {name: idle, key: [nobody], rate: 1/s}
  - {name: one, key: [user], algorithm: fixed-window, rate: 1/10s, mode: shadow}
";

#[test]
fn the_summary_counts_requests_and_each_limits_own_answers() {
    let compiled = tollgate_policy::compile(FILE).unwrap();
    let policy = Policy::new(compiled.limits, PolicyOptions::default()).unwrap();
    let gate = Gate::new(policy, MemoryStore::default());
    let mut tally = Tally::new(gate.policy().limits(), None);
    let mut work = Work::default();
    for _ in 0..3 {
        let mut facts = gate.policy().facts(Default::default());
        facts.set("user", "42").unwrap();
        let verdict = gate.check(1_700_000_000_000_000, &facts, 1, &mut work);
        tally.count(1_700_000_000_000_000, &verdict);
    }
    assert_eq!(
        tally.to_string(),
        "2 admitted, 1 refused\n  two: 2 admitted, 1 refused\n  one: 1 admitted, 2 refused\n"
    );
}
