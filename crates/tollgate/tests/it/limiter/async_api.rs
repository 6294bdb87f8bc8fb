//! The async methods, on a slow store that can fail.

use super::{SECOND, gcra};
use crate::faulty_store::Faulty;
use crate::now;
use crate::slow_store::Slow;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use tollgate::store::Store;
use tollgate::{Limiter, ManualClock, Quota};

fn on<S: Store>(store: Arc<S>, quota: Quota) -> Limiter<S> {
    Limiter::builder(quota).store(store).clock(ManualClock::default()).build().unwrap()
}

#[test]
fn they_answer_as_those_in_memory_do() {
    let limiter = on(Arc::new(Faulty::default()), gcra(3));
    let permit = now(limiter.check_n_async("a", 2)).unwrap().admitted().unwrap();
    assert_eq!(permit.remaining, 1);
    assert_eq!(now(limiter.peek_async("a")).unwrap().remaining, 1);
    assert!(!now(limiter.check_n_async("a", 2)).unwrap().is_admitted());
    now(limiter.reset_async("a")).unwrap();
    let reservation = now(limiter.reserve_async("a", 2)).unwrap().admitted().unwrap();
    assert_eq!(now(reservation.settle_async(1)).unwrap().remaining, 2);
    let reservation = now(limiter.reserve_async("a", 2)).unwrap().admitted().unwrap();
    assert_eq!(now(reservation.cancel_async()).unwrap().remaining, 2);
    assert!(now(limiter.block_async("a", SECOND)).unwrap().blocked);
    assert!(!now(limiter.unblock_async("a")).unwrap().blocked);
    now(limiter.reset_async("a")).unwrap();
    assert_eq!(now(limiter.peek_async("a")).unwrap().remaining, 3);
}

#[test]
fn a_store_that_cannot_decide_is_neither_answer() {
    let store = Arc::new(Faulty::default());
    let limiter = on(Arc::clone(&store), gcra(3));
    let canceled = now(limiter.reserve_async("a", 1)).unwrap().admitted().unwrap();
    let reservation = now(limiter.reserve_async("a", 1)).unwrap().admitted().unwrap();
    store.set_down(true);
    assert!(now(limiter.check_async("a")).unwrap_err().is_transient());
    assert!(now(limiter.peek_async("a")).is_err());
    assert!(now(limiter.reserve_async("a", 1)).is_err());
    assert!(now(canceled.cancel_async()).is_err());
    assert!(now(reservation.settle_async(0)).is_err());
    assert!(now(limiter.block_async("a", SECOND)).is_err());
    assert!(now(limiter.unblock_async("a")).is_err());
    assert!(now(limiter.reset_async("a")).is_err());
    store.set_down(false);
    assert_eq!(now(limiter.peek_async("a")).unwrap().remaining, 1, "both charges stand");
}

#[tokio::test]
async fn dropping_a_reservation_frees_its_slot_in_a_slow_store_too() {
    let limiter = on(Arc::new(Slow::default()), Quota::concurrency(1));
    let reservation = limiter.reserve_async("a", 1).await.unwrap().admitted().unwrap();
    drop(reservation);
    limiter.store().settled().await;
    assert!(limiter.check_async("a").await.unwrap().is_admitted());
}

#[tokio::test]
async fn a_settlement_that_nobody_waits_for_is_made_once() {
    let limiter = on(Arc::new(Slow::default()), Quota::concurrency(2));
    // Slots taken at one instant end at one instant, so freeing one twice would free the other.
    let reservation = limiter.reserve_async("a", 1).await.unwrap().admitted().unwrap();
    let other = limiter.reserve_async("a", 1).await.unwrap().admitted().unwrap();
    let mut ending = Box::pin(reservation.settle_async(1));
    let polled = poll_fn(|cx| Poll::Ready(ending.as_mut().poll(cx))).await;
    assert!(polled.is_pending(), "the store takes its time");
    drop(ending);
    limiter.store().settled().await;
    assert_eq!(limiter.peek_async("a").await.unwrap().remaining, 1);
    drop(other);
}
