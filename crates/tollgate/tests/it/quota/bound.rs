//! The bound against two adversaries: an exhaustive one at a few instants, and a greedy one at all
//! instants.

use super::RATES;
use proptest::prelude::*;
use std::time::Duration;
use tollgate::Quota;
use tollgate::quota::Algorithm;
use tollgate_core::{Algorithm as _, Intent, LimitParams, LimitState, Rate, algorithm as core};

/// A quota and its parameters. They are built separately, so that the bound is tested against the
/// decisions of the core.
#[derive(Clone, Copy, Debug)]
struct Case {
    quota: Quota,
    params: LimitParams,
    count: u64,
    period_us: u64,
}

fn case(
    algorithm: Algorithm,
    count: u64,
    period_us: u64,
    burst: Option<u64>,
    queue: Option<u64>,
) -> Case {
    let rate = Rate::try_new(count, period_us).unwrap();
    let params = match algorithm {
        Algorithm::SlidingWindow => LimitParams::SlidingWindow(core::SlidingWindow::new(rate)),
        Algorithm::FixedWindow => LimitParams::FixedWindow(core::FixedWindow::new(rate)),
        Algorithm::SlidingLog => LimitParams::SlidingLog(core::SlidingLog::new(rate)),
        Algorithm::TokenBucket => {
            LimitParams::TokenBucket(core::TokenBucket::try_new(rate, burst).unwrap())
        }
        Algorithm::Gcra => LimitParams::Gcra(core::Gcra::try_new(rate, burst).unwrap()),
        Algorithm::LeakyBucket => {
            LimitParams::LeakyBucket(core::LeakyBucket::try_new(rate, burst, queue).unwrap())
        }
        other => panic!("{other} has no bound"),
    };
    let mut quota = Quota::of(count as u32).every(Duration::from_micros(period_us)).unwrap();
    quota = quota.with_algorithm(algorithm).unwrap();
    let buckets = [Algorithm::TokenBucket, Algorithm::Gcra, Algorithm::LeakyBucket];
    if let Some(burst) = burst.filter(|_| buckets.contains(&algorithm)) {
        quota = quota.with_burst(burst as u32).unwrap();
    }
    if let Some(queue) = queue.filter(|_| algorithm == Algorithm::LeakyBucket) {
        quota = quota.with_queue(queue as u32).unwrap();
    }
    Case { quota, params, count, period_us }
}

fn cases(counts: std::ops::Range<u64>) -> impl Strategy<Value = Case> {
    let periods = prop_oneof![Just(1_000), 1_000..1_100_u64, Just(7_919), Just(1_000_000)];
    let burst = prop::option::of(counts.clone());
    let queue = prop::option::of(0..3_u64);
    (prop::sample::select(&RATES), counts, periods, burst, queue).prop_map(
        |(algorithm, count, period_us, burst, queue)| {
            case(algorithm, count, period_us, burst.filter(|burst| *burst > 0), queue)
        },
    )
}

impl Case {
    fn bound(&self, instants: u64) -> u64 {
        self.quota.bound(Duration::from_micros(instants)).unwrap()
    }

    fn remaining(&self, state: &LimitState, now_us: u64) -> u64 {
        self.params.decide(state, now_us, 0, Intent::Peek).remaining
    }

    /// Takes all units at `from_us`, and again whenever units are back, until before `from_us +
    /// instants`.
    fn greedy(&self, from_us: u64, instants: u64) -> u64 {
        let (mut state, mut now_us, mut taken) = (LimitState::New, from_us, 0);
        while now_us < from_us + instants {
            let units = self.remaining(&state, now_us);
            self.params.charge(&mut state, now_us, units);
            taken += units;
            let wait_us = self.params.decide(&state, now_us, 1, Intent::Peek).retry_after_us;
            match wait_us {
                Some(wait_us) => now_us += wait_us.max(1),
                None => break,
            }
        }
        taken
    }
}

/// Tries every number of units at each instant. Returns the most units taken between each pair of
/// instants.
fn exhaust(case: &Case, instants: &[u64]) -> Vec<(u64, u64)> {
    let mut reachable = vec![LimitState::New];
    let mut found = Vec::new();
    for (at, &from_us) in instants.iter().enumerate() {
        let mut most: Vec<(LimitState, u64)> = reachable.iter().map(|s| (s.clone(), 0)).collect();
        for &now_us in &instants[at..] {
            most = step(case, &most, now_us);
            let best = most.iter().map(|(_, taken)| *taken).max().unwrap();
            found.push((now_us - from_us + 1, best));
            if now_us == from_us {
                reachable = most.iter().map(|(state, _)| state.clone()).collect();
            }
        }
    }
    found
}

