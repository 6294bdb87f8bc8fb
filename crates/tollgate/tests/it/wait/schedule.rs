//! Random schedules of waiters that arrive, wait, leave and time out: invariants for all of them.

use super::MS;
use crate::quota::RATES;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tollgate::quota::Algorithm;
use tollgate::{Decision, Limiter, Quota, TokioClock, WaitError};

const WAITERS_MAX: usize = 4;

#[derive(Clone, Debug)]
struct Visit {
    key: u8,
    cost: u64,
    arrives: Duration,
    within: Duration,
    /// The time after which the waiter leaves in any case.
    leaves: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
enum Fate {
    Admitted,
    Refused,
    LineFull,
    Left,
}

/// A visit, its outcome, and the time of the outcome.
type Record = (Visit, Fate, Duration);

fn visits() -> impl Strategy<Value = Vec<Visit>> {
    // Coarse instants, so that many events coincide.
    let ms = |n: u32| (0..n).prop_map(|n| MS * 10 * n);
    let visit = (0..2_u8, 0..4_u64, ms(60), ms(80), prop::option::weighted(0.3, ms(40)));
    let visit = visit.prop_map(|(key, cost, arrives, within, leaves)| Visit {
        key,
        cost,
        arrives,
        within,
        leaves,
    });
    prop::collection::vec(visit, 1..24)
}

fn quotas() -> impl Strategy<Value = Quota> {
    (1..6_u32, prop::sample::select(&RATES)).prop_map(|(count, algorithm)| {
        let quota = Quota::of(count).every(MS * 100).unwrap();
        quota.with_algorithm(algorithm).unwrap()
    })
}

/// Runs the visits in virtual time. Returns them in the order of their outcomes, and the units left
/// of both keys.
fn run(quota: Quota, visits: &[Visit]) -> (Vec<Record>, [u64; 2]) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let clock = TokioClock::starting_at(1_700_000_000_000_000);
        let builder = Limiter::builder(quota).clock(clock).max_waiters(WAITERS_MAX);
        let limiter = builder.build().unwrap();
        let start = Instant::now();
        let records = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for visit in visits.iter().cloned() {
            let (limiter, records) = (limiter.clone(), Arc::clone(&records));
            tasks.push(tokio::spawn(async move {
                sleep(visit.arrives).await;
                let leaves = visit.leaves.unwrap_or(MS * 100_000);
                let waiting = limiter.wait_n([visit.key], visit.cost, visit.within);
                let fate = match timeout_at(Instant::now() + leaves, waiting).await {
                    Ok(Ok(Decision::Admitted(_))) => Fate::Admitted,
                    Ok(Ok(Decision::Refused(_))) => Fate::Refused,
                    Ok(Err(WaitError::LineFull)) => Fate::LineFull,
                    Ok(Err(error)) => panic!("{error}"),
                    Err(_) => Fate::Left,
                };
                assert!(limiter.waiting() <= 2 * WAITERS_MAX);
                records.lock().unwrap().push((visit, fate, start.elapsed()));
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        sleep_until(start + MS * 10_000).await;
        let records = std::mem::take(&mut *records.lock().unwrap());
        assert_eq!(limiter.waiting(), 0, "somebody is still in line");
        (records, [0_u8, 1].map(|key| limiter.peek([key]).remaining))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_schedule_is_fair_and_bounded(quota in quotas(), visits in visits()) {
        let (records, _) = run(quota, &visits);
        for key in 0..2 {
            let of_key: Vec<&Record> = records.iter().filter(|record| record.0.key == key).collect();
            let admitted: Vec<&&Record> =
                of_key.iter().filter(|record| record.1 == Fate::Admitted).collect();
            // In the order of arrival. Waiters that arrive at one instant may be admitted in any
            // order.
            let came: Vec<Duration> = admitted.iter().map(|record| record.0.arrives).collect();
            prop_assert!(came.is_sorted(), "{:?}", admitted);
            // The admissions fit the quota.
            for (at, first) in admitted.iter().enumerate() {
                let mut units = 0;
                for record in &admitted[at..] {
                    units += record.0.cost;
                    let window = record.2 - first.2 + Duration::from_micros(1);
                    prop_assert!(units <= quota.bound(window).unwrap(), "{:?}", admitted);
                }
            }
            for (visit, fate, at) in of_key {
                let waited = *at - visit.arrives;
                prop_assert!(waited <= visit.within, "past its deadline: {:?} {:?}", visit, fate);
                let in_line = |other: &&Record| {
                    let (other, _, until) = other;
                    other.key == key && other.arrives <= visit.arrives && *until >= visit.arrives
                };
                let others = records.iter().filter(in_line).count() - 1;
                let full = *fate == Fate::LineFull;
                prop_assert!(!full || others >= WAITERS_MAX, "the line was not full");
            }
        }
    }

    /// Waiters that left or were refused were not charged: the units left follow from the
    /// admissions alone.
    #[test]
    fn only_the_admitted_take(visits in visits()) {
        let day = Quota::per_day(30).with_algorithm(Algorithm::SlidingLog).unwrap();
        let (records, left) = run(day, &visits);
        for key in 0..2 {
            let admitted = records.iter().filter(|(visit, fate, _)| {
                visit.key == key && *fate == Fate::Admitted
            });
            let taken: u64 = admitted.map(|(visit, ..)| visit.cost).sum();
            prop_assert_eq!(left[usize::from(key)], 30 - taken);
        }
    }
}

#[test]
fn a_schedule_can_fill_the_line() {
    let visit = Visit { key: 0, cost: 1, arrives: MS, within: MS * 1_000, leaves: None };
    let quota = Quota::per_second(1).with_burst(1).unwrap();
    let (records, _) = run(quota, &vec![visit; 9]);
    let full = records.iter().filter(|record| record.1 == Fate::LineFull).count();
    // The first is admitted at once, or is in the line when the others arrive.
    assert!((4..=5).contains(&full), "{records:?}");
}
