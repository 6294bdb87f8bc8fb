use super::*;
use tollgate::MemoryStore;
use tollgate::engine::{Gate, GateBuffers, GateSetup};

const FILE: &[u8] = b"
limits:
  - {name: two, key: [user], algorithm: fixed-window, rate: 2/10s}
  - {name: idle, key: [nobody], rate: 1/s}
  - {name: one, key: [user], algorithm: fixed-window, rate: 1/10s, mode: shadow}
";

#[test]
fn the_summary_counts_requests_and_each_limits_own_answers() {
    let compiled = tollgate_policy::compile(FILE).unwrap();
    let gate = Gate::new(GateSetup::of(&compiled), MemoryStore::default()).unwrap();
    let rules = gate.rules();
    let mut tally = Tally::new(rules.policy().limits(), None);
    let mut work = GateBuffers::default();
    for _ in 0..3 {
        let mut facts = rules.facts(Default::default());
        facts.set("user", "42").unwrap();
        let verdict = gate.check(&rules, 1_700_000_000_000_000, &facts, 1, &mut work).now();
        tally.count(1_700_000_000_000_000, &verdict);
    }
    assert_eq!(
        tally.to_string(),
        "2 admitted, 1 refused\n  two: 2 admitted, 1 refused\n  one: 1 admitted, 2 refused\n"
    );
}
