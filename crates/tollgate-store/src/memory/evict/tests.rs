//! What goes first when there is no room.

use crate::memory::{MemoryOptions, MemoryStats, MemoryStore};
use crate::{Adjustment, Answers, Change, Charge, ChargeMode, ParamsId, Request, Store, StoreCall};
use tollgate_core::algorithm::{Concurrency, Gcra, SlidingLog, TokenBucket};
use tollgate_core::{Intent, LimitParams, Penalty, Rate, Receipt};

const NOW_US: u64 = 1_700_000_000_000_000;
const SECOND_US: u64 = 1_000_000;
/// Four chunks and what a shard takes by itself.
const CAP: u64 = 5_500;

/// A store of one shard with room for some two hundred small cells.
fn small() -> MemoryStore {
    MemoryStore::new(MemoryOptions::default().shards(1).seed(7).max_bytes(CAP))
}

/// A hundred at once, one more each second.
fn gcra() -> LimitParams {
    let rate = Rate::try_new(100, 100 * SECOND_US).unwrap();
    LimitParams::Gcra(Gcra::try_new(rate, None).unwrap())
}

fn token_bucket() -> LimitParams {
    let rate = Rate::try_new(100, 100 * SECOND_US).unwrap();
    LimitParams::TokenBucket(TokenBucket::try_new(rate, None).unwrap())
}

/// A hundred in any 100 seconds, each in a spilled cell.
fn log() -> LimitParams {
    LimitParams::SlidingLog(SlidingLog::new(Rate::try_new(100, 100 * SECOND_US).unwrap()))
}

fn ask(
    store: &MemoryStore,
    now_us: u64,
    key: &str,
    cost: u64,
    params: &LimitParams,
    penalty: Option<&Penalty>,
) -> (bool, u64) {
    request(store, now_us, key, cost, params, penalty, Intent::Take)
}

fn request(
    store: &MemoryStore,
    now_us: u64,
    key: &str,
    cost: u64,
    params: &LimitParams,
    penalty: Option<&Penalty>,
    intent: Intent,
) -> (bool, u64) {
    let charge = Charge {
        limit: 1,
        key: key.as_bytes(),
        params,
        params_id: store.register_params(params),
        cost,
        mode: ChargeMode::Enforce,
        penalty,
    };
    let mut answers = Answers::default();
    store.begin(now_us, StoreCall::Decide(&[Request { charges: &[charge], intent }]), &mut answers);
    let (admitted, rows) = answers.get(0).unwrap();
    (admitted, rows[0].outcome.remaining)
}

fn flood(
    store: &MemoryStore,
    now_us: u64,
    name: &str,
    keys: usize,
    cost: u64,
    params: &LimitParams,
) -> usize {
    (0..keys).filter(|n| ask(store, now_us, &format!("{name}{n}"), cost, params, None).0).count()
}

fn stats(store: &MemoryStore) -> MemoryStats {
    store.stats()
}

#[test]
fn idle_state_goes_first() {
    let store = small();
    assert_eq!(flood(&store, NOW_US, "half", 60, 50, &gcra()), 60);
    assert_eq!(flood(&store, NOW_US, "one", 50, 1, &gcra()), 50);
    let before = stats(&store);
    // A second later the single units are back; the halves are not.
    let later_us = NOW_US + SECOND_US;
    assert_eq!(flood(&store, later_us, "new", 120, 50, &gcra()), 120);
    let after = stats(&store);
    assert_eq!(after.evicted, 0, "idle state was enough: {before:?} {after:?}");
    assert_eq!(after.overflowed, 0);
    for n in 0..60 {
        let (_, remaining) = ask(&store, later_us, &format!("half{n}"), 0, &gcra(), None);
        assert_eq!(remaining, 51, "a key that used its limit is kept");
    }
}

#[test]
fn then_state_that_is_nearly_unused() {
    let store = small();
    flood(&store, NOW_US, "half", 100, 50, &gcra());
    flood(&store, NOW_US, "ten", 2_000, 10, &gcra());
    let stats = stats(&store);
    assert!(stats.evicted > 1_500, "90 % remaining may go, and is counted: {stats:?}");
    assert_eq!(stats.overflowed, 0, "{stats:?}");
    assert!(stats.bytes <= CAP, "{stats:?}");
    for n in 0..100 {
        assert_eq!(ask(&store, NOW_US, &format!("half{n}"), 0, &gcra(), None).1, 50);
    }
}

