//! Every interleaving of two threads, by loom: `RUSTFLAGS="--cfg loom" cargo test -p tollgate-store
//! --lib --release`.
//!
//! Under loom a chunk has four slots, so tables grow at the fourth key.

use super::{MemoryOptions, MemoryStore};
use crate::{
    Adjustment, Answers, Change, Charge, ChargeMode, FixedClock, RegisteredLimit, Request, Store,
    StoreCall,
};
use loom::sync::Arc;
use loom::thread;
use tollgate_core::algorithm::Gcra;
use tollgate_core::{Intent, LimitParams, Rate};

const NOW_US: u64 = 1_700_000_000_000_000;

/// `count` at once, one more each second.
fn params(count: u64) -> LimitParams {
    let rate = Rate::try_new(count, count * 1_000_000).unwrap();
    LimitParams::Gcra(Gcra::try_new(rate, None).unwrap())
}

fn store(shards: usize) -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(MemoryOptions::default().shards(shards).seed(3)))
}

/// One key in each of the store's two shards.
fn one_in_each(store: &MemoryStore) -> [Vec<u8>; 2] {
    let in_shard = |shard| {
        let mut names = (0..u8::MAX).map(|n| vec![n]);
        names.find(|name| store.addresses.address(1, name).shard == shard).unwrap()
    };
    [in_shard(0), in_shard(1)]
}

/// One request with a charge for each key, all of limit 1.
fn take(store: &MemoryStore, params: &LimitParams, keys: &[&[u8]]) -> bool {
    take_at(store, NOW_US, params, keys)
}

fn take_at(store: &MemoryStore, now_us: u64, params: &LimitParams, keys: &[&[u8]]) -> bool {
    let charges: Vec<_> = keys.iter().map(|key| charge(store, params, key)).collect();
    let mut answers = Answers::default();
    let request = Request { charges: &charges, intent: Intent::Take };
    store.begin(now_us, StoreCall::Decide(&[request]), &mut answers);
    answers.get(0).unwrap().0
}

fn charge<'a>(store: &MemoryStore, params: &'a LimitParams, key: &'a [u8]) -> Charge<'a> {
    let params_id = store.register_params(params);
    Charge { limit: 1, key, params, params_id, cost: 1, mode: ChargeMode::Enforce, penalty: None }
}

fn remaining(store: &MemoryStore, params: &LimitParams, key: &[u8]) -> u64 {
    let mut answers = Answers::default();
    let request = Request { charges: &[charge(store, params, key)], intent: Intent::Peek };
    store.begin(NOW_US, StoreCall::Decide(&[request]), &mut answers);
    answers.get(0).unwrap().1[0].outcome.remaining
}

#[test]
fn two_threads_insert_the_same_new_key() {
    loom::model(|| {
        let store = store(1);
        let other = store.clone();
        let there = thread::spawn(move || take(&other, &params(1), &[b"new"]));
        let here = take(&store, &params(1), &[b"new"]);
        assert!(here ^ there.join().unwrap(), "exactly one of two is admitted");
        assert_eq!(store.stats().keys, 1, "one key, one cell");
    });
}

#[test]
fn two_threads_share_a_known_key() {
    loom::model(|| {
        let store = store(1);
        assert!(take(&store, &params(3), &[b"key"]));
        let other = store.clone();
        let two =
            |store: &MemoryStore| (0..2).filter(|_| take(store, &params(3), &[b"key"])).count();
        let there = thread::spawn(move || two(&other));
        let here = two(&store);
        assert_eq!(here + there.join().unwrap(), 2, "three permitted, three admitted");
    });
}

#[test]
fn opposite_orders_neither_wait_for_ever_nor_split() {
    loom::model(|| {
        let store = store(2);
        let [a, b] = one_in_each(&store);
        let other = store.clone();
        let (x, y) = (a.clone(), b.clone());
        let there = thread::spawn(move || take(&other, &params(1), &[&y, &x]));
        let here = take(&store, &params(1), &[&a, &b]);
        assert!(here ^ there.join().unwrap(), "both keys go to one of the two");
        assert_eq!((remaining(&store, &params(1), &a), remaining(&store, &params(1), &b)), (0, 0));
    });
}

