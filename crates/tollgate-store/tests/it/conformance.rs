//! The memory store passes the suite, whole and with all keys in one shard.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};
use tollgate_core::Intent;
use tollgate_store::conformance::{self, ChargeSpec, Model, StoreDriver};
use tollgate_store::{MemoryStore, memory::MemoryOptions};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("the memory store never waits"),
    }
}

#[test]
fn the_memory_store_conforms() {
    block_on(conformance::run(async || MemoryStore::default()));
}

#[test]
fn one_shard_conforms() {
    block_on(conformance::run(async || MemoryStore::new(MemoryOptions::default().shards(1))));
}

#[test]
fn traces_equal_the_model() {
    for seed in 100..140 {
        block_on(conformance::traces(&MemoryStore::default(), seed, 3_000));
    }
}

/// A key moves to another slot when its tier changes. The array that this fills up is replaced in
/// the middle of a request, and the request's other charges must find their keys again.
#[test]
fn keys_are_found_again_after_an_array_was_replaced() {
    let store = MemoryStore::new(MemoryOptions::default().shards(1).seed(5));
    let (driver, mut model) = (StoreDriver::new(&store), Model::default());
    let keys: Vec<_> = (0..12).map(|n| format!("user {n}")).collect();
    for step in 0..600_u64 {
        let tier = |limit: u64| 1_000 + (step * 7 + limit * 3) % 11;
        let gcra = |limit| conformance::algorithms(tier(limit)).nth(4).unwrap();
        let key = &keys[(step * 5 % 12) as usize];
        let lines = [1, 2, 3].map(|limit| ChargeSpec::new(limit, key, gcra(limit)));
        let (admitted, rows) = block_on(driver.take(&lines));
        let expected = model.decide(driver.now_us, &lines, Intent::Take);
        assert_eq!(format!("{:?}", (admitted, rows)), format!("{expected:?}"), "step {step}");
    }
}
