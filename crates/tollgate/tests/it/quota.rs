//! Quotas: valid and invalid settings, and the bound.

use proptest::prelude::*;
use std::time::Duration;
use tollgate::Quota;
use tollgate::quota::{Algorithm, InvalidQuota};

mod bound;

pub(crate) const RATES: [Algorithm; 6] = [
    Algorithm::SlidingWindow,
    Algorithm::FixedWindow,
    Algorithm::SlidingLog,
    Algorithm::TokenBucket,
    Algorithm::Gcra,
    Algorithm::LeakyBucket,
];

#[test]
fn a_quota_is_per_what_it_says() {
    let period = |quota: Quota| quota.period().unwrap().as_secs();
    assert_eq!(period(Quota::per_second(7)), 1);
    assert_eq!(period(Quota::per_minute(7)), 60);
    assert_eq!(period(Quota::per_hour(7)), 3_600);
    assert_eq!(period(Quota::per_day(7)), 86_400);
    assert_eq!(Quota::per_second(7).capacity(), 7);
    assert_eq!(Quota::concurrency(7).capacity(), 7);
    assert_eq!(Quota::concurrency(7).period(), None);
}

#[test]
fn it_reads_as_it_is_spoken() {
    let shown = |quota: Quota| quota.to_string();
    assert_eq!(shown(Quota::per_minute(100)), "100 per minute (sliding-window)");
    let odd = Quota::of(3).every(Duration::from_millis(1_500)).unwrap();
    assert_eq!(shown(odd), "3 per 1500ms (sliding-window)");
    let leaky = Quota::per_second(10).with_algorithm(Algorithm::LeakyBucket).unwrap();
    assert_eq!(shown(leaky), "10 per second, 1 at once (leaky-bucket)");
    assert_eq!(shown(Quota::concurrency(20)), "20 at once, each for at most 30s");
    let quota = Quota::per_second(20).with_burst(50).unwrap();
    assert_eq!(format!("{quota:?}"), "Quota(20 per second, up to 50 at once (gcra))");
}

#[test]
fn what_makes_no_sense_cannot_be_built() {
    let rate = Quota::per_second(5);
    let slots = Quota::concurrency(5);
    for algorithm in [Algorithm::SlidingWindow, Algorithm::FixedWindow, Algorithm::SlidingLog] {
        let window = rate.with_algorithm(algorithm).unwrap();
        assert_eq!(window.with_burst(9), Err(InvalidQuota::NoBurst(algorithm)));
        assert_eq!(window.with_queue(9), Err(InvalidQuota::NoQueue(algorithm)));
        let burst = rate.with_burst(9).unwrap();
        assert_eq!(burst.with_algorithm(algorithm), Err(InvalidQuota::NoBurst(algorithm)));
    }
    for algorithm in RATES {
        assert_eq!(slots.with_algorithm(algorithm), Err(InvalidQuota::NoRate(algorithm)));
        let ttl = Duration::from_secs(1);
        let paced = rate.with_algorithm(algorithm).unwrap();
        assert_eq!(paced.with_ttl(ttl), Err(InvalidQuota::NoTtl(algorithm)));
    }
    assert_eq!(rate.with_algorithm(Algorithm::Concurrency), Err(InvalidQuota::NoSlots));
    assert_eq!(slots.with_burst(1), Err(InvalidQuota::NoBurst(Algorithm::Concurrency)));
    assert_eq!(slots.with_queue(1), Err(InvalidQuota::NoQueue(Algorithm::Concurrency)));
    assert!(matches!(rate.with_burst(0), Err(InvalidQuota::OutOfRange(_))));
}

#[test]
fn a_period_is_never_rounded() {
    let every = |nanos| Quota::of(1).every(Duration::from_nanos(nanos));
    assert_eq!(every(1_000_500), Err(InvalidQuota::FractionOfMicrosecond));
    assert!(every(1_001_000).is_ok());
    assert!(matches!(every(999_000), Err(InvalidQuota::OutOfRange(_))));
    let forever = Quota::of(1).every(Duration::MAX - Duration::from_nanos(999_999_999));
    assert!(matches!(forever, Err(InvalidQuota::OutOfRange(_))));
}

#[test]
fn a_burst_keeps_the_algorithm_that_was_chosen() {
    let rate = Quota::per_second(5);
    assert_eq!(rate.with_burst(9).unwrap().algorithm(), Algorithm::Gcra);
    for algorithm in [Algorithm::TokenBucket, Algorithm::Gcra, Algorithm::LeakyBucket] {
        let one = rate.with_algorithm(algorithm).unwrap().with_burst(9).unwrap();
        let other = rate.with_burst(9).unwrap().with_algorithm(algorithm).unwrap();
        assert_eq!((one, one.algorithm(), one.capacity()), (other, algorithm, 9));
    }
}

#[test]
fn text_is_read_as_the_file_reads_it() {
    assert_eq!("5 / 10s".parse(), Quota::of(5).every(Duration::from_secs(10)));
    assert_eq!("0/s".parse(), Ok(Quota::per_second(0)));
    for bad in
        ["", "fast", "1.5/s", "5/minute", "5/", "-1/s", "unlimited", "99999999999/s", "1/9000d"]
    {
        let error = bad.parse::<Quota>().unwrap_err().to_string();
        assert!(!error.is_empty() && !error.ends_with('.'), "{bad}: {error}");
    }
    let error = "unlimited".parse::<Quota>().unwrap_err().to_string();
    assert_eq!(error, "`unlimited` is no quota; leave the limiter out instead");
}

proptest! {
    /// The period's text names its exact length.
    #[test]
    fn shown_periods_are_exact(count in 0..9_u32, period_us in 1_000..10_000_000_000_u64) {
        let quota = Quota::of(count).every(Duration::from_micros(period_us)).unwrap();
        let shown = quota.to_string();
        let period = shown.split(" per ").nth(1).unwrap().split(' ').next().unwrap();
        let digits = period.trim_end_matches(|c: char| !c.is_ascii_digit());
        let times: u64 = if digits.is_empty() { 1 } else { digits.parse().unwrap() };
        let unit_us = match &period[digits.len()..] {
            "minute" | "m" => 60_000_000,
            "second" | "s" => 1_000_000,
            "millisecond" | "ms" => 1_000,
            "hour" | "h" => 3_600_000_000,
            "µs" => 1,
            other => panic!("{other}"),
        };
        prop_assert_eq!(times * unit_us, period_us);
    }
}