#[test]
fn one_key_alone_beside_both_together() {
    loom::model(|| {
        let store = store(2);
        let [a, b] = one_in_each(&store);
        let other = store.clone();
        let x = a.clone();
        let there = thread::spawn(move || take(&other, &params(1), &[&x]));
        let here = take(&store, &params(1), &[&a, &b]);
        assert!(here ^ there.join().unwrap(), "one unit of the first key");
        let left = remaining(&store, &params(1), &b);
        assert_eq!(
            left,
            u64::from(!here),
            "the second key is charged with the first or not at all"
        );
    });
}

#[test]
fn a_table_grows_under_a_reader() {
    loom::model(|| {
        let store = store(1);
        for key in [b"1", b"2", b"3"] {
            assert!(take(&store, &params(2), &[key]));
        }
        let other = store.clone();
        let there = thread::spawn(move || {
            assert!(take(&other, &params(2), &[b"4"]));
            assert!(take(&other, &params(2), &[b"1"]));
        });
        assert!(take(&store, &params(2), &[b"2"]));
        assert!(!take(&store, &params(2), &[b"2"]));
        there.join().unwrap();
        let left: Vec<_> = [b"1", b"2", b"3", b"4"]
            .iter()
            .map(|key| remaining(&store, &params(2), *key))
            .collect();
        assert_eq!(left, [0, 0, 1, 1]);
    });
}

#[test]
fn batches_in_opposite_orders() {
    // Six decisions have too many orders; nearly all mistakes show with three preemptions.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let store = store(2);
        let [a, b] = one_in_each(&store);
        let other = store.clone();
        let (x, y) = (a.clone(), b.clone());
        let batch = |store: &MemoryStore, keys: [&[u8]; 3]| {
            let params = params(2);
            let charges = keys.map(|key| [charge(store, &params, key)]);
            let requests =
                [0, 1, 2].map(|n| Request { charges: &charges[n], intent: Intent::Take });
            let mut answers = Answers::default();
            store.begin(NOW_US, StoreCall::Decide(&requests), &mut answers);
            (0..3).filter(|&n| answers.get(n).unwrap().0).count()
        };
        let there = thread::spawn(move || batch(&other, [&y, &x, &y]));
        let here = batch(&store, [&a, &b, &a]);
        assert_eq!(here + there.join().unwrap(), 4, "two of three for each of two keys");
    });
}

#[test]
fn sweeping_and_settling_beside_a_decision() {
    loom::model(|| {
        let store = store(1);
        assert!(take(&store, &params(2), &[b"key"]));
        let other = store.clone();
        let there = thread::spawn(move || {
            other.sweep(NOW_US, 1);
            let params = params(2);
            let charge = charge(&other, &params, b"key");
            let mut answers = Answers::default();
            let owe = Adjustment { charge, change: Change::Owe { units: 1 } };
            other.begin(NOW_US, StoreCall::Adjust(&[owe]), &mut answers);
        });
        take(&store, &params(2), &[b"key"]);
        there.join().unwrap();
        assert!(!take(&store, &params(2), &[b"key"]), "two units were taken in any order");
    });
}

#[test]
fn full_stores_share_overflow_cells() {
    // Twice the locks have too many orders; nearly all mistakes show with three preemptions.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        // No memory at all, so that every new key goes to an overflow cell.
        let store =
            Arc::new(MemoryStore::new(MemoryOptions::default().shards(2).seed(3).max_bytes(0)));
        let [a, b] = one_in_each(&store);
        let other = store.clone();
        let (x, y) = (a.clone(), b.clone());
        let there = thread::spawn(move || take(&other, &params(1), &[&y, &x]));
        let here = take(&store, &params(1), &[&a, &b]);
        assert!(here ^ there.join().unwrap(), "shared cells are all-or-nothing, too");
        assert!(store.stats().overflowed > 0);
    });
}

/// A thread that swaps a word without the lock, beside one that replaces the array.
#[test]
fn no_admission_is_lost_when_an_array_is_replaced() {
    loom::model(|| {
        let store = store(1);
        for key in [b"1", b"2", b"3"] {
            assert!(take(&store, &params(3), &[key]));
        }
        let other = store.clone();
        // The fourth key makes the table grow.
        let there = thread::spawn(move || assert!(take(&other, &params(3), &[b"4"])));
        assert!(take(&store, &params(3), &[b"1"]));
        assert!(take(&store, &params(3), &[b"1"]));
        assert!(!take(&store, &params(3), &[b"1"]), "both swaps were copied");
        there.join().unwrap();
        assert_eq!(remaining(&store, &params(3), b"1"), 0);
    });
}

