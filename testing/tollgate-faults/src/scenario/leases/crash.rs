//! Nodes that hold leases crash and restart.

use super::{CHUNK_MOST, LIMIT, USERS, answer, leasing, limits, plan, sum, unused, url, use_up};
use crate::load::{LoadRequest, Outcome};
use crate::oracle::Bound;
use crate::redis::Redis;
use crate::trial::{Context, FailurePolicy, LimitedPath, Plan, TrialResult};
use std::time::Duration;

pub(in crate::scenario) fn killed(context: &Context) -> TrialResult {
    let (redis, limits) = (Redis::listen(&[]), limits("900/366d"));
    let mut trial = leasing(context, &plan(context, &url(&redis), &limits));
    trial.mark_fault();
    let kills = context.pick(2, 10);
    for turn in 0..kills {
        let node = turn % 3;
        trial.nodes[node].kill();
        trial.run_for(Duration::from_millis(context.pick(100, 300)));
        trial.nodes[node].restart();
        answer(&mut trial, context.pick(60, 120));
    }
    trial.mark_cleared();
    use_up(&mut trial);
    let mut ended = trial.end();
    ended.figures.rss_growth_kib = None;
    let over = ended.figures.over_admission;
    ended.check("over-admission 0", over == Some(0));
    let (errors, lost) = (ended.figures.errors, ended.figures.lost);
    ended.check("errors 0; no request lost but those under way when a node was killed", {
        errors == 0 && lost <= 50 * kills as u64
    });
    // A lost request may have been admitted.
    let gone = unused(&ended, LIMIT).saturating_sub(lost);
    ended.note("units lost with their nodes", gone);
    ended.check("under-admission: a chunk for each key and kill at most", {
        gone <= kills as u64 * USERS * CHUNK_MOST
    });
    ended
}

const WINDOWS: &[LimitedPath] = &[LimitedPath {
    path: "/hot",
    bound: Bound::Window { limit: 150, window_us: 1_000_000 },
    policy: FailurePolicy::Closed,
}];

pub(in crate::scenario) fn frozen(context: &Context) -> TrialResult {
    let (redis, limits) = (Redis::listen(&[]), limits("150/s"));
    let plan = Plan { paths: WINDOWS, ..plan(context, &url(&redis), &limits) };
    let mut trial = leasing(context, &plan);
    trial.mark_fault();
    for turn in 0..context.pick(2, 10) {
        let process = trial.nodes[turn % 3].process();
        process.signal("STOP");
        // Longer than a lease, so that the lease ends in another window.
        std::thread::sleep(Duration::from_millis(1_300));
        process.signal("CONT");
        answer(&mut trial, 300);
    }
    trial.mark_cleared();
    let mut ended = trial.end().check_no_excess();
    let waited = ended.samples.iter().filter(|one| one.received_us - one.sent_us > 1_000_000);
    let waited = waited.count() as u64;
    ended.check("requests waited for the frozen node", waited > 0);
    let spent = ended.samples.iter().any(|one| one.outcome == Outcome::Refused);
    ended.check("the limit was in force", spent);
    ended
}

pub(in crate::scenario) fn rolling_restart(context: &Context) -> TrialResult {
    let (redis, limits) = (Redis::listen(&[]), limits("900/366d"));
    let plan = Plan {
        // Each user mostly uses one node, so that much of the remaining lease is in one place.
        pick: |n| LoadRequest {
            node: if n % 5 == 0 { (n / 5 % 3) as usize } else { (n % USERS) as usize },
            path: "/hot",
            user: (n % USERS) as u32,
            cost: 1,
        },
        ..plan(context, &url(&redis), &limits)
    };
    let mut trial = leasing(context, &plan);
    let mut ended_well = true;
    trial.mark_fault();
    for node in (0..3).cycle().take(context.pick(3, 9)) {
        ended_well &= trial.nodes[node].end();
        trial.nodes[node].restart();
        answer(&mut trial, context.pick(40, 150));
    }
    trial.mark_cleared();
    use_up(&mut trial);
    let held = sum(&trial, "tollgate_lease_held_units");
    let mut ended = trial.end().check_no_excess();
    ended.figures.rss_growth_kib = None;
    ended.check("every node drained and ended with status 0", ended_well);
    let stranded = unused(&ended, LIMIT);
    ended.note("stranded units", stranded);
    ended.check("what ended nodes held was returned and used, to the unit", stranded <= held);
    ended
}
