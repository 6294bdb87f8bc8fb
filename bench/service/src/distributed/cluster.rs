//! Compares clusters with one server: calls over all slots of a primary, and one call per slot.

use super::{REDIS, Turn, column, runner, turn};
use crate::contender::Programs;
use crate::redis::Redis;
use crate::table::{median, ratio, spread, verdict};
use crate::turns::{Runner, interleave};
use crate::{Effort, LOAD_CORE};
use std::error::Error;
use std::process::{Command, Stdio};

const THREE: &str = "a cluster of three";
const SIX: &str = "a cluster of six";
const BY_SLOT: &str = "a cluster of three, a call for each slot";
/// Requests in flight per primary of three, with the target for the store's time. Some requests are
/// with the clients or the node, so calls have fewer.
const IN_FLIGHT: [(usize, f64); 4] = [(16, 0.55), (32, 0.55), (64, 0.45), (200, 0.45)];
const NODE_TARGET: f64 = 1.3;
const SPEED_TARGET: f64 = 1.5;

/// Prints the tables.
pub(super) fn report(
    programs: &Programs,
    one: &str,
    redis: &Redis,
    effort: Effort,
) -> Result<(), Box<dyn Error>> {
    let (three, six, by_slot) = (cluster(3)?, cluster(6)?, cluster(3)?);
    for server in &by_slot {
        // Then a node detects that it cannot call scripts over several slots.
        server.connect()?.ask(&[b"ACL", b"SETUSER", b"default", b"-eval_ro"])?;
    }
    let runners = [
        runner(programs, REDIS, one)?,
        runner(programs, BY_SLOT, &addresses(&by_slot))?,
        runner(programs, THREE, &addresses(&three))?,
        runner(programs, SIX, &addresses(&six))?,
    ];
    let stores: [&[Redis]; 4] = [std::slice::from_ref(redis), &by_slot, &three, &six];
    for (in_flight, target) in IN_FLIGHT {
        let run = |runner: &Runner| {
            let place = runners.iter().position(|one| std::ptr::eq(one, runner)).unwrap_or(0);
            let (nodes, count) = ([&runner.server], effort.requests / 3);
            turn(&nodes, stores[place], &runner.requests, 3 * in_flight, count)
        };
        interleave(&runners, 1, run)?;
        let figures = interleave(&runners, effort.rounds, run)?;
        print(&runners, &figures, in_flight, target);
    }
    Ok(())
}

fn print(runners: &[Runner], figures: &[Vec<Turn>], in_flight: usize, target: f64) {
    println!(
        "\n### Clusters, gcra, {} in flight over HTTP: {in_flight} a primary of three\n",
        3 * in_flight
    );
    println!(
        "| store | decisions a call | store, us a decision | spread | of a call each | target | | node, us a request | spread | of one server | target | | load, us a request | k/s allowed | of a call each | target | | k/s | of a call each |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let of = |n: usize, figure: fn(&Turn) -> f64| column(&figures[n], figure);
    for (n, runner) in runners.iter().enumerate() {
        let judged = runner.contender.name == THREE;
        let cells = |reached: f64, target: f64| {
            if judged { verdict(reached, target, "") } else { " | ".to_owned() }
        };
        let to = |base: usize, figure: fn(&Turn) -> f64| ratio(&of(n, figure), &of(base, figure));
        let (store, node) = (to(1, |turn| turn.store_us), to(0, |turn| turn.node_us));
        let speed = to(1, Turn::allowed_k_per_s);
        let fast = match (judged, speed >= SPEED_TARGET) {
            (false, _) => " | ".to_owned(),
            (true, met) => format!(">= {SPEED_TARGET} | {}", if met { "met" } else { "missed" }),
        };
        println!(
            "| {} | {:.1} | {:.2} | {} | {store:.2} | {} | {:.1} | {} | {node:.2} | {} | {:.1} | {:.1} | {speed:.2} | {fast} | {:.1} | {:.2} |",
            runner.contender.name,
            median(&of(n, |turn| turn.batch)),
            median(&of(n, |turn| turn.store_us)),
            spread(&of(n, |turn| turn.store_us), 2),
            cells(store, target),
            median(&of(n, |turn| turn.node_us)),
            spread(&of(n, |turn| turn.node_us), 1),
            cells(node, NODE_TARGET),
            median(&of(n, |turn| turn.load_us)),
            median(&of(n, Turn::allowed_k_per_s)),
            median(&of(n, |turn| turn.k_per_s)),
            to(1, |turn| turn.k_per_s),
        );
    }
}

/// Starts primaries that share the slots.
fn cluster(primaries: usize) -> Result<Vec<Redis>, Box<dyn Error>> {
    let start = |_| Redis::start(LOAD_CORE, &["--cluster-enabled", "yes"]);
    let servers: Vec<Redis> = (0..primaries).map(start).collect::<Result<_, _>>()?;
    let mut create = Command::new("redis-cli");
    create.args(["--cluster", "create"]).stdin(Stdio::null()).stdout(Stdio::null());
    create.args(servers.iter().map(|server| format!("127.0.0.1:{}", server.port)));
    if !create.arg("--cluster-yes").status()?.success() {
        return Err("redis-cli could not make a cluster".into());
    }
    servers.iter().try_for_each(Redis::until_cluster_ok)?;
    Ok(servers)
}

fn addresses(cluster: &[Redis]) -> String {
    let names: Vec<_> =
        cluster.iter().map(|server| format!("'127.0.0.1:{}'", server.port)).collect();
    format!("cluster: [{}]", names.join(", "))
}
