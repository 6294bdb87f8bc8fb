//! Limits on one key that are decided together.

use tollgate_core::algorithm::{Gcra, TokenBucket};
use tollgate_core::{Intent, LimitParams, Rate};
use tollgate_store::{
    Answers, FixedClock, MemoryStore, RegisteredLimit, Request, Store, StoreCall,
};

const NOW_US: u64 = 1_700_000_000_000_000;

/// Limits with the same hash share a cell: each takes its units from it, or neither does.
#[test]
fn limits_that_share_a_cell_are_all_charged_or_none() {
    let rate = Rate::try_new(6, 86_400_000_000).unwrap();
    let params = LimitParams::Gcra(Gcra::try_new(rate, None).unwrap());
    let store = MemoryStore::default();
    let limit = RegisteredLimit { id: 1, params, params_id: store.register_grouped(&params) };
    let limits = [limit, limit];
    let take = |at_us| {
        store.decide_together(FixedClock(at_us), b"key", 1, &limits, |answer| answer.outcome)
    };
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

fn take(store: &MemoryStore, limits: &[&RegisteredLimit], intent: Intent) -> (bool, Vec<u64>) {
    let charges: Vec<_> = limits.iter().map(|limit| limit.charge(b"key", 1)).collect();
    let mut answers = Answers::default();
    let request = Request { charges: &charges, intent };
    store.begin(NOW_US, StoreCall::Decide(&[request]), &mut answers);
    let (admitted, rows) = answers.get(0).unwrap();
    (admitted, rows.iter().map(|row| row.outcome.remaining).collect())
}

/// Charges of one request that share a cell each answer for the state before both.
#[test]
fn charges_that_share_a_cell_do_not_see_each_other() {
    let rate = Rate::try_new(6, 86_400_000_000).unwrap();
    let params = LimitParams::Gcra(Gcra::try_new(rate, None).unwrap());
    let store = MemoryStore::default();
    let limit = RegisteredLimit { id: 1, params, params_id: store.register_params(&params) };
    assert_eq!(take(&store, &[&limit], Intent::Take), (true, vec![5]));
    assert_eq!(take(&store, &[&limit, &limit], Intent::Take), (true, vec![4, 4]));
    assert_eq!(take(&store, &[&limit], Intent::Peek), (true, vec![3]), "both were charged");
}

/// A limit that refuses gives the cells of known keys that are charged before it their words back.
#[test]
fn a_refusal_gives_charged_words_back() {
    let rate = |count| Rate::try_new(count, 86_400_000_000).unwrap();
    let store = MemoryStore::default();
    let limit = |id, params| {
        let params_id = store.register_params(&params);
        RegisteredLimit { id, params, params_id }
    };
    let one_word = limit(1, LimitParams::Gcra(Gcra::try_new(rate(6), None).unwrap()));
    let two_words =
        limit(2, LimitParams::TokenBucket(TokenBucket::try_new(rate(6), None).unwrap()));
    let spent = limit(3, LimitParams::Gcra(Gcra::try_new(rate(1), None).unwrap()));
    let all = [&one_word, &two_words, &spent];
    assert_eq!(take(&store, &all, Intent::Take), (true, vec![5, 5, 0]));
    assert_eq!(take(&store, &all, Intent::Take), (false, vec![5, 5, 0]));
    assert_eq!(take(&store, &all[..2], Intent::Take), (true, vec![4, 4]));
    assert_eq!(take(&store, &all[..2], Intent::Peek), (true, vec![4, 4]));
}
