//! The memory store passes the suite, whole and with all keys in one shard.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};
use tollgate_store::{MemoryStore, conformance, memory::MemoryOptions};

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
