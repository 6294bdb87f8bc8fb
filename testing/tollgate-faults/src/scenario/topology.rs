//! Faults of Sentinel and Cluster.

use crate::clock::wait_until;
use crate::cluster::Cluster;
use crate::load::{LoadRequest, Sample};
use crate::measurements::percentile_us;
use crate::oracle::Bound;
use crate::redis::Redis;
use crate::sentinel::Sentinels;
use crate::trial::{Context, FailurePolicy, LimitedPath, Plan, Trial, TrialResult};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(crate) fn sentinel(context: &Context) -> TrialResult {
    let mut sentinels = Sentinels::start(1_000);
    let mut trial = Trial::start(context, &Plan::mixed(context, &sentinels.store()));
    trial.mark_fault();
    sentinels.servers[0].kill();
    trial.run_for(Duration::from_millis(500));
    let followed = trial.is_healed();
    let mut ended = trial.end().check_all_answered();
    ended.check("nodes follow the new primary", followed);
    // The excess may include writes that the old primary had acknowledged but not replicated, for
    // six users and their limits.
    let (over, gap) = (ended.figures.over_admission, ended.figures.recovery_us.unwrap_or(0));
    ended.check(
        "over-admission within C2: one limit for each key",
        over <= Some(6 * (60 + 30 + 10 + 8 + 6)),
    );
    ended.note("write gap, ms", gap / 1_000);
    ended.figures.recovery_us = None;
    let added = ended.figures.p99_added_us();
    ended.check_timing("p99 added <= 25 ms", added.is_none_or(|added| added <= 25_000));
    ended
}

pub(crate) fn sentinel_planned(context: &Context) -> TrialResult {
    let sentinels = Sentinels::start(10_000);
    let mut trial = Trial::start(context, &Plan::mixed(context, &sentinels.store()));
    let first = sentinels.servers[0].port();
    trial.mark_fault();
    sentinels.sentinels[0].run("SENTINEL FAILOVER store");
    // Waits until most sentinels name another primary, since nodes cannot know earlier.
    let named = |one: &Redis| {
        let said = format!("{:?}", one.run("SENTINEL GET-MASTER-ADDR-BY-NAME store"));
        !said.contains(&format!("\"{first}\"")) && !said.contains(&format!("'{first}'"))
    };
    let chosen = wait_until(Duration::from_secs(60), || {
        trial.run_for(Duration::from_millis(20));
        sentinels.sentinels.iter().filter(|one| named(one)).count() >= 2
    });
    trial.mark_cleared();
    let followed = trial.is_healed();
    let mut ended = trial.end().check_all_answered().check_budget();
    ended.check("the sentinels choose another primary", chosen);
    ended.check("nodes follow the new primary", followed);
    let over = ended.figures.over_admission;
    ended.check(
        "over-admission within C2: one limit for each key",
        over <= Some(6 * (60 + 30 + 10 + 8 + 6)),
    );
    ended
}

/// Many keys, so that every shard has some.
const SPREAD: &[LimitedPath] = &[
    LimitedPath { path: "/closed", bound: Bound::Total(30), policy: FailurePolicy::Closed },
    LimitedPath { path: "/open", bound: Bound::Total(4_000_000_000), policy: FailurePolicy::Open },
];
const SPREAD_LIMITS: &str = "limits:
  - {name: closed, match: {path: /closed}, key: [user], rate: 30/366d, algorithm: fixed-window, on_store_failure: closed}
  - {name: open, match: {path: /open}, key: [user], rate: 4000000000/366d, algorithm: gcra}
  - {name: heal, match: {path: /heal}, key: [user], rate: 4000000000/366d, algorithm: fixed-window}
";
const USERS: u64 = 60;

fn spread<'a>(context: &Context, cluster: &Cluster) -> Plan<'a> {
    Plan {
        limits: SPREAD_LIMITS,
        paths: SPREAD,
        per_second: context.pick(300, 600),
        pick: |n| LoadRequest {
            node: (n % 3) as usize,
            path: SPREAD[(n / USERS % 2) as usize].path,
            user: (n % USERS) as u32,
            cost: 1,
        },
        ..Plan::mixed(context, &cluster.store())
    }
}

/// Returns the users whose store the fault did not affect: it decided most of their requests. On a
/// busy machine, some may be late.
fn unaffected(ended: &TrialResult, trial_us: (u64, u64)) -> BTreeSet<u32> {
    let mut counts = BTreeMap::<u32, (u64, u64)>::new();
    for one in ended.samples.iter().filter(|one| (trial_us.0..trial_us.1).contains(&one.due_us)) {
        let (all, failed) = counts.entry(one.ask.user).or_default();
        *all += 1;
        *failed += u64::from(one.outcome.is_without_store());
    }
    counts
        .into_iter()
        .filter(|(_, (all, failed))| failed * 4 < *all)
        .map(|(user, _)| user)
        .collect()
}

pub(crate) fn cluster_killed(context: &Context) -> TrialResult {
    let mut cluster = Cluster::start(Duration::from_secs(2));
    let mut trial = Trial::start(context, &spread(context, &cluster));
    let start_us = crate::clock::now_us();
    trial.mark_fault();
    cluster.servers[1].kill();
    trial.run_for(Duration::from_millis(500));
    let followed = trial.is_healed();
    let end_us = crate::clock::now_us();
    let mut ended = trial.end().check_all_answered();
    ended.check("its replica takes over", followed);
    let over = ended.figures.over_admission;
    ended.check("over-admission within C2: one limit for each key", over <= Some(USERS * 30));
    let well = unaffected(&ended, (start_us, end_us)).len() as u64;
    ended.note("users of 60 who kept their store", well);
    ended.check_timing("the keys of other shards keep their store", well >= USERS / 2);
    let gap = ended.figures.recovery_us.take().unwrap_or(0);
    ended.note("write gap, ms", gap / 1_000);
    let added = ended.figures.p99_added_us();
    ended.check_timing("p99 added <= 25 ms", added.is_none_or(|added| added <= 25_000));
    ended
}

