use super::*;
use crate::ChargeMode;
use futures_util::FutureExt;
use tollgate_core::algorithm::{Concurrency, SlidingLog};
use tollgate_core::{Outcome, Rate, Receipt};

fn slots() -> LimitParams {
    LimitParams::Concurrency(Concurrency::try_new(1, 1_000_000).unwrap())
}

/// A reply with one charge that was admitted.
fn unread(returns: &Arc<SlotReturns>, params: LimitParams, mode: ChargeMode) -> UnreadSlots {
    let receipt = Some(Receipt { cost: 1, ..Receipt::default() });
    let row = Answer { receipt, ..Answer::without_receipt(Outcome::admitting(1)) };
    let charge = || NamedCharge { name: b"a".to_vec(), params, cost: 1, mode, penalty: None };
    let mut slots = UnreadSlots::default();
    slots.add(returns, None, (&params, &row), charge);
    slots
}

fn waiting(returns: &SlotReturns) -> usize {
    lock_mutex(&returns.waiting).len()
}

#[test]
fn only_slots_of_unread_replies_are_given_back() {
    let returns = Arc::default();
    let mut all = unread(&returns, slots(), ChargeMode::Enforce);
    all.append(unread(&returns, slots(), ChargeMode::Shadow));
    all.set_read();
    assert_eq!(waiting(&returns), 0);
    let log = LimitParams::SlidingLog(SlidingLog::new(Rate::try_new(1, 1_000).unwrap()));
    drop(unread(&returns, log, ChargeMode::Enforce));
    assert_eq!(waiting(&returns), 0, "a unit of a rate stays charged");
    let mut all = unread(&returns, slots(), ChargeMode::Enforce);
    all.append(unread(&returns, slots(), ChargeMode::Candidate { enforced: true }));
    all.retain_charged(GroupVerdicts { admitted: true, candidates_admit: false });
    drop(all);
    assert_eq!(waiting(&returns), 1);
}

#[test]
fn the_number_of_waiting_slots_is_bounded() {
    let returns = Arc::default();
    for _ in 0..=WAITING_MAX {
        drop(unread(&returns, slots(), ChargeMode::Enforce));
    }
    assert_eq!(waiting(&returns), WAITING_MAX);
    let mut calls = 0;
    while waiting(&returns) > 0 {
        let slots = returns.next().now_or_never().expect("slots wait");
        assert_eq!(slots.len(), SLOTS_PER_CALL_MAX);
        calls += 1;
    }
    assert_eq!(calls, WAITING_MAX / SLOTS_PER_CALL_MAX);
    assert!(
        lock_mutex(&returns.waiting).capacity() < WAITING_MAX,
        "the room of a peak is given back"
    );
    assert!(returns.next().now_or_never().is_none());
}
