//! The methods of the limiter, in memory.

mod async_api;
use crate::quota::RATES;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tollgate::limiter::InvalidLimiter;
use tollgate::quota::Algorithm;
use tollgate::{Decision, Limiter, ManualClock, MemoryStore, Permit, Quota, Reservation};

const SECOND: Duration = Duration::from_secs(1);

/// A limiter with its clock.
fn limiter(quota: Quota) -> (Limiter, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(1_700_000_000_000_000));
    (Limiter::builder(quota).clock(clock.clone()).build().unwrap(), clock)
}

fn gcra(count: u32) -> Quota {
    Quota::per_second(count).with_burst(count).unwrap()
}

fn permit(decision: Decision) -> Permit {
    decision.admitted().unwrap()
}

#[test]
fn a_handle_can_go_anywhere() {
    fn anywhere<T: Clone + Send + Sync + 'static>() {}
    fn sent<T: Send + Sync + 'static>() {}
    anywhere::<Limiter>();
    anywhere::<Quota>();
    sent::<Permit>();
    sent::<Reservation>();
    let (limiter, _) = limiter(gcra(1));
    assert!(limiter.clone().check("a").is_admitted());
    assert!(!limiter.check("a").is_admitted(), "a clone shares the counts");
    assert_eq!(format!("{limiter:?}"), "Limiter([Quota(1 per second, up to 1 at once (gcra))])");
}

#[test]
fn a_refusal_is_honest_to_the_microsecond() {
    let (limiter, clock) = limiter(gcra(3));
    for left in [2, 1, 0] {
        let permit = permit(limiter.check("a"));
        assert_eq!((permit.limit, permit.remaining), (3, left));
    }
    let decision = limiter.check("a");
    let refusal = decision.refusal().unwrap();
    assert_eq!((refusal.limit, refusal.remaining, refusal.blocked), (3, 0, false));
    assert_eq!(refusal.reset_after(), SECOND);
    let wait = refusal.retry_after().unwrap();
    assert_eq!(refusal.to_string(), "0 of 3 left; retry after 333.334ms");
    clock.elapse(wait - Duration::from_micros(1));
    assert!(!limiter.check("a").is_admitted());
    clock.elapse(Duration::from_micros(1));
    assert!(limiter.check("a").is_admitted());
}

#[test]
fn more_than_there_ever_is_says_so() {
    let (limiter, _) = limiter(gcra(3));
    let decision = limiter.check_n("a", 4);
    let refusal = decision.refusal().unwrap();
    assert_eq!((refusal.retry_after(), refusal.remaining), (None, 3));
    assert_eq!(refusal.to_string(), "3 of 3 left; no wait can help");
    assert!(limiter.check_n("a", 3).is_admitted());
    assert!(limiter.check_n("a", 0).is_admitted(), "nothing costs nothing");
}

#[test]
fn zero_refuses_everything() {
    for quota in [Quota::per_second(0), Quota::concurrency(0), "0/day".parse().unwrap()] {
        let (limiter, _) = limiter(quota);
        assert_eq!(limiter.check("a").refusal().unwrap().retry_after(), None);
    }
}

#[test]
fn keys_are_bytes() {
    let (limiter, _) = limiter(gcra(1));
    assert!(limiter.check("a").is_admitted());
    assert!(!limiter.check(String::from("a")).is_admitted());
    assert!(!limiter.check([b'a']).is_admitted());
    assert!(limiter.check(7_u64.to_be_bytes()).is_admitted());
    assert!(limiter.check("").is_admitted());
}

#[test]
fn peeking_takes_nothing() {
    let (limiter, _) = limiter(gcra(3));
    for _ in 0..9 {
        let standing = limiter.peek_n("a", 3);
        assert_eq!((standing.admits, standing.remaining), (true, 3));
    }
    let beyond = limiter.peek_n("a", 4);
    assert_eq!((beyond.admits, beyond.retry_after()), (false, None));
}

#[test]
fn several_quotas_take_all_or_nothing() {
    let clock = Arc::new(ManualClock::new(1_700_000_000_000_000));
    let hourly = Quota::per_hour(3).with_algorithm(Algorithm::SlidingLog).unwrap();
    let limiter = Limiter::builder(gcra(2)).and(hourly).clock(clock.clone()).build().unwrap();
    assert_eq!(permit(limiter.check_n("a", 2)).remaining, 0);
    let refusal = limiter.check_n("a", 2).refusal().cloned().unwrap();
    assert_eq!(refusal.limit, 3, "the quota that takes longest speaks");
    clock.elapse(SECOND);
    // Two requests fit the second, and one fits the hour. If refusals were charged, neither quota
    // would have units left.
    assert!(!limiter.check_n("a", 2).is_admitted());
    let last = limiter.reserve("a", 1).admitted().unwrap();
    assert_eq!((last.permit().limit, last.permit().remaining), (3, 0), "the tightest speaks");
    assert_eq!(limiter.quotas().count(), 2);
    last.cancel();
    assert!(limiter.check("a").is_admitted(), "given back on both");
}

