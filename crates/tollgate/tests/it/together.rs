//! Checks that a store decides in place under one lock: several quotas, and state beyond a word.

use proptest::prelude::*;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tollgate::quota::Algorithm;
use tollgate::{Decision, Limiter, ManualClock, MemoryStore, Quota};

const START_US: u64 = 1_700_000_000_000_000;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(START_US))
}

/// Several quotas in one limiter, and each in a limiter of its own.
struct Pair {
    clock: Arc<ManualClock>,
    together: Limiter,
    apart: Vec<Limiter>,
}

impl Pair {
    fn new(quotas: &[Quota]) -> Self {
        let clock = clock();
        let alone = |quota: &Quota| Limiter::builder(*quota).clock(clock.clone()).build().unwrap();
        let first = Limiter::builder(quotas[0]).clock(clock.clone());
        let together = quotas[1..].iter().fold(first, |builder, quota| builder.and(*quota));
        let together = together.build().unwrap();
        Self { apart: quotas.iter().map(alone).collect(), together, clock }
    }

    /// Checks both sides, and compares the figures of the tightest quota.
    fn check(&self, key: &str, cost: u64) {
        let before: Vec<_> = self.apart.iter().map(|one| one.peek_n(key, cost)).collect();
        let admits = before.iter().all(|one| one.admits);
        match self.together.check_n(key, cost) {
            Decision::Admitted(permit) => {
                assert!(admits, "{before:?}");
                let left = self.apart.iter().map(|one| {
                    let permit = one.check_n(key, cost).admitted().unwrap();
                    (permit.remaining, permit.limit, permit.reset_after())
                });
                let tightest = left.min_by_key(|one| one.0).unwrap();
                assert_eq!((permit.remaining, permit.limit, permit.reset_after()), tightest);
            }
            Decision::Refused(refusal) => {
                assert!(!admits, "{refusal:?}");
                let refusing = before.iter().filter(|one| !one.admits);
                let wait = refusing.map(|one| one.retry_after().unwrap_or(Duration::MAX)).max();
                assert_eq!(refusal.retry_after().unwrap_or(Duration::MAX), wait.unwrap());
            }
        }
    }
}

fn quotas() -> impl Strategy<Value = Vec<Quota>> {
    let algorithm = prop::sample::select(vec![
        Algorithm::SlidingWindow,
        Algorithm::FixedWindow,
        Algorithm::Gcra,
        Algorithm::TokenBucket,
        Algorithm::LeakyBucket,
    ]);
    let quota = (1..40_u32, 1..5_000_u64, algorithm).prop_map(|(count, millis, algorithm)| {
        let quota = Quota::of(count).every(Duration::from_millis(millis)).unwrap();
        quota.with_algorithm(algorithm).unwrap()
    });
    prop::collection::vec(quota, 2..7)
}

proptest! {
    /// The oracle checks every quota alone, and charges all of them only if all admit.
    #[test]
    fn several_quotas_decide_as_each_alone(
        quotas in quotas(),
        steps in prop::collection::vec((0..4_u64, 0..2_000_000_u64, 0..3_u8), 1..60),
    ) {
        let mut distinct: Vec<Quota> = Vec::new();
        quotas.into_iter().for_each(|quota| {
            if !distinct.contains(&quota) {
                distinct.push(quota);
            }
        });
        prop_assume!(distinct.len() > 1);
        let pair = Pair::new(&distinct);
        for (cost, pause_us, key) in steps {
            pair.clock.advance(pause_us / 7);
            pair.check(["a", "b", "c"][usize::from(key)], cost);
        }
    }
}

/// The admissions of four threads that check until each was refused a few times.
fn admissions(limiters: &[&Limiter; 4], cost: u64) -> u64 {
    thread::scope(|scope| {
        let run = |limiter: &'_ Limiter| {
            let mut admitted = 0;
            let mut refused = 0;
            while refused < 50 {
                if limiter.check_n("key", cost).is_admitted() {
                    admitted += 1
                } else {
                    refused += 1
                }
            }
            admitted
        };
        let threads = limiters.map(|limiter| scope.spawn(move || run(limiter)));
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

#[test]
fn threads_take_exactly_the_tightest_of_several_quotas() {
    let minute = Quota::per_minute(10_000).with_algorithm(Algorithm::FixedWindow).unwrap();
    let builder = Limiter::builder(Quota::per_hour(20_000).with_burst(20_000).unwrap());
    let limiter = builder.and(minute).and(Quota::per_hour(30_000)).clock(clock()).build().unwrap();
    assert_eq!(admissions(&[&limiter; 4], 1), 10_000);
    assert_eq!(limiter.store().stats().keys, 3);
    // A refusal charged no other quota, and no admission charged only some of them.
    assert_eq!(limiter.peek_n("key", 0).remaining, 0);
}

#[test]
fn threads_take_exactly_the_limit_beyond_a_word() {
    let quota = Quota::per_hour(20_000_000);
    let limiter = Limiter::builder(quota).clock(clock()).build().unwrap();
    assert_eq!(admissions(&[&limiter; 4], 1_000), 20_000);
    let bucket = Quota::per_hour(9_000).with_algorithm(Algorithm::TokenBucket).unwrap();
    let limiter = Limiter::builder(bucket).clock(clock()).build().unwrap();
    assert_eq!(admissions(&[&limiter; 4], 1), 9_000);
}

/// A single quota is decided without a lock; the same quota beside another is decided with it.
#[test]
fn a_quota_alone_and_in_a_group_share_one_count() {
    let (store, clock) = (Arc::new(MemoryStore::default()), clock());
    let quota = Quota::per_hour(5_000).with_burst(5_000).unwrap();
    let builder = || Limiter::builder(quota).store(store.clone()).name("n").clock(clock.clone());
    let (alone, group) =
        (builder().build().unwrap(), builder().and(Quota::per_hour(9_000)).build().unwrap());
    assert_eq!(admissions(&[&alone, &group, &alone, &group], 1), 5_000);
    let left = group.peek("key");
    assert_eq!((left.remaining, left.limit), (0, 5_000));
}
