//! Faults of the single server that all nodes share.

use crate::clock::now_us;
use crate::load::{LoadRequest, Outcome};
use crate::oracle::Bound;
use crate::redis::Redis;
use crate::trial::{Context, FailurePolicy, LimitedPath, Plan, Trial, TrialResult};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

pub(super) fn url(redis: &Redis) -> String {
    format!("url: 'redis://127.0.0.1:{}/0'", redis.port())
}

/// Whether every node logged that its circuit breaker opened and closed, in turn.
fn said_once(trial: &Trial) -> bool {
    trial.nodes.iter().all(|node| {
        let log = node.log();
        let said = log.iter().filter(|line| line.contains("circuit breaker "));
        let open: Vec<_> = said.map(|line| line.contains("breaker open")).collect();
        open.len() > 1 && open[0] && open.windows(2).all(|pair| pair[0] != pair[1])
    })
}

fn counted_errors(trial: &Trial) -> bool {
    trial.nodes.iter().all(|node| node.metrics("tollgate_store_errors_total{") > 0)
}

fn all_open(trial: &Trial, open: u64) -> bool {
    trial.nodes.iter().all(|node| node.metric("tollgate_breaker_open") == open)
}

pub(crate) fn gone(context: &Context) -> TrialResult {
    // A killed process loses no data that it had written. Only a crash of the machine would need
    // `always`.
    let mut redis = Redis::listen(&["--appendonly", "yes", "--appendfsync", "no"]);
    let mut trial = Trial::start(context, &Plan::mixed(context, &url(&redis)));
    trial.mark_fault();
    redis.kill();
    trial.run_for(Duration::from_millis(context.pick(2_500, 60_000)));
    let open = all_open(&trial, 1);
    redis.restart();
    trial.mark_cleared();
    let healed = trial.is_healed();
    let (once, counted, closed) = (said_once(&trial), counted_errors(&trial), all_open(&trial, 0));
    let mut ended = trial.end().check_no_excess().check_budget();
    ended.check("the breaker opens", open && healed);
    ended.check_timing("the breaker closes again", closed);
    ended.check("one line in each log for each change", once);
    ended.check("errors of the store are counted by kind", counted);
    let kinds = [Outcome::FailOpen, Outcome::FailClosed, Outcome::LocalAdmitted];
    let all = kinds.iter().all(|kind| ended.samples.iter().any(|one| one.outcome == *kind));
    ended.check("every policy was needed", all);
    ended
}

pub(crate) fn forgetful(context: &Context) -> TrialResult {
    let mut redis = Redis::listen(&[]);
    let mut trial = Trial::start(context, &Plan::mixed(context, &url(&redis)));
    trial.mark_fault();
    redis.kill();
    trial.run_for(Duration::from_secs(2));
    redis.restart();
    trial.mark_cleared();
    let mut ended = trial.end().check_all_answered().check_budget();
    // Each of six users can use the 60 and 30 units of the two long limits again. The windows of
    // the short limits have ended by then.
    let over = ended.figures.over_admission;
    ended.check("over-admission at most one limit for each key", over <= Some(6 * (60 + 30)));
    ended
}

pub(crate) fn stopped(context: &Context) -> TrialResult {
    let redis = Redis::listen(&[]);
    let mut trial = Trial::start(context, &Plan::mixed(context, &url(&redis)));
    trial.mark_fault();
    redis.process().signal("STOP");
    trial.run_for(Duration::from_millis(context.pick(2_500, 10_000)));
    let open = all_open(&trial, 1);
    redis.process().signal("CONT");
    trial.mark_cleared();
    let mut ended = trial.end().check_no_excess().check_budget();
    ended.check("the breaker opens", open);
    // Two deadlines, within which the breaker opens, plus the delay of a busy machine.
    let most = 600 * 2 * 25 / 1_000 + 600 / 5;
    let in_flight = ended.figures.in_flight_max;
    ended.check_timing("nothing piles up", in_flight <= most);
    ended
}

const EVICTED: &[LimitedPath] =
    &[LimitedPath { path: "/total", bound: Bound::Total(40), policy: FailurePolicy::Closed }];
const EVICTED_LIMITS: &str = "limits:
  - {name: total, match: {path: /total}, key: [user], rate: 40/366d, algorithm: fixed-window, on_store_failure: closed}
  - {name: heal, match: {path: /heal}, key: [user], rate: 4000000000/366d, algorithm: fixed-window}
";

pub(crate) fn evicting(context: &Context) -> TrialResult {
    let redis = Redis::listen(&["--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru"]);
    let plan = Plan {
        limits: EVICTED_LIMITS,
        paths: EVICTED,
        per_second: 300,
        pick: |n| LoadRequest {
            node: (n % 3) as usize,
            path: "/total",
            user: (n % 4) as u32,
            cost: 1,
        },
        ..Plan::mixed(context, &url(&redis))
    };
    let mut trial = Trial::start(context, &plan);
    trial.mark_fault();
    let mut connection = redis.connection().expect("a connection");
    for n in 0..context.pick(6_000, 60_000) {
        let filled: redis::RedisResult<()> = redis::cmd("SET")
            .arg(format!("filler:{n}"))
            .arg("x".repeat(400))
            .query(&mut connection);
        filled.expect("there is room for what pushes others out");
    }
    trial.mark_cleared();
    let said = format!("{:?}", redis.run("INFO stats"));
    let evicted = said.split("evicted_keys:").nth(1).and_then(|rest| rest.split('\\').next());
    let evicted = evicted.and_then(|number| number.parse().ok()).unwrap_or(0_u64);
    let warned = trial.nodes.iter().all(|node| node.logged("evicts counts") == 1);
    let mut ended = trial.end().check_all_answered();
    ended.check("every node warns at the start", warned);
    ended.note("evicted keys", evicted);
    let over = ended.figures.over_admission.unwrap_or(u64::MAX);
    ended.check("at most one more limit for each evicted key", over <= 40 * evicted.max(1));
    ended
}

