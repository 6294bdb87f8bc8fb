//! Bad input has a documented result, and never a panic. `guide.md` lists the results; the tests of
//! `redis` and `wait` cover runtimes.

use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use tollgate::quota::Algorithm;
use tollgate::store::Clock;
use tollgate::{Limiter, ManualClock, Quota};

/// A quota of each algorithm.
fn quotas(units: u32) -> Vec<Quota> {
    let rate = Quota::per_second(units);
    let mut quotas: Vec<_> = crate::quota::RATES
        .into_iter()
        .filter_map(|algorithm| rate.with_algorithm(algorithm).ok())
        .collect();
    quotas.push(Quota::concurrency(units));
    quotas
}

#[test]
fn a_quota_of_zero_refuses_every_cost_but_zero() {
    let quotas = quotas(0);
    assert!(quotas.iter().any(|quota| quota.algorithm() == Algorithm::SlidingWindow));
    for quota in quotas {
        let limiter = Limiter::new(quota);
        assert_eq!(limiter.check("a").refusal().unwrap().retry_after(), None, "{quota}");
        assert!(limiter.check_n("a", 0).is_admitted(), "{quota}");
        assert!(!limiter.peek("a").admits, "{quota}");
        assert!(!limiter.reserve("a", 1).is_admitted(), "{quota}");
    }
}

#[test]
fn a_cost_above_the_capacity_is_refused_for_ever() {
    for quota in quotas(5) {
        let limiter = Limiter::new(quota);
        for cost in [quota.capacity() + 1, u64::from(u32::MAX) + 1, u64::MAX] {
            let refusal = limiter.check_n("a", cost).refusal().cloned().unwrap();
            assert_eq!(refusal.retry_after(), None, "{quota}, {cost}");
            assert_eq!(refusal.to_string().split("; ").nth(1), Some("no wait can help"));
        }
        assert_eq!(limiter.peek("a").remaining, quota.capacity(), "nothing was charged: {quota}");
    }
}

#[test]
fn a_real_cost_beyond_every_number_is_a_debt() {
    for quota in quotas(5) {
        let limiter = Limiter::new(quota);
        let reservation = limiter.reserve("a", 1).admitted().unwrap();
        reservation.settle(u64::MAX);
        // Slots are given back, whatever their cost.
        let is_free = quota.algorithm() == Algorithm::Concurrency;
        assert_eq!(limiter.check("a").is_admitted(), is_free, "{quota}");
    }
}

#[test]
fn a_key_of_a_megabyte_is_a_key() {
    let limiter = Limiter::new(Quota::per_day(1));
    let long = "k".repeat(1 << 20);
    let held = limiter.reserve(&long, 1).admitted().unwrap();
    assert!(!limiter.check(&long).is_admitted());
    assert!(limiter.check(&long[1..]).is_admitted(), "another key");
    assert!(limiter.check((&long, 1)).is_admitted());
    assert!(!limiter.check((&long, 1)).is_admitted());
    assert!(limiter.check((&long, 2)).is_admitted());
    assert!(held.cancel().admits);
    limiter.block(&long, Duration::MAX);
    assert!(limiter.peek(&long).blocked);
    limiter.reset(&long);
    assert!(limiter.check(&long).is_admitted());
}

#[test]
fn a_panic_of_another_thread_poisons_nothing() {
    let limiter = Limiter::new(Quota::per_day(2));
    let other = limiter.clone();
    let panicked = std::thread::spawn(move || {
        let _reservation = other.reserve("a", 1);
        panic!("with a reservation in hand");
    });
    assert!(panicked.join().is_err());
    assert!(limiter.check("a").is_admitted());
    assert!(!limiter.check("a").is_admitted(), "its estimate counts");
}

/// A clock that the test sets, also backwards.
#[derive(Debug, Default)]
struct Jumping(std::sync::atomic::AtomicU64);

