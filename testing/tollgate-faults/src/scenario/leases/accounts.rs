//! Leased limits of each algorithm on a store that is new, emptied, paused or loses replies: no
//! excess, and each granted unit accounted for.

use super::store::proxied;
use super::{PATIENCE, admitted, answer, known, rollbacks, sum, url};
use crate::clock::wait_until;
use crate::load::LoadRequest;
use crate::node::Node;
use crate::oracle::Bound;
use crate::proxy::Faults;
use crate::redis::Redis;
use crate::trial::{Context, FailurePolicy, LimitedPath, Plan, Trial, TrialResult};
use std::time::Duration;

/// The limit of each key.
const LIMIT: u64 = 1_000;
const ALGORITHMS: [(&str, &str); 4] = [
    ("/fixed", "fixed-window"),
    ("/sliding", "sliding-window"),
    ("/gcra", "gcra"),
    ("/token", "token-bucket"),
];

const fn path(index: usize, policy: FailurePolicy) -> LimitedPath {
    LimitedPath { path: ALGORITHMS[index].0, bound: Bound::Total(LIMIT), policy }
}

const fn paths(policy: FailurePolicy) -> [LimitedPath; 4] {
    [path(0, policy), path(1, policy), path(2, policy), path(3, policy)]
}

const OPEN_PATHS: &[LimitedPath] = &paths(FailurePolicy::Open);
const CLOSED_PATHS: &[LimitedPath] = &paths(FailurePolicy::Closed);

/// Writes a leased limit of each algorithm. Without `on_store_failure`, the default applies.
fn limits(on_store_failure: &str) -> String {
    let limit = |(path, algorithm): &(&str, &str)| {
        format!(
            "  - {{name: {algorithm}, match: {{path: {path}}}, key: [user], rate: {LIMIT}/366d, algorithm: {algorithm}, consistency: leased{on_store_failure}}}\n"
        )
    };
    let all: String = ALGORITHMS.iter().map(limit).collect();
    format!(
        "limits:\n{all}  - {{name: heal, match: {{path: /heal}}, key: [user], rate: 4000000000/366d, algorithm: fixed-window}}\n"
    )
}

const CLOSED: &str = ", on_store_failure: closed";

/// A plan with two nodes, and one user for each algorithm.
fn plan<'a>(context: &Context, store: &str, limits: &'a str, paths: &'a [LimitedPath]) -> Plan<'a> {
    Plan {
        nodes: 2,
        limits,
        paths,
        per_second: context.pick(600, 1_000),
        pick: |n| LoadRequest {
            node: (n % 2) as usize,
            path: ALGORITHMS[(n / 2 % 4) as usize].0,
            user: 0,
            cost: 1,
        },
        ..Plan::mixed(context, store)
    }
}

/// Whether each granted unit of a node is spent, returned, stranded or held.
fn is_balanced(node: &Node) -> bool {
    // All values come from one response, since the load goes on.
    let text = node.get("/metrics").map(|answer| answer.body).unwrap_or_default();
    let units = |name: &str| -> u64 {
        let of =
            |line: &str| line.strip_prefix("tollgate_lease_")?.strip_prefix(name)?.parse().ok();
        text.lines().find_map(of).unwrap_or(0)
    };
    let ended = ["spent_units_total ", "returned_units_total ", "stranded_units_total "];
    let granted = units("granted_units_total ");
    granted > 0 && granted == ended.map(units).iter().sum::<u64>() + units("held_units ")
}

fn check_accounts(trial: &Trial) -> bool {
    trial.nodes.iter().all(|node| wait_until(PATIENCE, || is_balanced(node)))
}

/// Runs until every key has certainly been refused, and a little longer, so that returned units are
/// used.
fn use_up(trial: &mut Trial) {
    answer(trial, ALGORITHMS.len() * LIMIT as usize * 5 / 4);
}

/// The most units of a key that no request got.
fn unused(ended: &TrialResult) -> u64 {
    let left = |(path, _): &(&str, &str)| {
        LIMIT.saturating_sub(admitted(ended, path).values().sum::<u64>())
    };
    ALGORITHMS.iter().map(left).max().unwrap_or(LIMIT)
}