pub(crate) fn full(context: &Context) -> TrialResult {
    let redis = Redis::listen(&[]);
    let (breaks, mends) = (["CONFIG SET maxmemory 1"], "CONFIG SET maxmemory 0");
    rejecting(context, &redis, &url(&redis), &breaks, mends)
}

pub(crate) fn credentials(context: &Context) -> TrialResult {
    let redis = Redis::listen(&[]);
    redis.run("ACL SETUSER node on >first ~* +@all");
    let store = format!("{}, username: node, password: first", url(&redis));
    let breaks = ["ACL SETUSER node <first >second", "CLIENT KILL USER node"];
    rejecting(context, &redis, &store, &breaks, "ACL SETUSER node >first")
}

/// Runs a scenario with a server that is up, but refuses to decide for a while.
fn rejecting(
    context: &Context,
    redis: &Redis,
    store: &str,
    breaks: &[&str],
    mends: &str,
) -> TrialResult {
    let mut trial = Trial::start(context, &Plan::mixed(context, store));
    trial.mark_fault();
    breaks.iter().for_each(|words| drop(redis.run(words)));
    trial.run_for(Duration::from_millis(context.pick(1_500, 4_000)));
    let open = all_open(&trial, 1);
    redis.run(mends);
    trial.mark_cleared();
    let name = "tollgate_store_errors_total{kind=\"rejected\"}";
    let rejected = trial.nodes.iter().all(|node| node.metric(name) > 0);
    let mut ended = trial.end().check_no_excess().check_budget();
    ended.check("the breaker opens, and the metric says rejected", open && rejected);
    ended
}

pub(crate) fn scripts_wiped(context: &Context) -> TrialResult {
    let redis = Redis::listen(&[]);
    let mut plan = Plan::mixed(context, &url(&redis));
    plan.store = format!("{}, deadline: {}", url(&redis), context.pick("5s", "1s"));
    let mut trial = Trial::start(context, &plan);
    trial.mark_fault();
    for _ in 0..context.pick(15, 100) {
        redis.run("SCRIPT FLUSH");
        trial.run_for(Duration::from_millis(100));
    }
    trial.mark_cleared();
    let mut ended = trial.end().check_no_excess().check_budget();
    let seen = ended.figures.by_policy;
    ended.check("no caller sees it", seen == 0);
    ended
}

pub(crate) fn neighbour(context: &Context) -> TrialResult {
    let redis = Redis::listen(&["--enable-debug-command", "yes"]);
    let mut populate = redis::cmd("DEBUG");
    populate.arg("POPULATE").arg(context.pick(50_000, 5_000_000));
    populate.exec(&mut redis.connection().expect("a connection")).expect("room for many keys");
    let mut trial = Trial::start(context, &Plan::mixed(context, &url(&redis)));
    trial.mark_fault();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                redis.run("KEYS *:not-there:*");
            }
        });
        trial.run_for(Duration::from_millis(context.pick(1_500, 15_000)));
        done.store(true, Relaxed);
    });
    trial.mark_cleared();
    trial.end().check_no_excess().check_budget()
}

/// A limit with ten thousand keys, each used repeatedly.
const MANY: &[LimitedPath] = &[LimitedPath {
    path: "/many",
    bound: Bound::Total(4_000_000_000),
    policy: FailurePolicy::Open,
}];
const MANY_LIMITS: &str = "limits:
  - {name: many, match: {path: /many}, key: [user], rate: 4000000000/366d, algorithm: gcra}
  - {name: heal, match: {path: /heal}, key: [user], rate: 4000000000/366d, algorithm: fixed-window}
";

pub(crate) fn comes_back(context: &Context) -> TrialResult {
    let mut redis = Redis::listen(&["--appendonly", "yes"]);
    let plan = Plan {
        limits: MANY_LIMITS,
        paths: MANY,
        per_second: context.pick(300, 1_000),
        pick: |n| LoadRequest {
            node: (n % 3) as usize,
            path: "/many",
            user: (n % 10_000) as u32,
            cost: 1,
        },
        ..Plan::mixed(context, &url(&redis))
    };
    let mut trial = Trial::start(context, &plan);
    let steady = scripts_in_a_second(&redis, &mut trial);
    trial.mark_fault();
    redis.kill();
    trial.run_for(Duration::from_millis(context.pick(1_500, 60_000)));
    redis.restart();
    trial.mark_cleared();
    let most = (0..context.pick(2, 4)).map(|_| scripts_in_a_second(&redis, &mut trial)).max();
    let mut ended = trial.end().check_all_answered().check_budget();
    ended.note("calls a second before", steady);
    ended.note("calls a second after, at most", most.unwrap_or(0));
    ended.check_timing("at most twice as many calls as before", most <= Some(2 * steady));
    ended
}

fn scripts_in_a_second(redis: &Redis, trial: &mut Trial) -> u64 {
    let (before, start_us) = (redis.scripts_run(), now_us());
    trial.run_for(Duration::from_secs(1));
    (redis.scripts_run() - before) * 1_000_000 / (now_us() - start_us)
}