#[test]
fn never_more_than_a_tenth_used() {
    let store = small();
    flood(&store, NOW_US, "eleven", 2_000, 11, &gcra());
    let stats = stats(&store);
    assert_eq!(stats.evicted, 0, "89 % remaining must stay: {stats:?}");
    assert!(stats.overflowed > 1_500, "so new keys share: {stats:?}");
    assert_eq!(store.overflowed(), [(1, stats.overflowed)], "counted by limit");
}

#[test]
fn overflow_cells_are_shared_and_limited() {
    let store = small();
    flood(&store, NOW_US, "full", 400, 100, &gcra());
    let overflowed = stats(&store).overflowed;
    assert!(overflowed > 0);
    // New keys share 1,024 cells of a hundred units each: all of these keys together get no more
    // than that.
    let admitted = flood(&store, NOW_US, "late", 20_000, 50, &gcra());
    assert!(admitted > 1_500, "nobody is locked out wholesale: {admitted}");
    assert!(admitted <= 2 * 1_024, "but they share: {admitted}");
    assert!(stats(&store).bytes < CAP + 64 * 1_024, "the overflow cells are few");
    assert!(!ask(&store, NOW_US, "full0", 1, &gcra(), None).0, "a limited key stays limited");
}

#[test]
fn refusals_that_count_are_kept() {
    let penalty = Penalty::try_new(2, 60 * SECOND_US, 1_000, 60 * SECOND_US).unwrap();
    let store = MemoryStore::new(MemoryOptions::default().shards(1).seed(7).max_bytes(20_000));
    for n in 0..20 {
        let key = format!("bad{n}");
        // One refusal, for a cost above the capacity: nothing used, and still to be remembered.
        assert!(!ask(&store, NOW_US, &key, 101, &gcra(), Some(&penalty)).0);
    }
    flood(&store, NOW_US, "one", 5_000, 1, &gcra());
    assert!(stats(&store).evicted > 0);
    for n in 0..20 {
        let key = format!("bad{n}");
        assert!(!ask(&store, NOW_US, &key, 101, &gcra(), Some(&penalty)).0);
        assert!(!ask(&store, NOW_US, &key, 0, &gcra(), Some(&penalty)).0, "blocked at the second");
    }
}

/// Keys that share an overflow cell share its limit, and nothing else: a client that makes up keys
/// must not get others blocked.
#[test]
fn refusals_in_an_overflow_cell_block_nobody() {
    let penalty = Penalty::try_new(1, 60 * SECOND_US, 1_000, 60 * SECOND_US).unwrap();
    let store = MemoryStore::new(MemoryOptions::default().shards(1).seed(7).max_bytes(20_000));
    // The slab gets room for violations, which is free again when these blocks are over.
    for n in 0..20 {
        assert!(!ask(&store, NOW_US, &format!("bad{n}"), 101, &gcra(), Some(&penalty)).0);
    }
    let now_us = NOW_US + 1_000 * SECOND_US;
    flood(&store, now_us, "full", 5_000, 100, &gcra());
    let before = stats(&store).overflowed;
    let admitted = (0..8_000)
        .filter(|n| ask(&store, now_us, &format!("new{n}"), 100, &gcra(), Some(&penalty)).0)
        .count();
    assert!(stats(&store).overflowed >= before + 8_000, "there is room for new keys");
    assert!(admitted < 1_024, "{admitted}: the cells are not used up");
    // Half a minute later each cell has thirty units again, and a block would still hold.
    let later_us = now_us + 30 * SECOND_US;
    let refused = (0..2_000)
        .filter(|n| !ask(&store, later_us, &format!("other{n}"), 1, &gcra(), Some(&penalty)).0)
        .count();
    assert_eq!(refused, 0);
}