#[test]
fn a_refund_returns_what_time_has_not() {
    let (limiter, clock) = limiter(gcra(4));
    let early = limiter.reserve("a", 2).admitted().unwrap();
    let late = limiter.reserve("a", 2).admitted().unwrap();
    clock.elapse(SECOND / 4);
    assert_eq!(early.cancel().remaining, 2, "time had returned one of the two");
    clock.elapse(SECOND);
    assert_eq!(late.cancel().remaining, 4);
    assert!(!limiter.check_n("a", 5).is_admitted());
}

#[test]
fn a_reservation_ends_in_its_true_cost() {
    let (limiter, _) = limiter(Quota::per_minute(100));
    let reserve = |units| limiter.reserve("a", units).admitted().unwrap();
    let reservation = reserve(60);
    assert_eq!(reservation.permit().remaining, 40);
    assert_eq!(reservation.settle(10).remaining, 90);
    assert_eq!(reserve(50).cancel().remaining, 90);
    drop(reserve(50));
    assert_eq!(limiter.peek("a").remaining, 40, "dropping keeps the estimate");
    let debt = reserve(40).settle(140);
    assert_eq!((debt.remaining, debt.admits), (0, false));
    assert!(debt.retry_after() > Some(Duration::from_secs(60)), "a debt takes longer to clear");
    assert!(!limiter.reserve("a", 1).is_admitted());
    assert_eq!(limiter.reserve("b", 0).admitted().unwrap().settle(30).remaining, 70);
}

#[test]
fn slots_are_free_when_a_reservation_ends() {
    let (limiter, clock) = limiter(Quota::concurrency(2));
    let reserve = || limiter.reserve("a", 1).admitted();
    let ends: [fn(Reservation); 3] = [drop, |r| _ = r.settle(1), |r| _ = r.cancel()];
    for end in ends {
        let (one, two) = (reserve().unwrap(), reserve().unwrap());
        assert!(reserve().is_none());
        end(one);
        let again = reserve().unwrap();
        assert!(reserve().is_none(), "one slot was freed, not two");
        end(two);
        end(again);
        assert_eq!(limiter.peek("a").remaining, 2);
    }
    let forgotten = reserve().unwrap();
    clock.elapse(Duration::from_secs(30));
    let held = (reserve().unwrap(), reserve().unwrap());
    drop(forgotten);
    assert!(reserve().is_none(), "what its time to live has freed is not freed again");
    drop(held);
}

#[test]
fn a_drop_frees_slots_and_keeps_the_rest() {
    let builder = Limiter::builder(Quota::concurrency(10)).and(gcra(8));
    let limiter = builder.clock(ManualClock::default()).build().unwrap();
    drop(limiter.reserve("a", 6));
    assert_eq!((limiter.peek("a").limit, limiter.peek("a").remaining), (8, 2));
    limiter.reserve("a", 2).admitted().unwrap().settle(0);
    let standing = limiter.peek("a");
    assert_eq!((standing.limit, standing.remaining), (8, 2), "all ten slots are free");
}

#[test]
fn reset_starts_anew() {
    let (limiter, _) = limiter(gcra(2));
    assert!(limiter.check_n("a", 2).is_admitted());
    assert!(limiter.check_n("b", 2).is_admitted());
    limiter.block("a", SECOND);
    limiter.reset("a");
    assert_eq!((limiter.peek("a").remaining, limiter.peek("b").remaining), (2, 0));
}

#[test]
fn a_block_refuses_until_its_end() {
    let (limiter, clock) = limiter(gcra(2));
    let standing = limiter.block("a", SECOND * 10);
    assert_eq!((standing.blocked, standing.admits), (true, false));
    limiter.block("a", SECOND);
    assert!(limiter.check("b").is_admitted(), "others are not concerned");
    clock.elapse(SECOND * 9);
    let refusal = limiter.check_n("a", 0).refusal().cloned().unwrap();
    assert_eq!((refusal.blocked, refusal.retry_after()), (true, Some(SECOND)));
    assert_eq!(refusal.to_string(), "0 of 2 left; blocked for 1s");
    clock.elapse(SECOND);
    assert!(limiter.check("a").is_admitted());
    limiter.block("a", Duration::MAX);
    assert!(limiter.peek("a").blocked);
    let standing = limiter.unblock("a");
    assert_eq!((standing.blocked, standing.remaining), (false, 1), "counts stay");
}

