//! Faults of the store that grants leases, and of the network to it.

use super::{LIMIT, USERS, answer, leasing, limits, plan, rollbacks, sum, unused, url, use_up};
use crate::cluster::Cluster;
use crate::load::{LoadRequest, Sample};
use crate::measurements::percentile_us;
use crate::oracle::Bound;
use crate::proxy::{Faults, Proxy};
use crate::redis::Redis;
use crate::scenario::topology;
use crate::sentinel::Sentinels;
use crate::trial::{Context, FailurePolicy, LimitedPath, Plan, Trial, TrialResult};
use std::time::Duration;

pub(in crate::scenario) fn gone(context: &Context) -> TrialResult {
    let mut redis = Redis::listen(&["--appendonly", "yes", "--appendfsync", "no"]);
    let (store, limits) = (url(&redis), limits("900/366d"));
    let mut trial = leasing(context, &plan(context, &store, &limits));
    trial.mark_fault();
    redis.kill();
    trial.run_for(Duration::from_millis(context.pick(1_500, 20_000)));
    redis.restart();
    trial.mark_cleared();
    assert!(trial.is_healed(), "the nodes find their store again");
    use_up(&mut trial);
    let (counted, held) = (rollbacks(&trial), sum(&trial, "tollgate_lease_held_units"));
    let mut ended = trial.end().check_no_excess();
    ended.check("it kept everything, so nothing is taken for lost", counted == 0);
    // Units that the store charged without being able to reply are spent.
    let unused = unused(&ended, LIMIT);
    ended.note("units that nobody got", unused.saturating_sub(held));
    // A restarted server has a grace period first, so that nodes can report the leases they hold.
    ended.figures.recovery_us = None;
    ended
}

pub(super) fn proxied() -> (Redis, Proxy, String) {
    let redis = Redis::listen(&[]);
    let proxy = Proxy::start(redis.port()).expect("a port for the proxy");
    let store = format!("url: 'redis://127.0.0.1:{}/0'", proxy.port());
    (redis, proxy, store)
}

pub(in crate::scenario) fn replies_cut(context: &Context) -> TrialResult {
    let (_redis, proxy, store) = proxied();
    let limits = limits("900/366d");
    let mut trial = leasing(context, &plan(context, &store, &limits));
    trial.mark_fault();
    for _ in 0..context.pick(2, 5) {
        proxy.set(Faults { no_replies: true, ..Faults::default() });
        trial.run_for(Duration::from_millis(context.pick(600, 1_000)));
        proxy.set(Faults::default());
        trial.run_for(Duration::from_millis(context.pick(300, 1_500)));
    }
    trial.mark_cleared();
    assert!(trial.is_healed(), "the nodes find their store again");
    use_up(&mut trial);
    let mut ended = trial.end().check_no_excess();
    // Units that the store charged without being able to reply are spent; of grants, nodes learn
    // from the next reply.
    let unsaid = unused(&ended, LIMIT);
    ended.note("units that nobody was told of", unsaid);
    ended
}

const SLOW: &[LimitedPath] = &[
    LimitedPath { path: "/hot", bound: Bound::Total(4_000_000_000), policy: FailurePolicy::Closed },
    LimitedPath {
        path: "/exact",
        bound: Bound::Total(4_000_000_000),
        policy: FailurePolicy::Closed,
    },
];
const SLOW_LIMITS: &str = "limits:
  - {name: hot, match: {path: /hot}, key: [user], rate: 4000000000/366d, algorithm: fixed-window, consistency: leased, on_store_failure: closed}
  - {name: exact, match: {path: /exact}, key: [user], rate: 4000000000/366d, algorithm: fixed-window, on_store_failure: closed}
  - {name: heal, match: {path: /heal}, key: [user], rate: 4000000000/366d, algorithm: fixed-window}
";

pub(in crate::scenario) fn slow(context: &Context) -> TrialResult {
    let (_redis, proxy, store) = proxied();
    let plan = Plan {
        paths: SLOW,
        pick: |n| LoadRequest {
            node: (n % 3) as usize,
            path: SLOW[(n / 3 % 2) as usize].path,
            user: 0,
            cost: 1,
        },
        store: format!("{store}, deadline: {}", context.pick("40ms", "25ms")),
        ..plan(context, &store, SLOW_LIMITS)
    };
    let mut trial = leasing(context, &plan);
    answer(&mut trial, 200);
    trial.mark_fault();
    let start_us = crate::clock::now_us();
    // Well over the deadline of a decision, but within the time of a call that no request waits
    // for.
    let latency = Duration::from_millis(context.pick(40, 50));
    proxy.set(Faults { latency, ..Faults::default() });
    trial.run_for(Duration::from_millis(context.pick(2_000, 10_000)));
    let end_us = crate::clock::now_us();
    proxy.set(Faults::default());
    trial.mark_cleared();
    let mut ended = trial.end().check_no_excess();
    let during = |one: &&Sample, path: &str| {
        (start_us..end_us).contains(&one.due_us) && one.ask.path == path
    };
    let count = |path: &str, without: bool| {
        let all = ended.samples.iter().filter(|one| during(one, path));
        all.filter(|one| !without || one.outcome.is_without_store()).count() as u64
    };
    let (hot, failed) = (count("/hot", false), count("/hot", true));
    let direct = count("/exact", true);
    ended.note("leased requests while it was slow", hot);
    ended.note("of them by policy", failed);
    ended.note("direct requests by policy", direct);
    ended.check("exact limits have to do without it", direct > 0);
    ended.check("most leased ones do not", failed * 2 <= hot);
    ended.check_timing("nineteen of twenty leased ones do not", failed * 20 <= hot);
    for (name, path) in [("p99 of leased, us", "/hot"), ("p99 of direct, us", "/exact")] {
        let p99 = percentile_us(&ended.samples, 99, |one| during(&one, path));
        ended.note(name, p99.unwrap_or(0));
    }
    ended
}