/// A client fills the store to get rid of its own block, or of its violations.
#[test]
fn a_flood_of_limited_keys_clears_no_block_and_no_violation() {
    let penalty = Penalty::try_new(2, 60 * SECOND_US, 1_000, 60 * SECOND_US).unwrap();
    let store = MemoryStore::new(MemoryOptions::default().shards(1).seed(7).max_bytes(20_000));
    let refused = |key: &str, cost| !ask(&store, NOW_US, key, cost, &gcra(), Some(&penalty)).0;
    assert!(refused("blocked", 101) && refused("blocked", 101));
    assert!(refused("warned", 101));
    for n in 0..5_000 {
        ask(&store, NOW_US, &format!("full{n}"), 100, &gcra(), Some(&penalty));
        ask(&store, NOW_US, &format!("full{n}"), 1, &gcra(), Some(&penalty));
    }
    assert!(stats(&store).overflowed > 0);
    assert!(refused("blocked", 0), "still blocked");
    assert!(refused("warned", 101) && refused("warned", 0), "blocked at the second violation");
}

#[test]
fn a_log_that_cannot_grow_coarsens() {
    let log =
        LimitParams::SlidingLog(SlidingLog::new(Rate::try_new(1_000, 3_600 * SECOND_US).unwrap()));
    let store = MemoryStore::new(MemoryOptions::default().shards(1).seed(7).max_bytes(4_000));
    let admitted = (0..3_000).filter(|n| ask(&store, NOW_US + n, "key", 1, &log, None).0).count();
    assert_eq!(admitted, 1_000, "never more than the limit");
    assert!(stats(&store).bytes <= 4_000, "{:?}", stats(&store));
    let later_us = NOW_US + 3_601 * SECOND_US;
    assert_eq!(ask(&store, later_us, "key", 0, &log, None).1, 1_000, "and all comes back");
}

#[test]
fn sweeping_returns_memory() {
    let store = MemoryStore::new(MemoryOptions::default().shards(4).max_bytes(64 << 20));
    let empty = stats(&store).bytes;
    let log = LimitParams::SlidingLog(SlidingLog::new(Rate::try_new(100, SECOND_US).unwrap()));
    for (name, params) in [("a", gcra()), ("b", token_bucket()), ("c", log)] {
        flood(&store, NOW_US, name, 5_000, 50, &params);
    }
    flood(&store, NOW_US, "long", 100, 100, &gcra());
    flood(&store, NOW_US, "longer", 100, 100, &token_bucket());
    let full = stats(&store);
    assert_eq!(full.keys, 15_200);
    let turn = store.shard_count();
    store.sweep(NOW_US, turn);
    assert_eq!(stats(&store).keys, 15_200, "nothing is idle yet");
    store.sweep(NOW_US + 60 * SECOND_US, turn);
    let swept = stats(&store);
    assert_eq!(swept.keys, 200, "the rest is idle");
    assert!(swept.bytes < full.bytes / 10, "{full:?} {swept:?}");
    let later_us = NOW_US + 60 * SECOND_US;
    for n in 0..100 {
        assert_eq!(ask(&store, later_us, &format!("long{n}"), 0, &gcra(), None).1, 60);
        assert_eq!(ask(&store, later_us, &format!("longer{n}"), 0, &token_bucket(), None).1, 60);
    }
    store.sweep(NOW_US + 200 * SECOND_US, turn);
    assert_eq!(stats(&store).keys, 0);
    assert_eq!(stats(&store).bytes, empty, "every byte is given back");
}

#[test]
fn sweeping_leaves_what_may_be_asked_for_again_soon() {
    let store = MemoryStore::new(MemoryOptions::default().shards(4).max_bytes(64 << 20));
    flood(&store, NOW_US, "client", 1_000, 1, &gcra());
    // All are idle within a second or so, and spared for ten more.
    store.sweep(NOW_US + 9 * SECOND_US, store.shard_count());
    assert_eq!(stats(&store).keys, 1_000);
    store.sweep(NOW_US + 12 * SECOND_US, store.shard_count());
    assert_eq!(stats(&store).keys, 0);
}