/// Runs `CLUSTER FAILOVER` at a replica. Returns whether the replica took over.
pub(crate) fn fail_over(cluster: &Cluster, trial: &mut Trial, replica: usize) -> bool {
    let server = &cluster.servers[replica];
    // Redis silently gives up a planned failover after five seconds, so the command is repeated.
    (0..8).any(|_| {
        let _ = server.try_run("CLUSTER FAILOVER");
        wait_until(Duration::from_secs(7), || {
            trial.run_for(Duration::from_millis(20));
            format!("{:?}", server.run("ROLE")).contains("master")
        })
    })
}

pub(crate) fn cluster_planned(context: &Context) -> TrialResult {
    let cluster = Cluster::start(Duration::from_secs(5));
    let mut trial = Trial::start(context, &spread(context, &cluster));
    // The failovers are in different shards: for a while, the cluster elects no second server of
    // one shard.
    let replicas = [1, 2].map(|primary| cluster.replica_of(primary));
    trial.mark_fault();
    let took_over = replicas
        .into_iter()
        .all(|replica| fail_over(&cluster, &mut trial, replica) && trial.is_healed());
    trial.mark_cleared();
    let mut ended = trial.end().check_no_excess().check_budget();
    ended.check("each replica takes over in its turn", took_over);
    ended
}

pub(crate) fn reshard(context: &Context) -> TrialResult {
    let cluster = Cluster::start(Duration::from_secs(5));
    // Without EVAL_RO, this server gets a call for each slot, like a server before Redis 7.
    cluster.servers[1].run("ACL SETUSER default -eval_ro");
    let mut plan = spread(context, &cluster);
    plan.store = format!("{}, deadline: {}", cluster.store(), context.pick("10s", "1s"));
    let mut trial = Trial::start(context, &plan);
    trial.mark_fault();
    let slots = context.pick(200, 1_000);
    for (from, to) in [(0, 1), (1, 0)] {
        cluster.reshard(from, to, slots);
        trial.run_for(Duration::from_millis(100));
    }
    trial.mark_cleared();
    let left = |path: &str, user: u64| {
        let body = crate::node::body(&user.to_string(), path, 1);
        let answer = crate::http::ask(trial.nodes[0].http, "/v1/peek", Some(&body));
        let body = answer.map(|answer| answer.body).unwrap_or_default();
        let rest = body.split("\"remaining\":").nth(1).map(str::trim_start).unwrap_or_default();
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
    };
    let all_used = (0..USERS).all(|user| left("/closed", user) == Some(0));
    let mut ended = trial.end().check_no_excess().check_budget();
    let seen = ended.figures.by_policy;
    ended.check("no caller sees it", seen == 0);
    let admitted = |path: &str| {
        let of_path = |one: &&Sample| one.ask.path == path;
        let admitted = |one: &&Sample| one.outcome == crate::load::Outcome::Admitted;
        ended.samples.iter().filter(of_path).filter(admitted).count() as u64
    };
    // Each user sent more than thirty requests by then, so every counted unit must have been
    // admitted.
    let asked = ended.samples.len() as u64 / USERS / 2;
    let single = !all_used || asked < 31 || admitted("/closed") == USERS * 30;
    ended.check("each request is counted once", single);
    ended
}

pub(crate) fn majority_lost(context: &Context) -> TrialResult {
    let mut cluster = Cluster::start(Duration::from_secs(15));
    let lost: Vec<_> = [1, 2].into_iter().flat_map(|n| [n, cluster.replica_of(n)]).collect();
    let mut trial = Trial::start(context, &spread(context, &cluster));
    let start_us = crate::clock::now_us();
    trial.mark_fault();
    lost.iter().for_each(|server| cluster.servers[*server].kill());
    trial.run_for(Duration::from_millis(context.pick(2_000, 10_000)));
    let end_us = crate::clock::now_us();
    lost.iter().for_each(|server| cluster.servers[*server].restart());
    trial.mark_cleared();
    let mut ended = trial.end().check_all_answered();
    let well = unaffected(&ended, (start_us, end_us));
    ended.note("users of 60 who kept their store", well.len() as u64);
    ended.check_timing(
        "the keys of the shard that is left keep their store",
        well.len() as u64 >= USERS / 6,
    );
    let during =
        |one: &Sample| (start_us..end_us).contains(&one.due_us) && well.contains(&one.ask.user);
    let p99 = percentile_us(&ended.samples, 99, during);
    ended.note("p99 of those, us", p99.unwrap_or(0));
    // The servers restart without data.
    let over = ended.figures.over_admission;
    ended.check("over-admission: one limit for each lost key at most", over <= Some(USERS * 30));
    let recovered = ended.figures.recovery_us;
    ended.check_timing("p99 of those <= 25 ms", p99.is_some_and(|p99| p99 <= 25_000));
    ended.note("recovery, ms", recovered.unwrap_or(0) / 1_000);
    ended
}