/// Checks the excess after a failover: writes that were acknowledged but not replicated, at most
/// one limit for each key.
fn after_failover(mut ended: TrialResult, counted: u64, most: u64) -> TrialResult {
    let over = ended.figures.over_admission.unwrap_or(u64::MAX);
    ended.check("over-admission within C2: one limit for each key", over <= most);
    ended.check("what was lost is counted as a rollback", over == 0 || counted > 0);
    ended.note("rollbacks", counted);
    let gap = ended.figures.recovery_us.take().unwrap_or(0);
    ended.note("write gap, ms", gap / 1_000);
    ended
}

pub(in crate::scenario) fn sentinel(context: &Context) -> TrialResult {
    let mut sentinels = Sentinels::start(1_000);
    let limits = limits("900/366d");
    let mut trial = leasing(context, &plan(context, &sentinels.store(), &limits));
    trial.mark_fault();
    sentinels.servers[0].kill();
    trial.run_for(Duration::from_millis(500));
    let followed = trial.is_healed();
    use_up(&mut trial);
    let counted = rollbacks(&trial);
    let mut ended = after_failover(trial.end().check_all_answered(), counted, USERS * LIMIT);
    ended.check("nodes follow the new primary", followed);
    ended
}

/// Enough users for every shard to have some.
const SPREAD: u64 = 12;
const EACH: u64 = 200;
const SPREAD_PATHS: &[LimitedPath] =
    &[LimitedPath { path: "/hot", bound: Bound::Total(EACH), policy: FailurePolicy::Closed }];

fn spread(context: &Context, cluster: &Cluster) -> Trial {
    spread_over(context, cluster, &limits("200/366d"), SPREAD_PATHS)
}

fn spread_over(context: &Context, cluster: &Cluster, limits: &str, paths: &[LimitedPath]) -> Trial {
    let plan = Plan {
        paths,
        pick: |n| LoadRequest {
            node: (n % 3) as usize,
            path: "/hot",
            user: (n / 3 % SPREAD) as u32,
            cost: 1,
        },
        ..plan(context, &cluster.store(), limits)
    };
    leasing(context, &plan)
}

fn use_up_spread(trial: &mut Trial) {
    let all = (SPREAD * EACH) as usize * 3 / 2;
    answer(trial, all.saturating_sub(trial.answered()) + 200);
}

pub(in crate::scenario) fn cluster_killed(context: &Context) -> TrialResult {
    let mut cluster = Cluster::start(Duration::from_secs(2));
    let mut trial = spread(context, &cluster);
    trial.mark_fault();
    cluster.servers[1].kill();
    trial.run_for(Duration::from_millis(500));
    let followed = trial.is_healed();
    use_up_spread(&mut trial);
    let counted = rollbacks(&trial);
    let mut ended = after_failover(trial.end().check_all_answered(), counted, SPREAD * EACH);
    ended.check("its replica takes over", followed);
    ended
}

/// The limit of a user, which is large enough for two failovers.
const LASTING: u64 = 2_000;
const LASTING_PATHS: &[LimitedPath] =
    &[LimitedPath { path: "/hot", bound: Bound::Total(LASTING), policy: FailurePolicy::Closed }];

pub(in crate::scenario) fn cluster_planned(context: &Context) -> TrialResult {
    let cluster = Cluster::start(Duration::from_secs(5));
    let limits = limits("2000/366d");
    let mut trial = spread_over(context, &cluster, &limits, LASTING_PATHS);
    answer(&mut trial, 200);
    let grace_periods = |trial: &Trial| sum(trial, "tollgate_lease_grace_periods_total");
    let before = grace_periods(&trial);
    trial.mark_fault();
    let took_over = [1, 2].into_iter().all(|primary| {
        let took_over = topology::fail_over(&cluster, &mut trial, cluster.replica_of(primary));
        answer(&mut trial, 200);
        took_over && trial.is_healed()
    });
    trial.mark_cleared();
    let (began, counted) = (grace_periods(&trial) - before, rollbacks(&trial));
    let mut ended = trial.end().check_no_excess();
    ended.check("each replica takes over in its turn", took_over);
    ended.check("the old primary proves that nothing was lost: no grace period", began == 0);
    ended.check("nothing was taken for lost", counted == 0);
    let refused = ended.figures.by_policy;
    ended.check_timing(
        "at most 1 % of the requests by policy",
        refused * 100 <= ended.figures.requests,
    );
    ended
}

pub(in crate::scenario) fn reshard(context: &Context) -> TrialResult {
    let cluster = Cluster::start(Duration::from_secs(5));
    let mut trial = spread(context, &cluster);
    trial.mark_fault();
    let slots = context.pick(200, 1_000);
    for (from, to) in [(0, 1), (1, 0)] {
        cluster.reshard(from, to, slots);
        trial.run_for(Duration::from_millis(100));
    }
    trial.mark_cleared();
    use_up_spread(&mut trial);
    let counted = rollbacks(&trial);
    let returned = sum(&trial, "tollgate_lease_returned_units_total");
    let mut ended = trial.end().check_no_excess();
    ended.check("nothing was taken for lost", counted == 0);
    ended.note("units returned", returned);
    ended
}