/// What one kind of cells has no use for any more is there for another.
#[test]
fn sweeping_spares_nothing_where_memory_is_short() {
    let store = MemoryStore::new(MemoryOptions::default().shards(1).max_bytes(5_500));
    flood(&store, NOW_US, "client", 1_000, 1, &gcra());
    let later_us = NOW_US + 3 * SECOND_US;
    store.sweep(later_us, store.shard_count());
    let swept = stats(&store);
    assert_eq!(swept.keys, 0, "all of them are idle: {swept:?}");
    flood(&store, later_us, "other", 10, 1, &token_bucket());
    let stats = stats(&store);
    assert_eq!((stats.keys, stats.overflowed, stats.evicted), (10, 0, swept.evicted));
}

#[test]
fn growing_drops_idle_cells_instead() {
    let store = MemoryStore::new(MemoryOptions::default().shards(1).max_bytes(64 << 20));
    for second in 0..200 {
        // Each is idle a second later, and may go ten seconds after that.
        flood(&store, NOW_US + second * SECOND_US, &format!("{second}-"), 100, 1, &gcra());
    }
    let stats = stats(&store);
    assert!(stats.keys <= 1_600, "{stats:?}");
    assert!(stats.bytes < 50_000, "{stats:?}");
    assert_eq!(stats.evicted, 0);
}

/// A settlement names no params id: it comes from a record, after a reload perhaps.
#[test]
fn a_settled_key_stays_in_its_cell() {
    let (store, params) = (small(), gcra());
    assert_eq!(flood(&store, NOW_US, "key", 50, 10, &params), 50);
    let bytes = stats(&store).bytes;
    for n in 0..50 {
        let key = format!("key{n}");
        let charge = Charge {
            limit: 1,
            key: key.as_bytes(),
            params: &params,
            params_id: ParamsId::default(),
            cost: 1,
            mode: ChargeMode::Enforce,
            penalty: None,
        };
        let owe = Adjustment { charge, change: Change::Owe { units: 5 } };
        let mut answers = Answers::default();
        store.begin(NOW_US, StoreCall::Adjust(&[owe]), &mut answers);
        assert_eq!(ask(&store, NOW_US, &key, 1, &params, None), (true, 84));
    }
    assert_eq!(stats(&store).bytes, bytes, "nothing was spilled");
}

/// A peek answers what a check would, whatever room there is: with room, without it, and where
/// nearly unused state may go.
#[test]
fn a_peek_of_a_new_key_sees_what_a_check_would() {
    for (kind, params) in [("one word", gcra()), ("two words", token_bucket()), ("log", log())] {
        for cost in [1, 10, 11, 60] {
            let (store, mut overflowed) = (small(), 0);
            for n in 0..3_000 {
                let key = format!("{n}");
                let peek = |cost| request(&store, NOW_US, &key, cost, &params, None, Intent::Peek);
                let (would, remaining) = peek(cost);
                let before = stats(&store);
                let (admitted, after) = ask(&store, NOW_US, &key, cost, &params, None);
                overflowed += u64::from(stats(&store).overflowed > before.overflowed);
                assert_eq!(would, admitted, "{kind}, {cost} units, key {n}");
                let taken = if admitted { cost } else { 0 };
                assert_eq!(remaining, after + taken, "{kind}, {cost} units, key {n}");
            }
            assert!(cost <= 10 || overflowed > 1_000, "{kind}, {cost} units: {overflowed} shared");
        }
    }
}

#[test]
fn a_row_after_a_give_back_sees_the_overflow_cell() {
    let (store, params) = (small(), gcra());
    flood(&store, NOW_US, "full", 2_000, 60, &params);
    let (admitted, left) = ask(&store, NOW_US, "late", 10, &params, None);
    let (_, peeked) = request(&store, NOW_US, "late", 1, &params, None, Intent::Peek);
    assert_eq!(peeked, left);
    let charge = Charge {
        limit: 1,
        key: b"late",
        params: &params,
        params_id: store.register_params(&params),
        cost: 1,
        mode: ChargeMode::Enforce,
        penalty: None,
    };
    let receipt = tollgate_core::Receipt { cost: 10, at_us: NOW_US, ..Default::default() };
    let change = Change::GiveBack { units: 10, receipt, charged_params: params };
    let mut answers = Answers::default();
    store.begin(NOW_US, StoreCall::Adjust(&[Adjustment { charge, change }]), &mut answers);
    let row = answers.get(0).unwrap().1[0].outcome;
    assert_eq!(row.remaining, left, "others count there too, so nothing comes back: {admitted}");
}

