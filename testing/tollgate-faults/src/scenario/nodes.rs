//! Faults of the nodes themselves.

use crate::load::{LoadRequest, Outcome};
use crate::oracle::Bound;
use crate::redis::Redis;
use crate::trial::{Context, FailurePolicy, LimitedPath, Plan, Trial, TrialResult};
use std::collections::BTreeMap;
use std::time::Duration;

fn on(redis: &Redis, context: &Context) -> String {
    // Nothing fails here, so the deadline must not matter.
    format!("url: 'redis://127.0.0.1:{}/0', deadline: {}", redis.port(), context.pick("10s", "1s"))
}

/// Units admitted for each user of a path.
fn admitted(ended: &TrialResult, path: &str) -> BTreeMap<u32, u64> {
    let mut counts = BTreeMap::new();
    for one in ended.samples.iter().filter(|one| one.ask.path == path) {
        let count = counts.entry(one.ask.user).or_default();
        *count += if one.outcome == Outcome::Admitted { one.ask.cost } else { 0 };
    }
    counts
}

const HOT: &[LimitedPath] =
    &[LimitedPath { path: "/hot", bound: Bound::Total(500), policy: FailurePolicy::Closed }];
const HOT_LIMITS: &str = "limits:
  - {name: hot, match: {path: /hot}, key: [user], rate: 500/366d, algorithm: fixed-window, on_store_failure: closed}
  - {name: heal, match: {path: /heal}, key: [user], rate: 4000000000/366d, algorithm: fixed-window}
";

pub(super) fn herd(context: &Context) -> TrialResult {
    let redis = Redis::listen(&[]);
    let plan = Plan {
        nodes: 10,
        store: on(&redis, context),
        limits: HOT_LIMITS,
        paths: HOT,
        per_second: context.pick(500, 2_000),
        pick: |n| LoadRequest { node: (n % 10) as usize, path: "/hot", user: 0, cost: 1 },
    };
    let mut trial = Trial::cold(context, &plan);
    let before = redis.scripts_run();
    trial.send_requests(&plan, 1_000);
    let calls = redis.scripts_run() - before;
    let mut ended = trial.end().check_no_excess();
    let total = admitted(&ended, "/hot").values().sum::<u64>();
    ended.check("the limit is admitted, to the request", total == 500);
    ended.note("calls for the first 1,000 requests", calls);
    // Each node also probes its store occasionally.
    ended.check("no more calls than requests", calls <= 1_000 + 60);
    ended
}

/// Paths with limits of one to five units.
const TINY: [LimitedPath; 5] = [
    LimitedPath { path: "/1", bound: Bound::Total(1), policy: FailurePolicy::Closed },
    LimitedPath { path: "/2", bound: Bound::Total(2), policy: FailurePolicy::Closed },
    LimitedPath { path: "/3", bound: Bound::Total(3), policy: FailurePolicy::Closed },
    LimitedPath { path: "/4", bound: Bound::Total(4), policy: FailurePolicy::Closed },
    LimitedPath { path: "/5", bound: Bound::Total(5), policy: FailurePolicy::Closed },
];

pub(super) fn tiny(context: &Context) -> TrialResult {
    let redis = Redis::listen(&[]);
    let algorithms = ["fixed-window", "gcra", "token-bucket", "sliding-log", "sliding-window"];
    let limits = (1..=5).zip(algorithms).map(|(n, algorithm)| {
        format!("  - {{name: l{n}, match: {{path: /{n}}}, key: [user], rate: {n}/366d, algorithm: {algorithm}, on_store_failure: closed}}\n")
    });
    let heal = "  - {name: heal, match: {path: /heal}, key: [user], rate: 4000000000/366d, algorithm: fixed-window}\n";
    let limits = format!("limits:\n{}{heal}", limits.collect::<String>());
    let plan = Plan {
        nodes: 5,
        store: on(&redis, context),
        limits: &limits,
        paths: &TINY,
        per_second: context.pick(500, 1_000),
        pick: |n| LoadRequest {
            node: (n % 5) as usize,
            path: TINY[(n / 5 % 5) as usize].path,
            user: (n / 250) as u32,
            cost: 1,
        },
    };
    let mut trial = Trial::cold(context, &plan);
    // Sends ten requests of each user for each limit, from several nodes at once. The last user may
    // not have sent all of them.
    let users = context.pick(4, 80);
    trial.send_requests(&plan, users * 250);
    let mut ended = trial.end().check_no_excess();
    let full = TINY.iter().all(|path| {
        let Bound::Total(limit) = path.bound else { return false };
        let counts = admitted(&ended, path.path);
        counts.len() as u64 == users && counts.values().all(|count| *count == limit)
    });
    ended.check("under-admission 0", full);
    ended
}

