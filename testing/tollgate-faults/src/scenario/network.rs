//! Faults of the network between the nodes and their server.

use crate::load::LoadRequest;
use crate::oracle::Bound;
use crate::proxy::{Faults, HangingListener, Proxy};
use crate::redis::Redis;
use crate::trial::{Context, FailurePolicy, LimitedPath, Plan, Trial, TrialResult};
use std::time::Duration;

fn through(proxy: &Proxy) -> String {
    format!("url: 'redis://127.0.0.1:{}/0'", proxy.port())
}

fn proxied(context: &Context, deadline: Option<&str>) -> (Redis, Proxy, Trial) {
    let redis = Redis::listen(&[]);
    let proxy = Proxy::start(redis.port()).expect("a port for the proxy");
    let mut plan = Plan::mixed(context, &through(&proxy));
    if let Some(deadline) = deadline {
        plan.store = format!("{}, deadline: {deadline}", through(&proxy));
    }
    let trial = Trial::start(context, &plan);
    (redis, proxy, trial)
}

/// Runs a scenario whose fault is one setting of the proxy.
fn with(context: &Context, faults: Faults, short_ms: u64, full_ms: u64) -> TrialResult {
    let (_redis, proxy, mut trial) = proxied(context, None);
    trial.mark_fault();
    proxy.set(faults);
    trial.run_for(Duration::from_millis(context.pick(short_ms, full_ms)));
    proxy.set(Faults::default());
    trial.mark_cleared();
    trial.end().check_no_excess().check_budget()
}

pub(super) fn slow(context: &Context) -> TrialResult {
    // Well over any deadline.
    let latency = Duration::from_millis(context.pick(500, 50));
    let mut ended = with(context, Faults { latency, ..Faults::default() }, 3_000, 10_000);
    let by_policy = ended.figures.by_policy;
    ended.check("the policies were needed", by_policy > 0);
    ended
}

pub(super) fn slow_some(context: &Context) -> TrialResult {
    let (jitter, late) = (Duration::from_millis(2), (50, Duration::from_millis(500)));
    with(context, Faults { jitter, late, ..Faults::default() }, 1_500, 10_000)
}

pub(super) fn replies_cut(context: &Context) -> TrialResult {
    with(context, Faults { no_replies: true, ..Faults::default() }, 1_500, 3_000)
}

pub(super) fn requests_cut(context: &Context) -> TrialResult {
    with(context, Faults { no_requests: true, ..Faults::default() }, 1_500, 3_000)
}

pub(super) fn sliced(context: &Context) -> TrialResult {
    let (_redis, proxy, mut trial) = proxied(context, Some(context.pick("10s", "1s")));
    trial.mark_fault();
    proxy.set(Faults { slice: Some(3), ..Faults::default() });
    trial.run_for(Duration::from_millis(context.pick(1_000, 5_000)));
    proxy.set(Faults::default());
    trial.mark_cleared();
    let mut ended = trial.end().check_no_excess();
    let seen = ended.figures.by_policy;
    ended.check("no caller sees it", seen == 0);
    ended
}

pub(super) fn reset(context: &Context) -> TrialResult {
    let (_redis, proxy, mut trial) = proxied(context, None);
    trial.mark_fault();
    for _ in 0..context.pick(10, 50) {
        proxy.reset();
        trial.run_for(Duration::from_millis(100));
    }
    trial.mark_cleared();
    trial.end().check_no_excess().check_budget()
}