/// One thread writes under other params, which moves the key to another slot and back.
#[test]
fn no_admission_is_lost_when_params_change() {
    loom::model(|| {
        let store = store(1);
        assert!(take(&store, &params(4), &[b"key"]));
        let other = store.clone();
        let there = thread::spawn(move || {
            let more = LimitParams::Gcra(
                Gcra::try_new(Rate::try_new(1, 1_000_000).unwrap(), Some(8)).unwrap(),
            );
            assert!(take(&other, &more, &[b"key"]));
            assert!(take(&other, &params(4), &[b"key"]));
        });
        assert!(take(&store, &params(4), &[b"key"]));
        there.join().unwrap();
        assert_eq!(remaining(&store, &params(4), b"key"), 0, "four of four");
        assert_eq!(store.stats().keys, 1);
    });
}

/// Two limits of one request are charged together, seen from a thread that takes no lock.
#[test]
fn a_swap_does_not_come_between_two_charges() {
    loom::model(|| {
        let store = store(1);
        assert!(take(&store, &params(2), &[b"a", b"b"]));
        let other = store.clone();
        let there = thread::spawn(move || take(&other, &params(2), &[b"a", b"b"]));
        let here = take(&store, &params(2), &[b"a"]);
        assert!(here ^ there.join().unwrap(), "one unit of the first key was left");
        let left = remaining(&store, &params(2), b"b");
        assert_eq!(left, u64::from(here), "the second key is charged with the first or not at all");
    });
}

/// An evicted key's slot never becomes another key's.
#[test]
fn a_full_store_evicts_beside_a_swap() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        // Room for one chunk: the fourth key makes the table evict.
        let fixed = MemoryStore::new(MemoryOptions::default().shards(1).max_bytes(0)).stats().bytes;
        let options = MemoryOptions::default().shards(1).seed(3).max_bytes(fixed + 320);
        let store = Arc::new(MemoryStore::new(options));
        for key in [b"1", b"2", b"3"] {
            assert!(take(&store, &params(1), &[key]));
        }
        let other = store.clone();
        let later_us = NOW_US + 1_000_000;
        let there = thread::spawn(move || take_at(&other, later_us, &params(1), &[b"4"]));
        let here = take_at(&store, later_us, &params(1), &[b"1"]);
        assert!(here && there.join().unwrap(), "a second later each has a unit");
        assert_eq!(store.stats().overflowed, 0);
        assert!(!take_at(&store, later_us, &params(1), &[b"1"]), "the key was not forgotten");
    });
}

/// A check of two grouped limits on one key.
fn take_group(store: &MemoryStore, key: &[u8]) -> bool {
    let limits = [1, 2].map(|id| {
        let params = params(2);
        RegisteredLimit { id, params, params_id: store.register_grouped(&params) }
    });
    if let Some(answer) =
        store.decide_together(FixedClock(NOW_US), key, 1, &limits, |answer| answer)
    {
        return answer.outcome.admitted;
    }
    let charges = limits.each_ref().map(|limit| limit.charge(key, 1));
    let mut answers = Answers::default();
    let request = Request { charges: &charges, intent: Intent::Take };
    store.begin(NOW_US, StoreCall::Decide(&[request]), &mut answers);
    answers.get(0).unwrap().0
}

#[test]
fn two_threads_take_a_group_together() {
    loom::model(|| {
        let store = store(1);
        assert!(take_group(&store, b"key"));
        let other = store.clone();
        let there = thread::spawn(move || take_group(&other, b"key"));
        let here = take_group(&store, b"key");
        assert!(here ^ there.join().unwrap(), "one of each was left");
    });
}

/// One thread decides a limit alone, perhaps without the lock. Another decides it in a group.
#[test]
fn a_limit_alone_beside_its_group() {
    loom::model(|| {
        let store = store(1);
        assert!(take_group(&store, b"key"));
        let other = store.clone();
        let there = thread::spawn(move || take_group(&other, b"key"));
        let here = take(&store, &params(2), &[b"key"]);
        assert!(here ^ there.join().unwrap(), "one unit of the shared limit was left");
        assert!(!take(&store, &params(2), &[b"key"]) && !take_group(&store, b"key"));
    });
}