/// A charge for the key, and its receipt.
fn take(store: &MemoryStore, now_us: u64, key: &str, params: &LimitParams) -> Option<Receipt> {
    let params_id = store.register_params(params);
    let (key, mode) = (key.as_bytes(), ChargeMode::Enforce);
    let charges = [Charge { limit: 1, key, params, params_id, cost: 1, mode, penalty: None }];
    let mut answers = Answers::default();
    let request = Request { charges: &charges, intent: Intent::Take };
    store.begin(now_us, StoreCall::Decide(&[request]), &mut answers);
    answers.get(0).unwrap().1[0].receipt
}

/// Changes the key's state, and returns the receipt of a debt.
fn adjust(
    store: &MemoryStore,
    now_us: u64,
    key: &str,
    params: &LimitParams,
    change: Change,
) -> Option<Receipt> {
    let (key, mode, params_id) = (key.as_bytes(), ChargeMode::Enforce, ParamsId::default());
    let charge = Charge { limit: 1, key, params, params_id, cost: 1, mode, penalty: None };
    let mut answers = Answers::default();
    store.begin(now_us, StoreCall::Adjust(&[Adjustment { charge, change }]), &mut answers);
    answers.get(0).unwrap().1[0].receipt
}

/// Holds the slot of a receipt for longer, as the engine renews slots.
fn renew(
    store: &MemoryStore,
    now_us: u64,
    key: &str,
    slots: &LimitParams,
    old: Receipt,
) -> Receipt {
    let renewed = adjust(store, now_us, key, slots, Change::Owe { units: 1 }).unwrap();
    give_back(store, now_us, key, slots, old);
    renewed
}

fn give_back(store: &MemoryStore, now_us: u64, key: &str, params: &LimitParams, receipt: Receipt) {
    let (units, charged_params) = (receipt.cost, *params);
    let change = Change::GiveBack { units, receipt, charged_params };
    adjust(store, now_us, key, params, change);
}

#[test]
fn slots_in_an_overflow_cell_are_renewed_and_given_back() {
    let slots = LimitParams::Concurrency(Concurrency::try_new(3, 30 * SECOND_US).unwrap());
    let store = small();
    flood(&store, NOW_US, "full", 2_000, 100, &gcra());
    let mut held: Vec<_> = (0..3).filter_map(|_| take(&store, NOW_US, "late", &slots)).collect();
    assert_eq!(held.len(), 3, "a charge to an overflow cell has a receipt");
    assert!(held.iter().all(|receipt| receipt.is_shared));
    for second in (10..80).step_by(10) {
        let now_us = NOW_US + second * SECOND_US;
        for receipt in &mut held {
            *receipt = renew(&store, now_us, "late", &slots, *receipt);
        }
        assert_eq!(take(&store, now_us, "late", &slots), None, "{second} s: all slots are held");
    }
    let now_us = NOW_US + 80 * SECOND_US;
    for receipt in held {
        give_back(&store, now_us, "late", &slots, receipt);
        let again = take(&store, now_us, "late", &slots).expect("a free slot");
        assert_eq!(take(&store, now_us, "late", &slots), None, "and no more than one");
        give_back(&store, now_us, "late", &slots, again);
        take(&store, now_us, "late", &slots);
    }
}

#[test]
fn a_key_that_got_its_own_cell_gives_back_to_the_overflow_cell() {
    let (store, params) = (small(), log());
    flood(&store, NOW_US, "full", 2_000, 60, &gcra());
    let receipt = take(&store, NOW_US, "late", &params).unwrap();
    // A block makes the cell, even in a full store. This one ends at once.
    adjust(&store, NOW_US, "late", &params, Change::Block { until_us: NOW_US });
    let own = take(&store, NOW_US, "late", &params).unwrap();
    assert!(receipt.is_shared && !own.is_shared);
    give_back(&store, NOW_US, "late", &params, receipt);
    let (_, left) = request(&store, NOW_US, "late", 1, &params, None, Intent::Peek);
    assert_eq!(left, 99, "the own cell keeps its own charge");
}
