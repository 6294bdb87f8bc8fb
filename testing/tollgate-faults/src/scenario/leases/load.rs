//! The admitted share of a leased limit, and the number of store calls.

use super::{USERS, admitted, answer, known, leasing, limits, plan, sum, url};
use crate::load::{LoadRequest, Outcome};
use crate::oracle::Bound;
use crate::redis::Redis;
use crate::trial::{Context, FailurePolicy, LimitedPath, Plan, TrialResult};
use std::collections::BTreeMap;
use std::time::Duration;

const SECOND_US: u64 = 1_000_000;

/// Sends nine of ten requests to the first of five nodes.
fn skewed(n: u64) -> LoadRequest {
    let node = if n % 10 < 9 { 0 } else { 1 + n / 10 % 4 };
    LoadRequest { node: node as usize, path: "/hot", user: 0, cost: 1 }
}

fn window(limit: u64) -> [LimitedPath; 1] {
    let bound = Bound::Window { limit, window_us: SECOND_US };
    [LimitedPath { path: "/hot", bound, policy: FailurePolicy::Closed }]
}

pub(in crate::scenario) fn skew(context: &Context) -> TrialResult {
    let redis = Redis::listen(&[]);
    // A machine that runs other tests cannot handle 1,500 requests a second.
    let limit = context.pick(200, 1_000);
    let (paths, limits) = (window(limit), limits(&format!("{limit}/s")));
    let plan = Plan {
        nodes: 5,
        paths: &paths,
        per_second: limit * 3 / 2,
        pick: skewed,
        ..plan(context, &url(&redis), &limits)
    };
    let mut trial = known(context, &plan);
    trial.start_load(&plan);
    trial.run_for(Duration::from_millis(context.pick(4_000, 20_000)));
    let mut ended = trial.end().check_no_excess();
    // Windows with more demand than the limit, except the first two, in which leases are taken.
    let mut windows = BTreeMap::<u64, (u64, u64)>::new();
    for one in &ended.samples {
        let (asked, passed) = windows.entry(one.sent_us / SECOND_US).or_default();
        *asked += 1;
        *passed += u64::from(one.outcome == Outcome::Admitted);
    }
    let full: Vec<_> =
        windows.values().skip(2).filter(|(asked, _)| *asked * 10 >= limit * 13).collect();
    let share = |passed: u64| passed * 1_000 / (limit * full.len().max(1) as u64);
    let permille = share(full.iter().map(|(_, passed)| passed).sum());
    ended.note("windows with more requests than the limit", full.len() as u64);
    ended.note("admitted of the limit, per mille", permille);
    ended.check_timing(
        "at least 97 % of the limit is admitted",
        !full.is_empty() && permille >= 970,
    );
    ended
}

const HOT: &[LimitedPath] =
    &[LimitedPath { path: "/hot", bound: Bound::Total(500), policy: FailurePolicy::Closed }];

pub(in crate::scenario) fn herd(context: &Context) -> TrialResult {
    let (redis, limits) = (Redis::listen(&[]), limits("500/366d"));
    let plan = Plan {
        nodes: 10,
        paths: HOT,
        per_second: context.pick(400, 2_000),
        pick: |n| LoadRequest { node: (n % 10) as usize, path: "/hot", user: 0, cost: 1 },
        ..plan(context, &url(&redis), &limits)
    };
    let mut trial = known(context, &plan);
    let before = redis.scripts_run();
    trial.send_requests(&plan, 1_000);
    let calls = redis.scripts_run() - before;
    let held = sum(&trial, "tollgate_lease_held_units");
    let direct = sum(&trial, "tollgate_lease_decisions_total{by=\"store\"}");
    let mut ended = trial.end().check_no_excess();
    let total = admitted(&ended, "/hot").values().sum::<u64>();
    ended.note("calls for the first 1,000 requests", calls);
    ended.note("decided by the store", direct);
    ended.note("admitted of 500", total);
    ended.check("what was not admitted is still held", total + held >= 500);
    // Each node also probes its store occasionally.
    ended.check("no more calls than requests", calls <= 1_000 + 200);
    ended
}

