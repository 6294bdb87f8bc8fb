//! Faults around a node: its log, its file, its clients.

use super::redis_server::url;
use crate::clock::wait_until;
use crate::node::Node;
use crate::redis::{Redis, free_port};
use crate::trial::{Context, MIXED, Plan, Trial, TrialResult};
use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Nobody reads the log while the server is killed and restarted.
pub(super) fn log_unread(context: &Context) -> TrialResult {
    let mut redis = Redis::listen(&["--appendonly", "yes", "--appendfsync", "no"]);
    let plan = Plan::mixed(context, &url(&redis));
    let mut trial = Trial::start(context, &plan);
    trial.mark_fault();
    let logs: Vec<_> = trial.nodes.iter().map(Node::hold_log).collect();
    // The error messages for this file exceed the size of a pipe.
    let broken: String =
        (0..2_000).map(|n| format!("unknown-{n}-{}: 1\n", "x".repeat(99))).collect();
    let is_dropped = |node: &Node| {
        node.process().signal("HUP");
        node.metric("tollgate_log_lines_dropped_total") > 0
    };
    let dropped = trial.nodes.iter().all(|node| {
        node.put(&broken);
        wait_until(PATIENCE, || is_dropped(node))
    });
    let breakers = |open: u64| {
        let is = |node: &Node| node.metric("tollgate_breaker_open") == open;
        trial.nodes.iter().all(|node| wait_until(PATIENCE, || is(node)))
    };
    redis.kill();
    let opened = breakers(1);
    redis.restart();
    let closed = breakers(0);
    drop(logs);
    trial.mark_cleared();
    let mut ended = trial.end().check_no_excess();
    ended.check("lines are dropped and counted", dropped);
    ended.check("the breaker opens and closes", opened && closed);
    ended
}

/// The file ends early, as while a program is writing it.
pub(super) fn policy_cut(context: &Context) -> TrialResult {
    let redis = Redis::listen(&[]);
    let plan = Plan::mixed(context, &url(&redis));
    let mut trial = Trial::start(context, &plan);
    let whole = plan.file();
    let limits = whole.len() - MIXED.len();
    let generations = |trial: &Trial| -> Vec<u64> {
        trial.nodes.iter().map(|node| node.metric("tollgate_policy_generation")).collect()
    };
    let before = generations(&trial);
    trial.mark_fault();
    // Cuts of the file: nothing, the store only, no limit, half a limit.
    for end in [0, limits, limits + "limits:\n".len(), limits + "limits:\n  - {name: tot".len()] {
        trial.nodes.iter().for_each(|node| node.put(&whole[..end]));
        trial.run_for(Duration::from_secs(1));
    }
    let kept = generations(&trial) == before;
    trial.nodes.iter().for_each(|node| node.put(&whole));
    trial.mark_cleared();
    let mut ended = trial.end().check_no_excess();
    ended.check("no part of the file goes live", kept);
    ended
}

/// Clients of the Redis protocol connect and send nothing.
pub(super) fn resp_silent(context: &Context) -> TrialResult {
    const CLIENTS: usize = 100;
    let redis = Redis::listen(&[]);
    let port = free_port();
    let limits = format!("listen: {{resp: '127.0.0.1:{port}'}}\n{MIXED}");
    let plan = Plan { nodes: 1, limits: &limits, ..Plan::mixed(context, &url(&redis)) };
    let plan =
        Plan { pick: |n| crate::load::LoadRequest { node: 0, ..(crate::trial::mixed)(n) }, ..plan };
    let mut trial = Trial::start(context, &plan);
    trial.mark_fault();
    let connect = |_| TcpStream::connect(("127.0.0.1", port)).expect("a node that listens");
    let mut clients: Vec<_> = (0..CLIENTS).map(connect).collect();
    let node = &trial.nodes[0];
    let closed =
        || node.metrics("tollgate_connections_closed_total{front=\"resp\",reason=\"expired\"}");
    let all = wait_until(PATIENCE, || closed() >= CLIENTS as u64);
    let ends = clients.iter_mut().all(|client| {
        let timeout = client.set_read_timeout(Some(PATIENCE));
        timeout.is_ok() && client.read(&mut [0; 64]).is_ok()
    });
    trial.mark_cleared();
    let mut ended = trial.end().check_no_excess();
    ended.check("every silent connection is closed and counted", all && ends);
    ended
}