impl Clock for Jumping {
    fn now_us(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// A clock that calls another limiter.
struct Asking(Limiter);

impl Clock for Asking {
    fn now_us(&self) -> u64 {
        u64::from(self.0.check("clock").is_admitted())
    }
}

#[test]
fn a_clock_may_use_a_limiter() {
    for quota in quotas(3) {
        let clock = Arc::new(Asking(Limiter::new(quota)));
        let limiter = Limiter::builder(quota).clock(clock).build().unwrap();
        assert!(limiter.check("a").is_admitted());
        for _ in 0..5 {
            let _ = limiter.check("a");
            let _ = limiter.reserve("a", 1);
        }
    }
}

proptest! {
    /// Every reading of the clock gives an answer.
    #[test]
    fn a_clock_that_jumps_never_panics(
        times in prop::collection::vec(prop_oneof![0..10_u64, 0..5_000_000_u64, Just(u64::MAX)], 1..20),
        at in 0..7_usize,
    ) {
        let clock = Arc::new(Jumping::default());
        let quota = quotas(3)[at];
        let limiter = Limiter::builder(quota).clock(Arc::clone(&clock)).build().unwrap();
        let set = |now_us| clock.0.store(now_us, std::sync::atomic::Ordering::Relaxed);
        for now_us in times {
            set(now_us);
            let _ = limiter.check("a");
            let _ = limiter.reserve("a", 2).admitted().map(|held| held.settle(1));
        }
    }
}

#[test]
fn a_step_back_gives_nothing_twice() {
    for quota in quotas(3) {
        let start_us = 1_700_000_000_500_000;
        let clock = Arc::new(Jumping(start_us.into()));
        let limiter = Limiter::builder(quota).clock(Arc::clone(&clock)).build().unwrap();
        let capacity = quota.capacity();
        assert!(limiter.check_n("a", capacity).is_admitted(), "{quota}");
        let set = |now_us| clock.0.store(now_us, std::sync::atomic::Ordering::Relaxed);
        set(start_us - 400_000);
        assert!(!limiter.check("a").is_admitted(), "{quota}");
        set(start_us);
        assert!(!limiter.check_n("a", capacity).is_admitted(), "{quota}");
        set(start_us + 40_000_000);
        assert!(limiter.check_n("a", capacity).is_admitted(), "{quota}");
    }
}

#[test]
fn a_clock_far_ahead_shuts_windows_out_for_three_periods_at_most() {
    const WINDOWS: [Algorithm; 3] =
        [Algorithm::SlidingWindow, Algorithm::FixedWindow, Algorithm::SlidingLog];
    for quota in quotas(3) {
        let (ahead_us, start_us) = (9_000_000_000_000_000, 1_700_000_000_000_000);
        let clock = Arc::new(Jumping(ahead_us.into()));
        let limiter = Limiter::builder(quota).clock(Arc::clone(&clock)).build().unwrap();
        assert!(limiter.check_n("a", quota.capacity()).is_admitted(), "{quota}");
        let set = |now_us| clock.0.store(now_us, std::sync::atomic::Ordering::Relaxed);
        set(start_us);
        let wait = limiter.check("a").refusal().and_then(|refusal| refusal.retry_after()).unwrap();
        if WINDOWS.contains(&quota.algorithm()) {
            assert!(wait <= Duration::from_secs(3), "{quota}: {wait:?}");
        }
        // The wait is exact, however long it is.
        set(start_us + wait.as_micros() as u64);
        assert!(limiter.check("a").is_admitted(), "{quota}: {wait:?}");
    }
}

#[test]
fn a_manual_clock_can_stand_at_either_end() {
    for now_us in [0, u64::MAX] {
        let clock = Arc::new(ManualClock::new(now_us));
        let limiter = Limiter::builder(Quota::per_day(1)).clock(clock).build().unwrap();
        assert!(limiter.check("a").is_admitted());
        assert!(!limiter.check("a").is_admitted());
    }
}