/// Leased limits of one to five units, which the store decides.
const TINY: [LimitedPath; 5] = [
    LimitedPath { path: "/1", bound: Bound::Total(1), policy: FailurePolicy::Closed },
    LimitedPath { path: "/2", bound: Bound::Total(2), policy: FailurePolicy::Closed },
    LimitedPath { path: "/3", bound: Bound::Total(3), policy: FailurePolicy::Closed },
    LimitedPath { path: "/4", bound: Bound::Total(4), policy: FailurePolicy::Closed },
    LimitedPath { path: "/5", bound: Bound::Total(5), policy: FailurePolicy::Closed },
];

pub(in crate::scenario) fn tiny(context: &Context) -> TrialResult {
    let redis = Redis::listen(&[]);
    let algorithms = ["fixed-window", "gcra", "token-bucket", "fixed-window", "sliding-window"];
    let each = (1..=5).zip(algorithms).map(|(n, algorithm)| {
        format!("  - {{name: l{n}, match: {{path: /{n}}}, key: [user], rate: {n}/366d, algorithm: {algorithm}, consistency: leased, on_store_failure: closed}}\n")
    });
    let limits = limits("500/366d") + &each.collect::<String>();
    let plan = Plan {
        nodes: 5,
        paths: &TINY,
        per_second: context.pick(400, 1_000),
        pick: |n| LoadRequest {
            node: (n % 5) as usize,
            path: TINY[(n / 5 % 5) as usize].path,
            user: (n / 250) as u32,
            cost: 1,
        },
        ..plan(context, &url(&redis), &limits)
    };
    let mut trial = known(context, &plan);
    let users = context.pick(4, 80);
    trial.send_requests(&plan, users * 250);
    let granted = sum(&trial, "tollgate_lease_granted_units_total");
    let mut ended = trial.end().check_no_excess();
    let full = TINY.iter().all(|path| {
        let Bound::Total(limit) = path.bound else { return false };
        let counts = admitted(&ended, path.path);
        counts.len() as u64 == users && counts.values().all(|count| *count == limit)
    });
    ended.check("under-admission 0", full);
    ended.check("nothing was leased", granted == 0);
    ended
}

const HALVED: &[LimitedPath] =
    &[LimitedPath { path: "/hot", bound: Bound::Total(500), policy: FailurePolicy::Closed }];

pub(in crate::scenario) fn halved(context: &Context) -> TrialResult {
    let redis = Redis::listen(&[]);
    let (whole, half) = (limits("1000/366d"), limits("500/366d"));
    let plan = Plan { paths: HALVED, ..plan(context, &url(&redis), &whole) };
    let mut trial = leasing(context, &plan);
    answer(&mut trial, 100);
    trial.mark_fault();
    let held = sum(&trial, "tollgate_lease_held_units");
    let next = Plan { limits: &half, ..plan.clone() };
    trial.nodes.iter().for_each(|node| node.put(&next.file()));
    let reloaded = || sum(&trial, "tollgate_reload_total{result=\"ok\"}") >= 3;
    assert!(crate::clock::wait_until(super::PATIENCE, reloaded), "the file is put in force");
    trial.mark_cleared();
    answer(&mut trial, 1_600);
    let mut ended = trial.end().check_all_answered();
    ended.note("units held when the file changed", held);
    let over = ended.figures.over_admission.unwrap_or(u64::MAX);
    // Nodes may have taken more units before the reload, so the bound is the most they take at
    // once.
    ended.check("excess over the new limit: outstanding leases at most", {
        over <= 3 * USERS * super::CHUNK_MOST
    });
    let counts = admitted(&ended, "/hot");
    ended.check("the new limit is used up", counts.values().all(|count| *count >= 500));
    ended
}