pub(super) fn connect_hangs(context: &Context) -> TrialResult {
    let hanging = HangingListener::start().expect("a port that hangs");
    let store = format!("url: 'redis://127.0.0.1:{}/0'", hanging.port());
    let plan = Plan { nodes: 1, ..Plan::mixed(context, &store) };
    // The node must start without a connection.
    let alone = Trial::cold(context, &plan);
    let node = &alone.nodes[0];
    let by_policy = |path: &str, status: u16| {
        (0..20).all(|_| node.check("a", path).is_ok_and(|answer| answer.status == status))
    };
    let answers = by_policy("/open", 200) && by_policy("/total", 503);
    let within = Duration::from_secs(30);
    let told = || node.get("/readyz").is_ok_and(|answer| answer.body.contains("\"store\""));
    let tells = crate::clock::wait_until(within, told);
    drop(alone);

    let redis = Redis::listen(&[]);
    let proxy = Proxy::start(redis.port()).expect("a port for the proxy");
    proxy.set(Faults { swallow_new: true, ..Faults::default() });
    let plan = Plan::mixed(context, &through(&proxy));
    let mut trial = Trial::cold(context, &plan);
    trial.start_load(&plan);
    trial.run_for(Duration::from_millis(context.pick(500, 1_000)));
    trial.mark_fault();
    let (before, seconds) = (proxy.accepted(), context.pick(2, 10));
    trial.run_for(Duration::from_secs(seconds));
    let attempts = (proxy.accepted() - before).div_ceil(seconds);
    proxy.set(Faults::default());
    trial.mark_cleared();
    let mut ended = trial.end().check_no_excess().check_budget();
    ended.check("a node starts and answers by policy where connections hang", answers);
    ended.check("/readyz names the store", tells);
    ended.note("attempts to connect a second, three nodes", attempts);
    // Each node probes every 250 to 500 ms.
    ended.check("few attempts", attempts <= 3 * 5);
    ended
}

const TIERED: &[LimitedPath] =
    &[LimitedPath { path: "/x", bound: Bound::Total(4_000_000_000), policy: FailurePolicy::Open }];
const TIERED_LIMITS: &str = "tiers: {default: free, redis: {hash: plans, by: user}}
limits:
  - {name: x, match: {path: /x}, key: [user], rate: 4000000000/366d, algorithm: gcra, tiers: {pro: 4000000000/366d}}
  - {name: heal, match: {path: /heal}, key: [user], rate: 4000000000/366d, algorithm: fixed-window}
";

/// One of this many requests is for the user whose tier is ten megabytes long.
const BIG: u64 = 50;

pub(super) fn big_reply(context: &Context) -> TrialResult {
    let redis = Redis::listen(&[]);
    // The proxy is not used, since its one thread would itself delay decisions.
    let plan = Plan {
        limits: TIERED_LIMITS,
        paths: TIERED,
        per_second: 300,
        pick: |n| {
            let user = if n.is_multiple_of(BIG) { 0 } else { 1 + n % 40 };
            LoadRequest { node: (n % 3) as usize, path: "/x", user: user as u32, cost: 1 }
        },
        ..Plan::mixed(context, &format!("url: 'redis://127.0.0.1:{}/0'", redis.port()))
    };
    let mut trial = Trial::start(context, &plan);
    let mut connection = redis.connection().expect("a connection");
    let mut plans = redis::cmd("HSET");
    plans.arg("plans").arg("0").arg("x".repeat(10 << 20));
    trial.mark_fault();
    plans.exec(&mut connection).expect("room for ten megabytes");
    trial.run_for(Duration::from_millis(context.pick(1_500, 10_000)));
    redis.run("DEL plans");
    trial.mark_cleared();
    let mut ended = trial.end().check_all_answered();
    let others = |sample: &&crate::load::Sample| sample.ask.user != 0;
    let failed = ended.samples.iter().filter(others).filter(|one| one.outcome.is_without_store());
    let failed = failed.count() as u64;
    ended.note("decisions of others without the store", failed);
    let p99 = crate::measurements::percentile_us(&ended.samples, 99, |one| one.ask.user != 0);
    ended.note("p99 of others, us", p99.unwrap_or(0));
    ended.check_timing("p99 of others <= 25 ms", p99.is_some_and(|p99| p99 <= 25_000));
    ended
}
