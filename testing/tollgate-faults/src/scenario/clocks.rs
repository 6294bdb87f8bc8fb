//! Jumps of the server's clock, under every algorithm.

use super::redis_server::url;
use crate::clock::shifted::ShiftedClock;
use crate::load::{LoadRequest, Outcome};
use crate::oracle::Bound;
use crate::redis::Redis;
use crate::trial::{Context, FailurePolicy, LimitedPath, Plan, Trial, TrialResult};
use std::time::Duration;

const SECOND_US: u64 = 1_000_000;
const HOUR_US: i64 = 3_600 * 1_000_000;
const USERS: u64 = 2;

/// Limits of five to ten units, one for each algorithm.
const LIMITS: &str = "limits:
  - {name: fixed, match: {path: /fixed}, key: [user], rate: 8/s, algorithm: fixed-window, on_store_failure: closed}
  - {name: sliding, match: {path: /sliding}, key: [user], rate: 8/s, algorithm: sliding-window, on_store_failure: closed}
  - {name: log, match: {path: /log}, key: [user], rate: 6/s, algorithm: sliding-log, on_store_failure: closed}
  - {name: token, match: {path: /token}, key: [user], rate: 5/s, algorithm: token-bucket, on_store_failure: closed}
  - {name: gcra, match: {path: /gcra}, key: [user], rate: 5/s, algorithm: gcra, on_store_failure: closed}
  - {name: burst, match: {path: /burst}, key: [user], rate: 5/s, burst: 10, algorithm: gcra, on_store_failure: closed}
  - {name: leaky, match: {path: /leaky}, key: [user], rate: 5/s, burst: 5, algorithm: leaky-bucket, on_store_failure: closed}
  - {name: slots, match: {path: /slots}, key: [user], rate: 5, ttl: 1s, algorithm: concurrency, on_store_failure: closed}
  - {name: heal, match: {path: /heal}, key: [user], rate: 4000000000/366d, algorithm: fixed-window}
";

const fn bucket(path: &'static str, burst: u64) -> LimitedPath {
    let bound = Bound::Bucket { burst, count: 5, period_us: SECOND_US };
    LimitedPath { path, bound, policy: FailurePolicy::Closed }
}

const fn sliding(path: &'static str, limit: u64) -> LimitedPath {
    let bound = Bound::Sliding { limit, window_us: SECOND_US };
    LimitedPath { path, bound, policy: FailurePolicy::Closed }
}

/// The promises of the limits. A sliding window assumes that requests of the previous window were
/// evenly spread, so only more than twice its limit is certainly too much.
const PATHS: [LimitedPath; 8] = [
    LimitedPath {
        path: "/fixed",
        bound: Bound::Window { limit: 8, window_us: SECOND_US },
        policy: FailurePolicy::Closed,
    },
    sliding("/sliding", 16),
    sliding("/log", 6),
    bucket("/token", 5),
    bucket("/gcra", 5),
    bucket("/burst", 10),
    bucket("/leaky", 5),
    sliding("/slots", 5),
];
/// The sum of the capacities of all limits.
const CAPACITIES: u64 = 8 + 16 + 6 + 5 + 5 + 10 + 5 + 5;

fn plan(context: &Context, redis: &Redis) -> Plan<'static> {
    Plan {
        limits: LIMITS,
        paths: &PATHS,
        pick: |n| LoadRequest {
            node: (n / 5 % 3) as usize,
            path: PATHS[(n % 8) as usize].path,
            user: (n / 8 % USERS) as u32,
            cost: 1,
        },
        ..Plan::mixed(context, &url(redis))
    }
}

/// Whether each node logged and counted this number of jumps.
fn told(trial: &Trial, leaps: usize) -> bool {
    trial.nodes.iter().all(|node| {
        node.logged("clock jumped") == leaps
            && node.metric("tollgate_store_clock_leaps_total") == leaps as u64
    })
}

/// Checks that every key was admitted after `since_us`.
fn check_all_admitted(ended: &mut TrialResult, since_us: u64) {
    for path in PATHS.map(|limit| limit.path) {
        let is_admitted = |user: u64| {
            ended.samples.iter().any(|one| {
                let of_key = one.ask.path == path && u64::from(one.ask.user) == user;
                of_key && one.outcome == Outcome::Admitted && one.sent_us > since_us
            })
        };
        let all = (0..USERS).all(is_admitted);
        ended.check(format!("{path}: admitted again"), all);
    }
}

/// The clock jumps ahead for two seconds, and back.
pub(super) fn leap(context: &Context) -> TrialResult {
    let clock = ShiftedClock::new();
    let redis = Redis::listen_with_clock(&clock);
    let mut trial = Trial::start(context, &plan(context, &redis));
    trial.mark_fault();
    clock.set(HOUR_US);
    trial.run_for(Duration::from_secs(2));
    clock.set(0);
    trial.mark_cleared();
    let back_us = crate::clock::now_us();
    // Long enough for windows, logs and slots of one second, and a bucket of two.
    trial.run_for(Duration::from_secs(5));
    let told = told(&trial, 2);
    let mut ended = trial.end().check_all_answered();
    ended.check("two lines in each log, and two in the metric", told);
    let over = ended.figures.over_admission;
    ended.check("at most one capacity more for each key", over <= Some(USERS * CAPACITIES));
    check_all_admitted(&mut ended, back_us + 3 * SECOND_US);
    ended
}

/// The clock jumps thirty seconds back for good, as after a failover to a primary whose clock is
/// behind.
pub(super) fn behind(context: &Context) -> TrialResult {
    let clock = ShiftedClock::new();
    let redis = Redis::listen_with_clock(&clock);
    let mut trial = Trial::start(context, &plan(context, &redis));
    trial.mark_fault();
    clock.set(-30 * SECOND_US as i64);
    let back_us = crate::clock::now_us();
    trial.run_for(Duration::from_secs(5));
    let told = told(&trial, 1);
    let mut ended = trial.end().check_no_excess();
    ended.check("one line in each log, and one in the metric", told);
    check_all_admitted(&mut ended, back_us + 3 * SECOND_US);
    ended
}
