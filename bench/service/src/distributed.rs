//! Compares the check API on Redis with memory: processor time, throughput of one node and of
//! three, latency, and a cluster.

mod cluster;
mod latency;
pub(crate) mod leased;

use crate::contender::{Contender, Programs, USERS, Wants, serve};
use crate::load::Load;
use crate::process::{Program, Ready, SERVER_CORE, Server, cpu_ns};
use crate::redis::Redis;
use crate::table::{Rounds, median, ratio, spread, verdict};
use crate::turns::{Runner, interleave};
use crate::{Effort, LOAD_CORE};
use std::error::Error;
use std::net::SocketAddr;

const IN_FLIGHT: usize = 100;
const MEMORY: &str = "memory";
const REDIS: &str = "Redis";

/// The result of one turn.
struct Turn {
    /// Processor microseconds per request, of the node and of the store.
    node_us: f64,
    store_us: f64,
    /// Processor microseconds of the load itself, per request.
    load_us: f64,
    k_per_s: f64,
    /// Decisions per call.
    batch: f64,
}

impl Turn {
    /// The rate at which one of the two cores is busy: the node's, or that of load and stores.
    /// Unlike the measured rate, it does not depend on other processes.
    fn allowed_k_per_s(&self) -> f64 {
        1e3 / self.node_us.max(self.load_us + self.store_us)
    }
}

/// Prints all tables.
pub(crate) fn report(programs: &Programs, effort: Effort) -> Result<(), Box<dyn Error>> {
    let redis = Redis::start(LOAD_CORE, &[])?;
    let one = format!("url: 'redis://127.0.0.1:{}/0'", redis.port);
    cluster::report(programs, &one, &redis, effort)?;
    let runners = [runner(programs, MEMORY, "")?, runner(programs, REDIS, &one)?];
    let turn = |runner: &Runner| {
        let stores =
            if runner.contender.name == REDIS { std::slice::from_ref(&redis) } else { &[] };
        turn(&[&runner.server], stores, &runner.requests, IN_FLIGHT, effort.requests / 3)
    };
    interleave(&runners, 1, turn)?;
    let figures = interleave(&runners, effort.rounds, turn)?;
    print_nodes(&runners, &figures);
    three(programs, &one, &redis, &runners[1], effort)?;
    let k_per_s = median(&column(&figures[1], |turn| turn.k_per_s));
    drop(runners);
    latency::report(programs, k_per_s, effort)
}

fn runner(programs: &Programs, name: &'static str, store: &str) -> Result<Runner, Box<dyn Error>> {
    let limit = "  - {name: per-user, key: [user], algorithm: gcra, rate: 100000/min}\n";
    runner_of(programs, name, store, limit)
}

/// Starts a node on this store with this limit.
fn runner_of(
    programs: &Programs,
    name: &'static str,
    store: &str,
    limit: &str,
) -> Result<Runner, Box<dyn Error>> {
    let listen = "listen: {http: \"127.0.0.1:0\", admin: \"127.0.0.1:0\"}\n";
    // If the store fails to decide, the request is refused, which ends the measurement.
    let store = match store {
        "" => String::new(),
        store => format!("on_store_failure: closed\nstore: {{redis: {{{store}, deadline: 1s}}}}\n"),
    };
    let file = format!("{}.yaml", name.replace(' ', "-"));
    let arguments = serve(&file, &format!("{listen}{store}limits:\n{limit}"))?;
    let path = programs.ours.to_string_lossy().into_owned();
    let program = Program { path, arguments, ready: Ready::Line };
    let contender = Contender { name, program, wants: Wants::Check };
    let server = Server::start(&contender.program)?;
    let requests = contender.wants.requests();
    Ok(Runner { contender, server, requests })
}

fn calls(stores: &[Redis]) -> Result<f64, Box<dyn Error>> {
    let mut all = 0.0;
    for store in stores {
        let info = store.connect()?.ask(&[b"INFO", b"commandstats"])?;
        let info = String::from_utf8_lossy(&info).into_owned();
        let line = info.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        let calls = line.and_then(|line| line.split(',').next()?.parse::<f64>().ok());
        all += calls.unwrap_or(0.0);
    }
    Ok(all)
}