pub(super) fn rolling_restart(context: &Context) -> TrialResult {
    let redis = Redis::listen(&[]);
    let mut plan = Plan::mixed(context, "");
    plan.store = on(&redis, context);
    let mut trial = Trial::start(context, &plan);
    let mut ended_well = true;
    trial.mark_fault();
    for _ in 0..context.pick(1, 3) {
        for node in 0..trial.nodes.len() {
            ended_well &= trial.nodes[node].end();
            trial.nodes[node].restart();
            trial.run_for(Duration::from_millis(context.pick(200, 1_000)));
        }
    }
    trial.mark_cleared();
    let mut ended = trial.end().check_no_excess();
    ended.figures.rss_growth_kib = None;
    ended.check("every node drained and ended with status 0", ended_well);
    let moved = ended.samples.iter().filter(|one| one.resent > 0).count() as u64;
    ended.note("requests that found a node not listening, and went to another", moved);
    ended
}

const HALVED: &[LimitedPath] =
    &[LimitedPath { path: "/total", bound: Bound::Total(500), policy: FailurePolicy::Closed }];

/// Writes the file with this limit, and a part that differs each time.
fn halved(store: &str, rate: u32, turn: u32) -> String {
    format!(
        "# {turn}
store: {{redis: {{{store}}}}}
limits:
  - {{name: total, match: {{path: /total}}, key: [user], rate: {rate}/366d, algorithm: fixed-window, on_store_failure: closed}}
  - {{name: heal, match: {{path: /heal}}, key: [user], rate: 4000000000/366d, algorithm: fixed-window}}
"
    )
}

pub(super) fn reload(context: &Context) -> TrialResult {
    let redis = Redis::listen(&[]);
    let store = on(&redis, context);
    let file = halved(&store, 1_000, 0);
    let limits = file.split_once("limits:").map(|(_, rest)| format!("limits:{rest}"));
    let plan = Plan {
        nodes: 3,
        store: store.clone(),
        limits: &limits.unwrap_or_default(),
        paths: HALVED,
        per_second: 300,
        pick: |n| LoadRequest {
            node: (n % 3) as usize,
            path: "/total",
            user: (n / 3 % 3) as u32,
            cost: 1,
        },
    };
    let mut trial = Trial::cold(context, &plan);
    assert!(trial.is_healed(), "the nodes find their store");
    trial.start_load(&plan);
    trial.mark_fault();
    let mut turn = 0;
    // Sends 150 requests under the first limit, and far more than it allows under the second.
    while trial.answered() < context.pick(1_800, 3_000) {
        let rate = if trial.answered() < 150 { 1_000 } else { 500 };
        turn += 1;
        trial.nodes.iter().for_each(|node| node.put(&halved(&store, rate, turn)));
        // A file is loaded when it has not changed for 300 ms.
        trial.run_for(Duration::from_millis(500));
    }
    trial.mark_cleared();
    let reloads: u64 =
        trial.nodes.iter().map(|node| node.metric("tollgate_reload_total{result=\"ok\"}")).sum();
    let mut ended = trial.end().check_no_excess();
    ended.note("reloads, three nodes", reloads);
    ended.check("the files were put in force", reloads >= 3);
    let counts = admitted(&ended, "/total");
    ended.check(
        "the new limit is used up, to the request",
        counts.values().all(|count| *count == 500),
    );
    let seen = ended.figures.by_policy;
    ended.check("no request went without its store", seen == 0);
    ended
}
