use super::*;
use crate::engine::{AdmissionOptions, GateBuffers, GateSetup, InFlightCharges, policy};
use std::sync::mpsc;
use tollgate_core::LimitParams;
use tollgate_store::{Answers, LeaseStore, MemoryStore, ParamsId, StateKey, StoreError};

const NOW_US: u64 = 1_700_000_000_000_000;

/// A memory store that could also answer later.
#[derive(Debug, Default)]
struct Shared(MemoryStore);

impl Store for Shared {
    type Undecided = <MemoryStore as Store>::Undecided;

    fn begin(
        &self,
        now_us: u64,
        call: StoreCall<'_>,
        answers: &mut Answers,
    ) -> Option<Self::Undecided> {
        self.0.begin(now_us, call, answers)
    }

    async fn finish<'a>(
        &'a self,
        now_us: u64,
        call: StoreCall<'a>,
        rest: Self::Undecided,
        answers: &'a mut Answers,
    ) -> Result<(), StoreError> {
        self.0.finish(now_us, call, rest, answers).await
    }

    fn state_key(&self, charge: &Charge<'_>) -> StateKey {
        self.0.state_key(charge)
    }

    fn register_params(&self, params: &LimitParams) -> ParamsId {
        self.0.register_params(params)
    }
}

impl LeaseStore for Shared {}

const FILE: &str = "limits:
  - {name: slots, key: [user], algorithm: concurrency, ttl: 30s, rate: 20000, on_missing: skip, on_store_failure: closed}
  - {name: ip, key: [ip], rate: 1000/h, on_missing: skip}
";

fn gate() -> Arc<Gate<Shared>> {
    let setup = GateSetup::of(&policy::compile(FILE.as_bytes()).unwrap());
    Arc::new(Gate::new(setup, Shared::default()).unwrap())
}

/// Whether a request with this attribute passes, and its slots.
fn admit(
    gate: &Gate<Shared>,
    now_us: u64,
    name: &str,
    value: &str,
) -> (bool, Option<InFlightCharges>) {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set(name, value).unwrap();
    let (options, mut buffers) = (AdmissionOptions::default(), GateBuffers::default());
    let (verdict, held) = gate.admit(&rules, now_us, &facts, &options, &mut buffers).now();
    (verdict.allowed, held)
}

/// Lets this many slots of these users lapse.
fn lapsed(gate: &Gate<Shared>, slots: usize, users: usize) -> (Vec<InFlightCharges>, u64) {
    let user = |n: usize| format!("u{}", n % users);
    let held = (0..slots).map(|n| admit(gate, NOW_US, "user", &user(n)).1.unwrap()).collect();
    let mut registered = gate.slots.lock();
    for index in 0..slots {
        gate.slots.set_failed(&mut registered, index).unwrap();
    }
    (held, NOW_US + 31_000_000)
}

/// The number of renewals in one pass that all fail, and the wait for the next pass.
fn failed_renewals(gate: &Gate<Shared>, now_us: u64) -> (usize, Option<u64>) {
    let mut pass = RenewalPass { now_us, next: 0, wait_us: None };
    let mut failed = 0;
    while gate.slots.take_due(&mut pass).is_some() {
        failed += 1;
    }
    assert_eq!(pass.next, gate.slots.lock().held.capacity(), "each entry is visited once");
    (failed, pass.wait_us)
}

#[test]
fn lapsed_slots_cost_decisions_on_other_limits_no_lock() {
    let gate = gate();
    let (held, now_us) = lapsed(&gate, 10_000, 10_000);
    assert!(gate.slots.has_failed());
    assert!(!admit(&gate, now_us, "user", "u7").0);
    let locked = gate.slots.lock();
    let (decided, decision) = mpsc::channel();
    let other = gate.clone();
    let decide = move || decided.send(admit(&other, now_us, "ip", "10.0.0.1").0);
    let thread = std::thread::spawn(decide);
    let decision = decision.recv_timeout(Duration::from_secs(20));
    drop(locked);
    assert_eq!(decision, Ok(true), "the decision waits for the lock");
    thread.join().unwrap().unwrap();
    drop(held);
    assert!(!gate.slots.has_failed());
    assert!(gate.slots.lock().failing.is_empty());
}

#[test]
fn a_pass_visits_each_slot_once_and_tries_each_key_once() {
    for (slots, users) in [(1_000, 1), (1_000, 10), (10_000, 10_000)] {
        let gate = gate();
        let (held, now_us) = lapsed(&gate, slots, users);
        let wait_us = LAPSED_WAIT_US;
        assert_eq!(failed_renewals(&gate, now_us), (users, Some(wait_us)));
        assert_eq!(failed_renewals(&gate, now_us + wait_us - 1), (0, Some(1)));
        assert_eq!(failed_renewals(&gate, now_us + wait_us), (users, Some(wait_us)));
        drop(held);
    }
}