pub(in crate::scenario) fn fresh(context: &Context) -> TrialResult {
    let (redis, limits) = (Redis::listen(&[]), limits(""));
    let plan = plan(context, &url(&redis), &limits, OPEN_PATHS);
    let mut trial = Trial::cold(context, &plan);
    assert!(trial.is_healed(), "the nodes find their store");
    // The load starts before the end of the grace period.
    trial.start_load(&plan);
    let told = wait_until(PATIENCE, || sum(&trial, "tollgate_lease_grace_periods_total") >= 2);
    let logged =
        wait_until(PATIENCE, || trial.nodes.iter().all(|one| one.logged("grace period") > 0));
    use_up(&mut trial);
    let mut ended = trial.end().check_no_excess();
    ended.check("each node counts the grace period", told);
    ended.check("each node logs it", logged);
    let by_policy = ended.figures.by_policy;
    ended.check("the store decides: nothing is passed by policy", by_policy == 0);
    let unused = unused(&ended);
    ended.note("units of a key that nobody got", unused);
    ended.check("the limit is used up", unused <= LIMIT / 10);
    ended
}

pub(in crate::scenario) fn wiped(context: &Context) -> TrialResult {
    let (redis, limits) = (Redis::listen(&[]), limits(CLOSED));
    let plan = plan(context, &url(&redis), &limits, CLOSED_PATHS);
    let mut trial = known(context, &plan);
    trial.start_load(&plan);
    answer(&mut trial, 400);
    trial.mark_fault();
    let wipes = context.pick(3, 8);
    for _ in 0..wipes {
        redis.run("FLUSHALL");
        // Runs through the grace period, and some decisions after it.
        trial.run_for(super::GRACE_PERIOD + Duration::from_millis(300));
        answer(&mut trial, 100);
    }
    let counted = wait_until(PATIENCE, || rollbacks(&trial) > 0);
    trial.mark_cleared();
    use_up(&mut trial);
    let (seen, balanced) = (rollbacks(&trial), check_accounts(&trial));
    let mut ended = trial.end().check_no_excess();
    ended.check("tollgate_lease_rollbacks_total counts it", counted);
    ended.note("rollbacks", seen);
    ended.check("granted = spent + returned + stranded + held", balanced);
    let unused = unused(&ended);
    ended.note("units of a key that nobody got", unused);
    ended.check("no key is locked out", unused <= LIMIT / 4);
    ended.figures.recovery_us = None;
    ended
}

/// Disturbs the store while nodes request and return units.
fn account_for(context: &Context, trial: &mut Trial, mut disturb: impl FnMut(&mut Trial)) -> bool {
    answer(trial, 200);
    trial.mark_fault();
    for _ in 0..context.pick(2, 5) {
        disturb(trial);
        trial.run_for(Duration::from_millis(300));
    }
    trial.mark_cleared();
    use_up(trial);
    check_accounts(trial)
}

pub(in crate::scenario) fn paused(context: &Context) -> TrialResult {
    let (redis, limits) = (Redis::listen(&[]), limits(CLOSED));
    let plan = plan(context, &url(&redis), &limits, CLOSED_PATHS);
    let mut trial = known(context, &plan);
    trial.start_load(&plan);
    let balanced = account_for(context, &mut trial, |trial| {
        redis.run("CLIENT PAUSE 1200");
        trial.run_for(Duration::from_millis(1_300));
    });
    judge_accounts(trial, balanced)
}

pub(in crate::scenario) fn replies_lost(context: &Context) -> TrialResult {
    let (_redis, proxy, store) = proxied();
    let limits = limits(CLOSED);
    let plan = plan(context, &store, &limits, CLOSED_PATHS);
    let mut trial = known(context, &plan);
    trial.start_load(&plan);
    let balanced = account_for(context, &mut trial, |trial| {
        proxy.set(Faults { lost_replies: 50, ..Faults::default() });
        trial.run_for(Duration::from_millis(1_500));
        proxy.set(Faults::default());
    });
    judge_accounts(trial, balanced)
}

fn judge_accounts(trial: Trial, balanced: bool) -> TrialResult {
    let stranded = sum(&trial, "tollgate_lease_stranded_units_total");
    let mut ended = trial.end().check_no_excess();
    ended.check("granted = spent + returned + stranded + held", balanced);
    ended.note("stranded units", stranded);
    let unused = unused(&ended);
    ended.note("units of a key that nobody got", unused);
    ended.figures.recovery_us = None;
    ended
}
