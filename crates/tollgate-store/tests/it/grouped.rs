//! Limits on one key that are decided together.

use tollgate_core::algorithm::Gcra;
use tollgate_core::{Intent, LimitParams, Rate};
use tollgate_store::{Answers, MemoryStore, RegisteredLimit, Request, Store, StoreCall};

const NOW_US: u64 = 1_700_000_000_000_000;

/// Limits with the same hash share a cell: each takes its units from it, or neither does.
#[test]
fn limits_that_share_a_cell_are_all_charged_or_none() {
    let rate = Rate::try_new(6, 86_400_000_000).unwrap();
    let params = LimitParams::Gcra(Gcra::try_new(rate, None).unwrap());
    let store = MemoryStore::default();
    let limit = RegisteredLimit { id: 1, params, params_id: store.register_grouped(&params) };
    let limits = [limit, limit];
    let take = |at_us| store.decide_together(at_us, b"key", 1, &limits, |answer| answer.outcome);
    assert!(take(NOW_US).is_none(), "the store has no state yet");
    let charges = [limit.charge(b"key", 1)];
    let request = |intent| Request { charges: &charges, intent };
    let mut answers = Answers::default();
    store.begin(NOW_US, StoreCall::Decide(&[request(Intent::Take)]), &mut answers);
    let left = [take(NOW_US), take(NOW_US)].map(|outcome| outcome.unwrap());
    assert_eq!(left.map(|outcome| (outcome.admitted, outcome.remaining)), [(true, 3), (true, 1)]);
    let third = take(NOW_US + 1);
    assert!(third.is_none(), "each would admit alone, so the locked path decides: {third:?}");
    store.begin(NOW_US, StoreCall::Decide(&[request(Intent::Peek)]), &mut answers);
    assert_eq!(answers.get(0).unwrap().1[0].outcome.remaining, 1, "the first charge was undone");
}