#[test]
fn limiters_share_counts_by_name() {
    let store = Arc::new(MemoryStore::default());
    let named = |name: &str| {
        let builder = Limiter::builder(gcra(1)).store(Arc::clone(&store)).name(name);
        builder.clock(ManualClock::default()).build().unwrap()
    };
    assert!(named("exports").check("a").is_admitted());
    assert!(!named("exports").check("a").is_admitted());
    assert!(named("imports").check("a").is_admitted());
    assert_eq!(named("x").store().stats().keys, 2);
}

#[test]
fn a_limiter_that_makes_no_sense_is_not_built() {
    let twice = Limiter::builder(gcra(1)).and(gcra(2)).and(gcra(1)).build();
    assert_eq!(twice.unwrap_err(), InvalidLimiter::Twice(Box::new(gcra(1))));
    let many = (2..=17).fold(Limiter::builder(gcra(1)), |builder, n| builder.and(gcra(n)));
    assert_eq!(many.build().unwrap_err(), InvalidLimiter::TooManyQuotas);
    let nobody = Limiter::builder(gcra(1)).max_waiters(0).build();
    assert_eq!(nobody.unwrap_err(), InvalidLimiter::NoWaiters);
}

#[test]
fn many_threads_admit_no_more_than_one() {
    let (limiter, _) = limiter(gcra(1_000));
    let count = |limiter: Limiter| (0..500).filter(|_| limiter.check("a").is_admitted()).count();
    let threads = [(); 4].map(|()| {
        let limiter = limiter.clone();
        std::thread::spawn(move || count(limiter))
    });
    let admitted: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(admitted, 1_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// For any charges, refunds and settlements: net of refunds, no window exceeds the bound.
    #[test]
    fn what_is_given_back_never_admits_too_much(
        algorithm in prop::sample::select(&RATES),
        steps in prop::collection::vec((0..400_u64, 1..4_u64, 0..4_u64, any::<prop::sample::Index>()), 1..60),
    ) {
        let quota = Quota::of(5).every(Duration::from_millis(1)).unwrap();
        let quota = quota.with_algorithm(algorithm).unwrap();
        let (limiter, clock) = limiter(quota);
        // Instants, units still charged, and the reservation until it ends.
        let mut taken: Vec<(u64, u64, Option<Reservation>)> = Vec::new();
        let mut now_us = 0;
        for (pause_us, cost, actual, pick) in steps {
            clock.advance(pause_us);
            now_us += pause_us;
            let open: Vec<usize> = (0..taken.len()).filter(|at| taken[*at].2.is_some()).collect();
            if actual < cost && !open.is_empty() {
                let (_, units, reservation) = &mut taken[*pick.get(&open)];
                let actual = actual.min(*units);
                reservation.take().unwrap().settle(actual);
                *units = actual;
            } else if let Decision::Admitted(reservation) = limiter.reserve("a", cost) {
                taken.push((now_us, cost, Some(reservation)));
            }
            for (at, &(from_us, ..)) in taken.iter().enumerate() {
                let units: u64 = taken[at..].iter().map(|(_, units, _)| units).sum();
                let bound = quota.bound(Duration::from_micros(now_us - from_us + 1)).unwrap();
                prop_assert!(units <= bound, "{units} since {from_us} at {now_us}, bound {bound}");
            }
        }
    }
}

#[test]
fn a_reservation_from_before_a_reset_gives_nothing_back() {
    let (limiter, _) = limiter(gcra(10));
    let reservation = limiter.reserve("a", 6).admitted().unwrap();
    limiter.reset("a");
    assert!(limiter.check_n("a", 7).is_admitted());
    assert_eq!(reservation.cancel().remaining, 3);
}

/// One thread resets a key and counts its admissions, while others reserve and cancel.
#[test]
fn a_reset_beside_a_cancel_gives_nothing_twice() {
    let (limiter, _) = limiter(gcra(3));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    limiter.reserve("a", 1).admitted().map(Reservation::cancel);
                }
            });
        }
        let admitted = || (0..5).filter(|_| limiter.check("a").is_admitted()).count();
        let most = (0..30_000).map(|_| {
            limiter.reset("a");
            admitted()
        });
        let most = most.max();
        done.store(true, Ordering::Relaxed);
        assert!(most <= Some(3), "{most:?} of 3");
    });
}