fn turn(
    nodes: &[&Server],
    stores: &[Redis],
    requests: &[Vec<u8>],
    in_flight: usize,
    count: usize,
) -> Result<Turn, Box<dyn Error>> {
    let addresses: Vec<SocketAddr> = nodes.iter().map(|node| node.address).collect();
    let mut load = Load::open_all(&addresses, requests, in_flight)?;
    let cpu = || nodes.iter().map(|node| node.cpu_seconds()).sum::<f64>();
    let store_us = || stores.iter().map(Redis::cpu_us).sum::<f64>();
    let load_us = || cpu_ns(std::process::id()) as f64 / 1e3;
    // Keys expire while others have their turns. Creating them again is not measured.
    load.closed(requests.len().min(USERS))?;
    let (node_before, store_before, calls_before) = (cpu(), store_us(), calls(stores)?);
    let load_before = load_us();
    let seconds = load.closed(count)?.as_secs_f64();
    let each = count as f64;
    Ok(Turn {
        node_us: (cpu() - node_before) * 1e6 / each,
        store_us: (store_us() - store_before) / each,
        load_us: (load_us() - load_before) / each,
        k_per_s: each / 1e3 / seconds,
        batch: each / (calls(stores)? - calls_before),
    })
}

fn column(turns: &[Turn], figure: fn(&Turn) -> f64) -> Rounds {
    turns.iter().map(figure).collect()
}

fn print_nodes(runners: &[Runner], figures: &[Vec<Turn>]) {
    println!("\n### One node, gcra, {IN_FLIGHT} in flight over HTTP\n");
    println!(
        "Node on core {SERVER_CORE}; load and store on core {LOAD_CORE}, so k/s is what two cores do with all of it.\n"
    );
    println!(
        "| store | node, us a request | spread | of memory | target | | store, us a decision | decisions a call | k/s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let base = column(&figures[0], |turn| turn.node_us);
    for (runner, turns) in runners.iter().zip(figures) {
        let own = column(turns, |turn| turn.node_us);
        let of = ratio(&own, &base);
        let target = match runner.contender.name {
            REDIS => verdict(of, 2.0, " x"),
            _ => " | ".into(),
        };
        println!(
            "| {} | {:.1} | {} | {of:.2} | {target} | {:.2} | {:.1} | {:.1} |",
            runner.contender.name,
            median(&own),
            spread(&own, 1),
            median(&column(turns, |turn| turn.store_us)),
            median(&column(turns, |turn| turn.batch)),
            median(&column(turns, |turn| turn.k_per_s)),
        );
    }
}

/// Measures one node and three on the same Redis, in turns.
fn three(
    programs: &Programs,
    store: &str,
    redis: &Redis,
    first: &Runner,
    effort: Effort,
) -> Result<(), Box<dyn Error>> {
    let others = [runner(programs, REDIS, store)?, runner(programs, REDIS, store)?];
    let all = [&first.server, &others[0].server, &others[1].server];
    let stores = std::slice::from_ref(redis);
    let (mut one, mut three) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        one.push(turn(&all[..1], stores, &first.requests, IN_FLIGHT, effort.requests / 3)?);
        three.push(turn(&all, stores, &first.requests, IN_FLIGHT, effort.requests / 3)?);
    }
    println!("\n### One node and three on one Redis, {IN_FLIGHT} in flight in all\n");
    println!(
        "| | k/s | spread | all nodes, us a request | Redis, us a decision | decisions a call |"
    );
    println!("|---|---|---|---|---|---|");
    for (name, turns) in [("one node", &one), ("three nodes", &three)] {
        let k_per_s = column(turns, |turn| turn.k_per_s);
        println!(
            "| {name} | {:.1} | {} | {:.1} | {:.2} | {:.1} |",
            median(&k_per_s),
            spread(&k_per_s, 1),
            median(&column(turns, |turn| turn.node_us)),
            median(&column(turns, |turn| turn.store_us)),
            median(&column(turns, |turn| turn.batch)),
        );
    }
    Ok(())
}
