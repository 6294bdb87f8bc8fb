//! Scenarios with leased limits.

mod accounts;
pub(crate) mod crash;
pub(crate) mod load;
mod store;

pub(super) use accounts::{fresh, paused, replies_lost, wiped};
pub(super) use crash::{frozen, killed, rolling_restart};
pub(super) use load::{halved, herd, skew, tiny};
pub(super) use store::{
    cluster_killed, cluster_planned, gone, replies_cut, reshard, sentinel, slow,
};

use crate::clock::wait_until;
use crate::load::{LoadRequest, Outcome};
use crate::node::Node;
use crate::oracle::Bound;
use crate::redis::Redis;
use crate::trial::{Context, FailurePolicy, LimitedPath, Plan, Trial, TrialResult};
use std::collections::BTreeMap;
use std::time::Duration;

/// The leased limit of a user.
const LIMIT: u64 = 900;
const USERS: u64 = 2;
const PATHS: &[LimitedPath] =
    &[LimitedPath { path: "/hot", bound: Bound::Total(LIMIT), policy: FailurePolicy::Closed }];
/// The most units that a node takes at once here: eight times its use in half a lifetime.
const CHUNK_MOST: u64 = 256;
/// The grace period.
const GRACE_PERIOD: Duration = Duration::from_millis(1_600);
const PATIENCE: Duration = Duration::from_secs(60);

fn url(redis: &Redis) -> String {
    format!("url: 'redis://127.0.0.1:{}/0'", redis.port())
}

/// Writes a file with a leased limit of this rate, and a limit that shows whether the store
/// decides.
fn limits(rate: &str) -> String {
    format!(
        "limits:
  - {{name: hot, match: {{path: /hot}}, key: [user], rate: {rate}, algorithm: fixed-window, consistency: leased, on_store_failure: closed}}
  - {{name: heal, match: {{path: /heal}}, key: [user], rate: 4000000000/366d, algorithm: fixed-window}}
"
    )
}

/// A plan with three nodes and a leased limit, which two users use up in some seconds.
fn plan<'a>(context: &Context, store: &str, limits: &'a str) -> Plan<'a> {
    Plan {
        limits,
        paths: PATHS,
        per_second: context.pick(400, 600),
        pick: |n| LoadRequest {
            node: (n % 3) as usize,
            path: "/hot",
            user: (n / 3 % USERS) as u32,
            cost: 1,
        },
        ..Plan::mixed(context, store)
    }
}

/// Starts nodes without load, and waits until their grace period is over.
fn known(context: &Context, plan: &Plan<'_>) -> Trial {
    let mut trial = Trial::cold(context, plan);
    assert!(trial.is_healed(), "the nodes find their store");
    trial.run_for(GRACE_PERIOD);
    trial
}

/// Starts nodes under load, and waits until each has a lease.
fn leasing(context: &Context, plan: &Plan<'_>) -> Trial {
    let mut trial = known(context, plan);
    trial.start_load(plan);
    let has_one = |node: &Node| wait_until(PATIENCE, || granted(node) > 0);
    assert!(trial.nodes.iter().all(has_one), "every node has a lease");
    trial
}

fn granted(node: &Node) -> u64 {
    node.metric("tollgate_lease_granted_units_total")
}

/// The sum of a metric over all nodes.
fn sum(trial: &Trial, metric: &str) -> u64 {
    trial.nodes.iter().map(|node| node.metric(metric)).sum()
}

fn rollbacks(trial: &Trial) -> u64 {
    sum(trial, "tollgate_lease_rollbacks_total")
}

/// Waits until this number of further requests is done.
fn answer(trial: &mut Trial, more: usize) {
    let enough = trial.answered() + more;
    assert!(wait_until(PATIENCE, || trial.answered() >= enough), "the load goes on");
}

/// Runs until every user has certainly been refused, and a little longer, so that returned units
/// are used.
fn use_up(trial: &mut Trial) {
    let users = USERS as usize;
    let rest = (users * LIMIT as usize * 3 / 2).saturating_sub(trial.answered());
    answer(trial, rest + 400);
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

/// Units of the limit that no request got.
fn unused(ended: &TrialResult, limit: u64) -> u64 {
    admitted(ended, "/hot").values().map(|count| limit.saturating_sub(*count)).sum()
}
