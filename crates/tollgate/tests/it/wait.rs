//! Waiting for capacity, in virtual time: no test really sleeps.

use crate::slow_store::Slow;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, advance, sleep};
use tollgate::quota::Algorithm;
use tollgate::{Limiter, ManualClock, Quota, Reservation, TokioClock, WaitError};

mod schedule;

const MS: Duration = Duration::from_millis(1);

/// One every 100 ms.
fn pace() -> Quota {
    Quota::per_second(10).with_burst(1).unwrap()
}

/// A clock that starts at a boundary of every period, and follows tokio's time.
fn limiter(quota: Quota) -> Limiter {
    Limiter::builder(quota).clock(TokioClock::starting_at(1_700_000_000_000_000)).build().unwrap()
}

/// Polls once: joins the line, or makes progress.
async fn poll<T>(future: &mut Pin<Box<impl Future<Output = T>>>) -> Poll<T> {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

#[tokio::test(start_paused = true)]
async fn first_come_first_served_at_the_quotas_pace() {
    let limiter = limiter(pace());
    let start = Instant::now();
    let order = Arc::new(Mutex::new(Vec::new()));
    let workers = (0..5).map(|worker| {
        let (limiter, order) = (limiter.clone(), Arc::clone(&order));
        tokio::spawn(async move {
            let decision = limiter.wait("a", MS * 1_000).await.unwrap();
            assert!(decision.is_admitted());
            order.lock().unwrap().push((worker, start.elapsed()));
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    let order = order.lock().unwrap();
    let expected: Vec<_> = (0..5).map(|worker| (worker, MS * 100 * worker)).collect();
    assert_eq!(*order, expected);
    assert_eq!(limiter.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn keys_wait_apart() {
    let limiter = limiter(pace());
    assert!(limiter.wait("a", MS).await.unwrap().is_admitted());
    let mut behind = Box::pin(limiter.wait("a", MS * 1_000));
    assert!(poll(&mut behind).await.is_pending());
    assert!(limiter.wait("b", MS).await.unwrap().is_admitted());
}

#[tokio::test(start_paused = true)]
async fn a_small_cost_does_not_overtake_a_large_one() {
    let limiter = limiter(Quota::per_second(10).with_burst(5).unwrap());
    assert!(limiter.check_n("a", 4).is_admitted());
    let mut large = Box::pin(limiter.wait_n("a", 5, MS * 1_000));
    assert!(poll(&mut large).await.is_pending());
    let mut small = Box::pin(limiter.wait("a", MS * 1_000));
    assert!(poll(&mut small).await.is_pending(), "there is one unit, but it is not its turn");
    assert!(large.await.unwrap().is_admitted());
    assert!(small.await.unwrap().is_admitted());
}

#[tokio::test(start_paused = true)]
async fn who_cannot_be_in_time_is_refused_at_once() {
    let limiter = limiter(pace());
    let start = Instant::now();
    assert!(limiter.check("a").is_admitted());
    let refusal = limiter.wait("a", MS * 99).await.unwrap().refusal().cloned().unwrap();
    assert_eq!(refusal.retry_after(), Some(MS * 100));
    let never = limiter.wait_n("a", 2, MS * 9_999).await.unwrap().refusal().cloned().unwrap();
    assert_eq!(never.retry_after(), None);
    let mut first = Box::pin(limiter.wait("a", MS * 100));
    assert!(poll(&mut first).await.is_pending());
    let behind = limiter.wait_n("a", 0, MS * 99).await.unwrap();
    assert_eq!(behind.refusal().unwrap().retry_after(), Some(MS * 100), "not before the first");
    let never = limiter.wait_n("a", 2, MS * 9_999).await.unwrap();
    assert_eq!(never.refusal().unwrap().retry_after(), None);
    limiter.block("b", MS * 500);
    let blocked = limiter.wait("b", MS * 499).await.unwrap();
    assert!(blocked.refusal().unwrap().blocked);
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(first.await.unwrap().is_admitted(), "just in time is in time");
    assert_eq!(start.elapsed(), MS * 100);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_holds_behind_others_too() {
    let limiter = limiter(pace());
    let start = Instant::now();
    assert!(limiter.check("a").is_admitted());
    let mut first = Box::pin(limiter.wait("a", MS * 1_000));
    assert!(poll(&mut first).await.is_pending());
    let mut second = Box::pin(limiter.wait("a", MS * 150));
    assert!(poll(&mut second).await.is_pending());
    assert!(first.await.unwrap().is_admitted());
    let refusal = second.await.unwrap().refusal().cloned().unwrap();
    assert_eq!(refusal.retry_after(), Some(MS * 100), "known as soon as it is first");
    assert_eq!(start.elapsed(), MS * 100);
    assert!(limiter.wait("a", Duration::ZERO).await.unwrap().refusal().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_full_line_is_an_error_that_says_so() {
    let builder = Limiter::builder(pace()).clock(TokioClock::default()).max_waiters(2);
    let limiter = builder.build().unwrap();
    assert!(limiter.check("a").is_admitted());
    let mut waiting = [(); 2].map(|()| Box::pin(limiter.wait("a", MS * 1_000)));
    for waiter in &mut waiting {
        assert!(poll(waiter).await.is_pending());
    }
    assert!(matches!(limiter.wait("a", MS).await, Err(WaitError::LineFull)));
    assert!(limiter.wait("b", MS).await.unwrap().is_admitted(), "another line has room");
    let [first, second] = waiting;
    drop(second);
    assert_eq!(limiter.waiting(), 1);
    let mut third = Box::pin(limiter.wait("a", MS * 1_000));
    assert!(poll(&mut third).await.is_pending(), "whoever leaves makes room");
    drop((first, third));
    assert_eq!(limiter.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn all_lines_together_are_bounded() {
    let quota = Quota::concurrency(1);
    let limiter =
        Limiter::builder(quota).clock(TokioClock::default()).max_waiters(1).build().unwrap();
    let mut waiting = Vec::new();
    for key in 0..64_u8 {
        assert!(limiter.check([key]).is_admitted());
        let mut waiter = Box::pin(limiter.wait([key], MS * 1_000));
        assert!(poll(&mut waiter).await.is_pending());
        waiting.push(waiter);
    }
    assert!(matches!(limiter.wait("another", MS).await, Err(WaitError::LineFull)));
    waiting.pop();
    assert!(limiter.wait("another", MS).await.unwrap().is_admitted());
}

#[tokio::test(start_paused = true)]
async fn whoever_leaves_takes_nothing_and_wakes_the_next() {
    let limiter = limiter(Quota::per_second(10).with_burst(5).unwrap());
    assert!(limiter.check_n("a", 5).is_admitted());
    let mut first = Box::pin(limiter.wait_n("a", 5, MS * 1_000));
    assert!(poll(&mut first).await.is_pending());
    let mut second = Box::pin(limiter.wait("a", MS * 1_000));
    assert!(poll(&mut second).await.is_pending());
    sleep(MS * 200).await;
    let start = Instant::now();
    drop(first);
    assert!(second.await.unwrap().is_admitted());
    assert_eq!(start.elapsed(), Duration::ZERO, "the next need not sit out the first one's wait");
    assert_eq!(limiter.peek("a").remaining, 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_next_does_not_inherit_a_wait() {
    let limiter = limiter(Quota::per_second(10).with_burst(5).unwrap());
    assert!(limiter.check_n("a", 5).is_admitted());
    let mut large = Box::pin(limiter.wait_n("a", 5, MS * 1_000));
    assert!(poll(&mut large).await.is_pending());
    let mut second = Box::pin(limiter.wait("a", MS * 1_000));
    assert!(poll(&mut second).await.is_pending());
    drop(large);
    // The second waiter is next but has not called the store yet, so its wait is unknown.
    let mut third = Box::pin(limiter.wait("a", MS * 250));
    assert!(poll(&mut third).await.is_pending());
    assert!(second.await.unwrap().is_admitted());
    assert!(third.await.unwrap().is_admitted());
}

#[tokio::test(start_paused = true)]
async fn a_freed_slot_goes_to_the_first_in_line_at_once() {
    let limiter = limiter(Quota::concurrency(1));
    let held = limiter.reserve("a", 1).admitted().unwrap();
    let start = Instant::now();
    let mut first = Box::pin(limiter.wait_reserve("a", 1, MS * 5_000));
    assert!(poll(&mut first).await.is_pending(), "its time to live is 30 s, but work may end");
    sleep(MS * 70).await;
    drop(held);
    let held = first.await.unwrap().admitted().unwrap();
    assert_eq!(start.elapsed(), MS * 70);
    let late = limiter.wait("a", MS * 50).await.unwrap();
    assert!(late.refusal().is_some());
    assert_eq!(start.elapsed(), MS * 120, "refused at the deadline, since nobody could know");
    drop(held);
    assert!(limiter.check("a").is_admitted());
}

#[tokio::test(start_paused = true)]
async fn whatever_gives_back_wakes_the_first() {
    let limiter = limiter(Quota::per_minute(4).with_burst(4).unwrap());
    let start = Instant::now();
    let wakes: [fn(&Limiter, Reservation); 5] = [
        |_, reservation| _ = reservation.cancel(),
        |_, reservation| _ = reservation.settle(3),
        |limiter, _| limiter.reset("a"),
        |limiter, reservation| {
            reservation.cancel();
            limiter.block("a", MS * 1_000);
            limiter.unblock("a");
        },
        |limiter, reservation| {
            drop(reservation);
            limiter.reset("a");
        },
    ];
    for wake in wakes {
        limiter.reset("a");
        let reservation = limiter.reserve("a", 4).admitted().unwrap();
        let mut waiter = Box::pin(limiter.wait("a", MS * 60_000));
        assert!(poll(&mut waiter).await.is_pending());
        wake(&limiter, reservation);
        assert!(waiter.await.unwrap().is_admitted());
    }
    limiter.block("a", MS * 1_000);
    let mut waiter = Box::pin(limiter.wait("a", MS * 60_000));
    assert!(poll(&mut waiter).await.is_pending());
    limiter.unblock("a");
    assert!(waiter.await.unwrap().is_admitted());
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_delay_of_a_queue_is_part_of_the_wait() {
    let quota = Quota::per_second(10).with_algorithm(Algorithm::LeakyBucket).unwrap();
    let limiter = limiter(quota.with_queue(3).unwrap());
    let start = Instant::now();
    assert!(limiter.check("a").is_admitted());
    let permit = limiter.wait("a", MS * 100).await.unwrap().admitted().unwrap();
    assert_eq!((start.elapsed(), permit.delay()), (MS * 100, Duration::ZERO));
    let before = limiter.peek("a");
    let refused = limiter.wait("a", MS * 99).await.unwrap();
    assert_eq!(refused.refusal().unwrap().retry_after(), Some(MS));
    assert_eq!(limiter.peek("a"), before, "what was too late was given back");
    let mut waiter = Box::pin(limiter.wait("a", MS * 1_000));
    assert!(poll(&mut waiter).await.is_pending());
    assert_ne!(limiter.peek("a"), before);
    drop(waiter);
    assert_eq!(limiter.peek("a"), before, "leaving during the delay gives back");
}

#[tokio::test(start_paused = true)]
async fn leaving_while_a_slow_store_decides_takes_nothing() {
    let store = Arc::new(Slow::default());
    let builder = Limiter::builder(pace()).store(Arc::clone(&store));
    let limiter = builder.clock(TokioClock::default()).build().unwrap();
    let mut waiter = Box::pin(limiter.wait("a", MS * 1_000));
    assert!(poll(&mut waiter).await.is_pending());
    assert!(!limiter.peek_async("a").await.unwrap().admits, "the store has taken it already");
    drop(waiter);
    store.settled().await;
    assert!(limiter.peek_async("a").await.unwrap().admits, "nobody gives it back");
    assert_eq!(limiter.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_slow_store_keeps_the_order_too() {
    let limiter: Limiter<Slow> = Limiter::builder(pace())
        .store(Arc::new(Slow::default()))
        .clock(TokioClock::default())
        .build()
        .unwrap();
    let mut first = Box::pin(limiter.wait("a", MS * 1_000));
    assert!(poll(&mut first).await.is_pending());
    let mut second = Box::pin(limiter.wait("a", MS * 1_000));
    let mut third = Box::pin(limiter.wait("a", MS * 1_000));
    assert!(poll(&mut second).await.is_pending());
    assert!(poll(&mut third).await.is_pending());
    // The third waiter is polled more often than the second, and is still admitted after it.
    for _ in 0..20 {
        assert!(poll(&mut third).await.is_pending());
    }
    assert!(first.await.unwrap().is_admitted());
    tokio::select! {
        biased;
        _ = &mut third => panic!("the third came before the second"),
        decision = &mut second => assert!(decision.unwrap().is_admitted()),
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_stands_still_does_not_make_a_wait_endless() {
    let limiter = Limiter::builder(pace()).clock(ManualClock::default()).build().unwrap();
    assert!(limiter.check("a").is_admitted());
    let start = Instant::now();
    assert!(!limiter.wait("a", MS * 250).await.unwrap().is_admitted());
    assert!(start.elapsed() <= MS * 250);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_aborted_leaves_no_trace() {
    let limiter = limiter(pace());
    assert!(limiter.check("a").is_admitted());
    let waiter = limiter.clone();
    let task = tokio::spawn(async move { waiter.wait("a", MS * 1_000).await.map(drop) });
    tokio::task::yield_now().await;
    assert_eq!(limiter.waiting(), 1);
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(limiter.waiting(), 0);
    advance(MS * 100).await;
    assert!(limiter.check("a").is_admitted());
}

#[test]
fn waiting_without_a_runtime_is_an_error() {
    let limiter = Limiter::new(Quota::per_hour(1));
    let waited = crate::now(limiter.wait("a", Duration::from_secs(1)));
    assert!(matches!(waited, Err(WaitError::NoRuntime)), "{waited:?}");
    assert!(limiter.peek("a").admits, "nothing was charged");
}

#[test]
fn waiting_without_timers_is_an_error() {
    let limiter = Limiter::new(pace());
    assert!(limiter.check("a").is_admitted());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let waited = runtime.block_on(limiter.wait("a", MS * 60_000));
    assert!(matches!(waited, Err(WaitError::NoRuntime)), "{waited:?}");
    assert_eq!(limiter.waiting(), 0);
}

#[test]
fn a_wait_that_outlives_its_runtime_is_an_error() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for quota in [pace(), pace().with_algorithm(Algorithm::LeakyBucket).unwrap()] {
        let limiter = Limiter::new(quota);
        assert!(limiter.check("a").is_admitted());
        let mut wait = Box::pin(limiter.wait("a", MS * 60_000));
        let first = runtime();
        let poll = poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx).is_ready()));
        assert!(!first.block_on(poll));
        drop(first);
        let waited = runtime().block_on(wait);
        assert!(matches!(waited, Err(WaitError::NoRuntime)), "{waited:?}");
        assert_eq!(limiter.waiting(), 0);
    }
}