fn step(case: &Case, most: &[(LimitState, u64)], now_us: u64) -> Vec<(LimitState, u64)> {
    let mut next: Vec<(LimitState, u64)> = Vec::new();
    for (state, taken) in most {
        for units in 0..=case.remaining(state, now_us) {
            let mut state = state.clone();
            case.params.charge(&mut state, now_us, units);
            match next.iter_mut().find(|(known, _)| *known == state) {
                Some((_, best)) => *best = (*best).max(taken + units),
                None => next.push((state, taken + units)),
            }
        }
    }
    next
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nobody_gets_past_it(
        case in cases(0..4),
        places in prop::collection::btree_set((0..3_u64, 0..6_usize), 3..7),
    ) {
        let period = case.period_us;
        // Around boundaries and half-way between them, where an adversary gains most.
        let offsets = [0, 1, 2, period / 2, period - 2, period - 1];
        let instants = places.iter().map(|&(window, at)| (9 + window) * period + offsets[at]);
        for (window, taken) in exhaust(&case, &instants.collect::<Vec<_>>()) {
            let bound = case.bound(window);
            prop_assert!(taken <= bound, "{taken} in {window} µs, bound {bound}: {case:?}");
        }
    }

    #[test]
    fn the_greedy_reach_it(
        case in prop_oneof![cases(0..50), cases(900..2_200)],
        share in 1..3_000_u64,
    ) {
        let (count, period) = (case.count, case.period_us);
        let window = (period * share / 1_000).max(1);
        // The last instant of a window, closest to the next one.
        let reached = case.greedy(9 * period + period - 1, window);
        let bound = case.bound(window);
        prop_assert!(reached <= bound);
        let tight = match case.quota.algorithm() {
            Algorithm::SlidingWindow => window <= period,
            Algorithm::FixedWindow | Algorithm::SlidingLog => true,
            _ => case.quota.capacity() <= 1 || count <= (case.quota.capacity() - 1) * period,
        };
        if tight {
            prop_assert_eq!(reached, bound, "{} µs", window);
        }
    }
}

#[test]
fn the_figures_that_people_quote() {
    let minute = Duration::from_secs(60);
    let bound = |algorithm| Quota::per_minute(100).with_algorithm(algorithm).unwrap().bound(minute);
    assert_eq!(bound(Algorithm::SlidingWindow), Some(199));
    assert_eq!(bound(Algorithm::FixedWindow), Some(200));
    assert_eq!(bound(Algorithm::SlidingLog), Some(100));
    assert_eq!(bound(Algorithm::TokenBucket), Some(199));
    assert_eq!(bound(Algorithm::Gcra), Some(199));
    assert_eq!(bound(Algorithm::LeakyBucket), Some(100));
    assert_eq!(Quota::concurrency(5).bound(minute), None);
}

/// If a microsecond is worth a unit, each one matters.
#[test]
fn every_microsecond_counts() {
    for algorithm in RATES {
        let case = case(algorithm, 1_000, 1_000, None, None);
        for window in 1..=1_000 {
            let reached = case.greedy(10_999, window);
            assert_eq!(reached, case.bound(window), "{algorithm}, {window} µs");
        }
    }
}

#[test]
fn the_ends_of_the_range() {
    for algorithm in RATES {
        let quota = |count| Quota::of(count).every(Duration::from_millis(1)).unwrap();
        let most = quota(u32::MAX).with_algorithm(algorithm).unwrap();
        assert_eq!(most.bound(Duration::ZERO), Some(0), "{algorithm}");
        assert_eq!(most.bound(Duration::from_nanos(1)), Some(most.capacity()), "{algorithm}");
        assert_eq!(most.bound(Duration::MAX), Some(u64::MAX), "{algorithm}");
        let nothing = quota(0).with_algorithm(algorithm).unwrap();
        assert_eq!(nothing.bound(Duration::MAX), Some(0), "{algorithm}");
    }
}

/// The bounds of `100/min` for one minute, as in the README and the reference.
#[test]
fn the_pages_say_what_the_bound_is() {
    for (page, column) in [("README.md", 4), ("docs/reference.md", 3)] {
        let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let mut rows = text.lines().skip_while(|line| !line.contains("worst minute |"));
        let heading = rows.next().unwrap();
        assert!(heading.contains("`100/min`"), "{heading}");
        let mut seen = 0;
        for row in rows.skip(1).take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            for name in cells[1].split('`').skip(1).step_by(2) {
                let Some(algorithm) = RATES.into_iter().find(|one| one.to_string() == name) else {
                    assert_eq!((name, cells[column]), ("concurrency", ""), "{page}");
                    continue;
                };
                let quota = Quota::per_minute(100).with_algorithm(algorithm).unwrap();
                let most = quota.bound(Duration::from_secs(60)).unwrap();
                let said = cells[column].split(' ').next().unwrap();
                assert_eq!(said, most.to_string(), "{page}: {name}");
                seen += 1;
            }
        }
        assert_eq!(seen, RATES.len(), "{page}");
    }
}
