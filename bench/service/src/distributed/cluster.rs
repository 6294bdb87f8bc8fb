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
/// Requests in flight per primary, of three primaries, with the target for the store's time. Some
/// requests are at the store or with the clients, so a call has fewer. With the largest number,
/// calls are full.
const IN_FLIGHT: [(usize, f64); 3] = [(16, 0.55), (64, 0.45), (200, 0.45)];
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
        "| store | node, us a request | spread | of one server | target | | store, us a decision | spread | of a call each | target | | decisions a call | k/s | of a call each | target | |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let node_us = |n: usize| column(&figures[n], |turn| turn.node_us);
    let store_us = |n: usize| column(&figures[n], |turn| turn.store_us);
    let k_per_s = |n: usize| column(&figures[n], |turn| turn.k_per_s);
    for (n, runner) in runners.iter().enumerate() {
        let judged = runner.contender.name == THREE;
        let cells = |reached: f64, target: f64| {
            if judged { verdict(reached, target, "") } else { " | ".to_owned() }
        };
        let (node, store) = (ratio(&node_us(n), &node_us(0)), ratio(&store_us(n), &store_us(1)));
        let slower = ratio(&k_per_s(1), &k_per_s(n));
        println!(
            "| {} | {:.1} | {} | {node:.2} | {} | {:.2} | {} | {store:.2} | {} | {:.1} | {:.1} | {:.2} | {} |",
            runner.contender.name,
            median(&node_us(n)),
            spread(&node_us(n), 1),
            cells(node, NODE_TARGET),
            median(&store_us(n)),
            spread(&store_us(n), 2),
            cells(store, target),
            median(&column(&figures[n], |turn| turn.batch)),
            median(&k_per_s(n)),
            1.0 / slower,
            if judged {
                let met = if 1.0 / slower >= SPEED_TARGET { "met" } else { "missed" };
                format!(">= {SPEED_TARGET} | {met}")
            } else {
                " | ".into()
            },
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
    let done = create.arg("--cluster-yes").status()?;
    match done.success() {
        true => Ok(servers),
        false => Err("redis-cli could not make a cluster".into()),
    }
}

fn addresses(cluster: &[Redis]) -> String {
    let names: Vec<_> =
        cluster.iter().map(|server| format!("'127.0.0.1:{}'", server.port)).collect();
    format!("cluster: [{}]", names.join(", "))
}
