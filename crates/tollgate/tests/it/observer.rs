//! Observers see each decision once, with the charged units.

use crate::fixture::{GateFixture, NOW_US, check, facts, setup};
use crate::now;
use std::sync::{Arc, Mutex};
use tollgate::MemoryStore;
use tollgate::engine::{
    AdmissionOptions, DecisionObserver, Gate, GateBuffers, ObservedAdjustment, ObservedDecision,
    ReservationEnd, ReservedUnits,
};

/// Records each event as text.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl DecisionObserver for Notes {
    fn decided(&self, decisions: &[ObservedDecision<'_>]) {
        for decision in decisions {
            let ObservedDecision { selected, asked, taken, refuses, .. } = decision;
            let (name, tier) = (&selected.limit.name, decision.tier().unwrap_or("-"));
            self.add(format!("{name} {tier} asked {asked} took {taken} refuses {refuses}"));
        }
    }

    fn adjusted(&self, adjustment: &ObservedAdjustment<'_>) {
        let ObservedAdjustment { tier, given_back, taken, .. } = adjustment;
        let tier = tier.unwrap_or("-");
        self.add(format!("{tier} gave back {given_back} took {taken}"));
    }

    fn reserved(&self, _: u64, id: &str, _: u64, charges: &[ReservedUnits<'_>]) {
        let units: Vec<_> =
            charges.iter().map(|one| (one.tier.unwrap_or("-"), one.units)).collect();
        self.add(format!("reserved {id} {units:?}"));
    }

    fn ended(&self, _: u64, id: &str, units: &[u64]) {
        self.add(format!("ended {id} {units:?}"));
    }
}

fn observed(limits: &str) -> (GateFixture, Arc<Notes>) {
    let notes = Arc::<Notes>::default();
    let gate = Gate::new(setup(limits), MemoryStore::default()).unwrap();
    let gate = gate.with_observer(notes.clone());
    let rules = gate.rules();
    (GateFixture { gate, rules }, notes)
}

#[test]
fn nothing_is_taken_from_a_limit_when_another_one_refuses() {
    let (desk, notes) = observed(concat!(
        "  - {name: wide, key: [user], rate: 10/min, tiers: {pro: 20/min}}\n",
        "  - {name: tight, key: [user], rate: 1/min}\n",
        "  - {name: tried, key: [user], rate: 1/min, mode: shadow}\n",
    ));
    check(&desk, &[("user", "a"), ("plan", "pro")], 1);
    assert_eq!(
        notes.take(),
        [
            "wide pro asked 1 took 1 refuses false",
            "tight pro asked 1 took 1 refuses false",
            "tried pro asked 1 took 1 refuses false",
        ]
    );
    check(&desk, &[("user", "a")], 3);
    assert_eq!(
        notes.take(),
        [
            "wide free asked 3 took 0 refuses false",
            "tight free asked 3 took 0 refuses true",
            "tried free asked 3 took 0 refuses false",
        ]
    );
    let asked = facts(&desk, &[("user", "a")]);
    desk.gate.peek(&desk.rules, NOW_US, &asked, 1, &mut GateBuffers::default()).now();
    assert_eq!(notes.take(), [""; 0], "a peek takes nothing");
}

#[test]
fn settlements_are_seen_and_slots_are_not() {
    let (desk, notes) = observed(concat!(
        "  - {name: slots, key: [user], algorithm: concurrency, rate: 3}\n",
        "  - {name: tokens, key: [user], rate: 100/min, cost: {estimate: 10, response: {json: n}},\n",
        "     tiers: {pro: 200/min}}\n",
    ));
    for (units, line) in [(4, "pro gave back 6 took 0"), (25, "pro gave back 0 took 15")] {
        let asked = facts(&desk, &[("user", "a"), ("plan", "pro")]);
        let mut work = GateBuffers::default();
        let options = AdmissionOptions::default();
        let admitted = now(desk.gate.admit(&desk.rules, NOW_US, &asked, &options, &mut work));
        let mut held = admitted.1.expect("a slot and an estimate");
        held.settle(1, units);
        now(desk.gate.finish(NOW_US, held));
        assert_eq!(notes.take()[2..], [line]);
    }
}

#[test]
fn a_reservation_is_seen_at_its_start_and_at_its_end() {
    let (desk, notes) =
        observed("  - {name: l, key: [user], rate: 100/min, cost: 2, algorithm: fixed-window}\n");
    let asked = facts(&desk, &[("user", "a")]);
    let mut work = GateBuffers::default();
    let reserved = desk.gate.reserve(&desk.rules, NOW_US, "r", &asked, 5, None, &mut work);
    reserved.now().unwrap();
    desk.gate.end(NOW_US, "r", ReservationEnd::Settle(3)).now().unwrap();
    assert_eq!(
        notes.take(),
        ["l free asked 10 took 10 refuses false", "reserved r [(\"free\", 10)]", "ended r [6]"]
    );
}
