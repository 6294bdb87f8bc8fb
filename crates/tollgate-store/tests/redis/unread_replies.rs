//! Callers that leave before they read their reply hold no slot. Their other charges stay.

use crate::replica::peek;
use crate::support::server::Server;
use crate::support::{a_day, long_deadline, take_mixed, until_healed};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tollgate_core::LimitParams;
use tollgate_core::algorithm::Concurrency;
use tollgate_store::RedisStore;

const SLOTS: u64 = 200;
const UNITS: u64 = 4_000;
const CALLERS: u64 = 100;

/// Slots that no test outlives.
fn slots() -> LimitParams {
    LimitParams::Concurrency(Concurrency::try_new(SLOTS, 3_600_000_000).unwrap())
}

/// Waits until this much of each key remains.
async fn until_remaining(store: &RedisStore, keys: &[&[u8]], params: &LimitParams, expected: u64) {
    let mut remaining = Vec::new();
    for _ in 0..2_000 {
        let rows = peek(store, keys, params, None).await.1;
        remaining = rows.iter().map(|row| row.remaining).collect();
        if remaining.iter().all(|one| *one == expected) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{remaining:?} remain, not {expected}");
}

/// The replies are here, and nobody reads them. Every caller takes a slot of each key.
pub(crate) async fn unread_slots_are_given_back(store: &RedisStore, keys: &[&[u8]]) {
    let (slots, units) = (slots(), a_day(UNITS));
    let charges: Vec<_> =
        keys.iter().map(|key| (*key, &slots)).chain([(&b"units"[..], &units)]).collect();
    let mut callers: Vec<_> = (0..CALLERS).map(|_| Box::pin(take_mixed(store, &charges))).collect();
    // On several threads, a reply may be here at once: then its caller has read it.
    callers.retain_mut(|caller| {
        match caller.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => true,
            Poll::Ready(admitted) => {
                assert!(admitted.unwrap());
                false
            }
        }
    });
    assert!(callers.len() >= CALLERS as usize / 2, "{} callers wait", callers.len());
    until_remaining(store, keys, &slots, SLOTS - CALLERS).await;
    let stayed = callers.split_off(callers.len() / 2);
    let left = callers.len() as u64;
    drop(callers);
    for caller in stayed {
        assert!(caller.await.unwrap());
    }
    // Callers that read their reply keep their slots.
    until_remaining(store, keys, &slots, SLOTS - CALLERS + left).await;
    until_remaining(store, &[b"units"], &units, UNITS - CALLERS).await;
}

#[tokio::test]
async fn callers_that_leave_with_a_reply_unread_hold_no_slot() {
    let server = Server::start().await;
    let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    until_healed(&store, b"key").await;
    unread_slots_are_given_back(&store, &[b"one", b"other"]).await;
}

/// The server decides only after the callers have left.
#[tokio::test]
async fn callers_that_leave_before_the_reply_hold_no_slot() {
    let server = Server::start().await;
    let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    until_healed(&store, b"key").await;
    let (slots, units) = (slots(), a_day(UNITS));
    let charges = [(&b"slots"[..], &slots), (b"units", &units)];
    server.signal("STOP");
    let mut callers: Vec<_> = (0..20).map(|_| Box::pin(take_mixed(&store, &charges))).collect();
    for caller in &mut callers {
        assert!(caller.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    // All requests go out in one call: no other task ran meanwhile.
    while store.status().waiting > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(callers);
    server.signal("CONT");
    until_remaining(&store, &[b"units"], &units, UNITS - 20).await;
    until_remaining(&store, &[b"slots"], &slots, SLOTS).await;
}
