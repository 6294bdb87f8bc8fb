//! Fault scenarios: each is an entry in `ROWS` and a function.

mod clocks;
mod leases;
mod network;
mod nodes;
pub(crate) mod redis_server;
mod surroundings;
pub(crate) mod topology;

use crate::trial::{Context, TrialResult};

/// A fault, and the expected behaviour of the nodes.
#[derive(Clone, Copy, Debug)]
pub struct FaultScenario {
    /// The name, for `--row`.
    pub name: &'static str,
    /// The fault.
    pub injected: &'static str,
    /// The expectation.
    pub expected: &'static str,
    /// Runs the scenario.
    pub run: fn(&Context) -> TrialResult,
}

/// The scenario with this name.
pub fn find(name: &str) -> Option<&'static FaultScenario> {
    ROWS.iter().find(|row| row.name == name)
}

/// All scenarios.
pub const ROWS: &[FaultScenario] = &[
    FaultScenario {
        name: "gone",
        injected: "SIGKILL to the server, which has an append-only file, 60 s, restart",
        expected: "`on_store_failure` decides, named in header and metric; one log line for each change; over-admission 0",
        run: redis_server::gone,
    },
    FaultScenario {
        name: "forgetful",
        injected: "SIGKILL to a server that keeps nothing, 2 s, restart",
        expected: "at most one more limit for each key",
        run: redis_server::forgetful,
    },
    FaultScenario {
        name: "stopped",
        injected: "SIGSTOP to the server, 10 s",
        expected: "as without a server; nothing piles up",
        run: redis_server::stopped,
    },
    FaultScenario {
        name: "evicting",
        injected: "`allkeys-lru`, 3 MB, and filler keys",
        expected: "a warning at the start; at most one more limit for each evicted key",
        run: redis_server::evicting,
    },
    FaultScenario {
        name: "full",
        injected: "`maxmemory 1` for 4 s",
        expected: "as without a server, named in header and metric",
        run: redis_server::full,
    },
    FaultScenario {
        name: "credentials",
        injected: "the user's password changes and its connections are closed, 4 s, then back",
        expected: "as without a server; `rejected` in the metric; healed by itself",
        run: redis_server::credentials,
    },
    FaultScenario {
        name: "scripts-wiped",
        injected: "SCRIPT FLUSH every 100 ms",
        expected: "no caller sees it",
        run: redis_server::scripts_wiped,
    },
    FaultScenario {
        name: "neighbour",
        injected: "KEYS * over 5M keys in a loop",
        expected: "nobody waits longer than the deadline; over-admission 0",
        run: redis_server::neighbour,
    },
    FaultScenario {
        name: "return",
        injected: "60 s without a server, 10,000 active keys",
        expected: "at most twice the calls of before when the server is back",
        run: redis_server::comes_back,
    },
    FaultScenario {
        name: "clock-leap",
        injected: "the server's clock an hour ahead for 2 s; a limit of each algorithm",
        expected: "at most one more limit for each key; every key is admitted again within 3 s; each leap is logged and counted",
        run: clocks::leap,
    },
    FaultScenario {
        name: "clock-behind",
        injected: "the server's clock 30 s back for good; a limit of each algorithm",
        expected: "over-admission 0; every key is admitted again within 3 s; logged and counted",
        run: clocks::behind,
    },
    FaultScenario {
        name: "slow",
        injected: "the proxy delays everything by 50 ms, 10 s",
        expected: "as without a server",
        run: network::slow,
    },
    FaultScenario {
        name: "slow-some",
        injected: "the proxy delays 5 % of the pieces by 500 ms, with 2 ms of jitter, 10 s",
        expected: "nobody waits longer than the deadline; over-admission 0",
        run: network::slow_some,
    },
    FaultScenario {
        name: "connect-hangs",
        injected: "nodes start while no connection to the store is established; then connections, but no answers; then answers",
        expected: "nodes start, answer by policy, and say so on /readyz; few attempts",
        run: network::connect_hangs,
    },
    FaultScenario {
        name: "replies-cut",
        injected: "requests arrive, replies do not, 3 s",
        expected: "a request may count without an answer; over-admission 0",
        run: network::replies_cut,
    },
    FaultScenario {
        name: "requests-cut",
        injected: "replies arrive, requests do not, 3 s",
        expected: "as without a server",
        run: network::requests_cut,
    },
    FaultScenario {
        name: "reset",
        injected: "all connections are reset, ten times a second, 5 s",
        expected: "every request answered; over-admission 0, no call repeated",
        run: network::reset,
    },
    FaultScenario {
        name: "sliced",
        injected: "the proxy passes on 3 bytes at a time",
        expected: "no caller sees it",
        run: network::sliced,
    },
    FaultScenario {
        name: "big-reply",
        injected: "replies of 10 MB to tier lookups, 10 s",
        expected: "decisions do not wait for it",
        run: network::big_reply,
    },
    FaultScenario {
        name: "sentinel",
        injected: "3 sentinels, 2 replicas, SIGKILL to the primary",
        expected: "nodes follow; at most what was not replicated is admitted again",
        run: topology::sentinel,
    },
    FaultScenario {
        name: "sentinel-planned",
        injected: "3 sentinels, 2 replicas, SENTINEL FAILOVER",
        expected: "nodes follow within a second; at most what the old primary counted meanwhile is admitted again",
        run: topology::sentinel_planned,
    },
    FaultScenario {
        name: "cluster-killed",
        injected: "6 servers, node-timeout 2 s, SIGKILL to a primary",
        expected: "its replica takes over; only its keys lack a store until then",
        run: topology::cluster_killed,
    },
    FaultScenario {
        name: "cluster-planned",
        injected: "6 servers, CLUSTER FAILOVER at the replica of one shard, then of another",
        expected: "nodes follow; over-admission 0",
        run: topology::cluster_planned,
    },
    FaultScenario {
        name: "reshard",
        injected: "1,000 slots move there and back, between a server with calls over several slots and one without",
        expected: "nodes follow; each request counted once",
        run: topology::reshard,
    },
    FaultScenario {
        name: "majority-lost",
        injected: "SIGKILL to 2 of 3 shards, 10 s, restart (node-timeout 15 s)",
        expected: "only their keys lack a store",
        run: topology::majority_lost,
    },
    FaultScenario {
        name: "herd",
        injected: "10 nodes start cold on one hot key",
        expected: "exactly the limit is admitted; no more calls than requests",
        run: nodes::herd,
    },
    FaultScenario {
        name: "tiny",
        injected: "limits of 1 to 5, 5 nodes",
        expected: "over-admission 0, under-admission 0",
        run: nodes::tiny,
    },
    FaultScenario {
        name: "rolling-restart",
        injected: "SIGTERM to one node after the other under load, each started again",
        expected: "every request answered; counts kept",
        run: nodes::rolling_restart,
    },
    FaultScenario {
        name: "reload",
        injected: "2 new files a second under load; one of them halves a limit",
        expected: "errors 0; excess over the new limit 0",
        run: nodes::reload,
    },
    FaultScenario {
        name: "log-unread",
        injected: "nobody reads the logs; SIGKILL to the server, restart",
        expected: "lines are dropped and counted; the breaker opens and closes; over-admission 0",
        run: surroundings::log_unread,
    },
    FaultScenario {
        name: "policy-cut",
        injected: "files that end before, within or right after `limits:`, a second each",
        expected: "the last good file stays in force; over-admission 0",
        run: surroundings::policy_cut,
    },
    FaultScenario {
        name: "resp-silent",
        injected: "1 node, 100 silent clients of the Redis protocol",
        expected: "each is closed at its deadline and counted",
        run: surroundings::resp_silent,
    },
    FaultScenario {
        name: "lease-killed",
        injected: "leased limit: SIGKILL to one node of three, ten times, each started again",
        expected: "over-admission 0; what a dead node held is lost",
        run: leases::killed,
    },
    FaultScenario {
        name: "lease-frozen",
        injected: "leased limit: SIGSTOP to one node for longer than its lease, ten times",
        expected: "over-admission 0",
        run: leases::frozen,
    },
    FaultScenario {
        name: "lease-rolling-restart",
        injected: "leased limit: SIGTERM to one node after the other under load, each started again",
        expected: "every request answered; what they held is returned and used",
        run: leases::rolling_restart,
    },
    FaultScenario {
        name: "lease-gone",
        injected: "leased limit: SIGKILL to the server, which has an append-only file, 20 s, restart",
        expected: "nodes spend what they hold, then refuse; over-admission 0",
        run: leases::gone,
    },
    FaultScenario {
        name: "lease-fresh",
        injected: "2 nodes, leased limits of four algorithms: load from the start on an empty server",
        expected: "over-admission 0: the server decides during the grace period, which is logged and counted",
        run: leases::fresh,
    },
    FaultScenario {
        name: "lease-wiped",
        injected: "2 nodes, leased limits of four algorithms: FLUSHALL, eight times",
        expected: "over-admission 0, no key locked out; a rollback is counted; each granted unit accounted for",
        run: leases::wiped,
    },
    FaultScenario {
        name: "lease-paused",
        injected: "2 nodes, leased limits of four algorithms: CLIENT PAUSE 1200, five times",
        expected: "over-admission 0; each granted unit is spent, returned, stranded or held",
        run: leases::paused,
    },
    FaultScenario {
        name: "lease-replies-lost",
        injected: "2 nodes, leased limits of four algorithms: 5 % of the replies are lost, each with its connection",
        expected: "over-admission 0; each granted unit is spent, returned, stranded or held",
        run: leases::replies_lost,
    },
    FaultScenario {
        name: "lease-replies-cut",
        injected: "leased limit: requests arrive and replies do not, 1 s, five times",
        expected: "over-admission 0; the next reply tells of a lost grant",
        run: leases::replies_cut,
    },
    FaultScenario {
        name: "lease-slow",
        injected: "the proxy delays everything by 50 ms, 10 s",
        expected: "exact limits decide by policy; leased ones hardly notice",
        run: leases::slow,
    },
    FaultScenario {
        name: "lease-sentinel",
        injected: "leased limit: 3 sentinels, 2 replicas, SIGKILL to the primary",
        expected: "nodes follow; at most what was not replicated is admitted again; a rollback is counted",
        run: leases::sentinel,
    },
    FaultScenario {
        name: "lease-cluster-killed",
        injected: "leased limit: 6 servers, node-timeout 2 s, SIGKILL to a primary",
        expected: "its replica takes over; at most what was not replicated is admitted again; a rollback is counted",
        run: leases::cluster_killed,
    },
    FaultScenario {
        name: "lease-cluster-planned",
        injected: "leased limit: 6 servers, CLUSTER FAILOVER at the replica of one shard, then of another",
        expected: "over-admission 0; no grace period",
        run: leases::cluster_planned,
    },
    FaultScenario {
        name: "lease-reshard",
        injected: "leased limit: 1,000 slots move there and back under load",
        expected: "over-admission 0",
        run: leases::reshard,
    },
    FaultScenario {
        name: "lease-skew",
        injected: "leased limit of 1,000/s: 90 % of 1,500 requests a second to one of 5 nodes",
        expected: "at least 97 % of the limit admitted, never more",
        run: leases::skew,
    },
    FaultScenario {
        name: "lease-herd",
        injected: "leased limit: 10 nodes start cold on one hot key",
        expected: "never more than the limit; no more calls than requests",
        run: leases::herd,
    },
    FaultScenario {
        name: "lease-tiny",
        injected: "leased limits of 1 to 5, 5 nodes",
        expected: "decided directly: over-admission 0, under-admission 0",
        run: leases::tiny,
    },
    FaultScenario {
        name: "lease-halved",
        injected: "leased limit: a new file halves it",
        expected: "excess over the new limit: outstanding leases at most",
        run: leases::halved,
    },
];
