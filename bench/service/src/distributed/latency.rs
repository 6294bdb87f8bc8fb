//! What a decision in Redis adds to the latency of a request.
//!
//! The load spins, so the store has to be where the node is: beside the load it would wait for a time slice.

use super::{IN_FLIGHT, MEMORY, REDIS, runner};
use crate::contender::Programs;
use crate::load::Load;
use crate::process::SERVER_CORE;
use crate::redis::Redis;
use crate::table::{Rounds, median, quantile};
use crate::turns::interleave;
use crate::{Effort, LOAD_CORE};
use std::error::Error;
use std::time::Instant;
use std::{io, thread};

const PINGS: usize = 2_000;

/// On a schedule at half of what the node's core can do on Redis, beside bare round trips.
pub(super) fn report(
    programs: &Programs,
    node_us: f64,
    effort: Effort,
) -> Result<(), Box<dyn Error>> {
    let redis = Redis::start(SERVER_CORE, &[])?;
    let store = format!("url: 'redis://127.0.0.1:{}/0'", redis.port);
    let runners = [runner(programs, MEMORY, "")?, runner(programs, REDIS, &store)?];
    let rate = (0.5e6 / node_us / 1e3).round().max(1.0) * 1e3;
    let count = (rate * effort.schedule_seconds) as usize;
    let mut trips: Vec<Rounds> = Vec::new();
    let delays = interleave(&runners, effort.rounds, |runner| {
        trips.push(bare(&redis)?);
        let mut load = Load::open(runner.server.address, &runner.requests, IN_FLIGHT)?;
        Ok(load.open_loop(count, rate)?)
    })?;
    let at = |values: &Rounds, at: f64| quantile(values, at);
    let us = |values: &[u64]| values.iter().map(|ns| *ns as f64 / 1e3).collect::<Rounds>();
    let of = |runner: usize, share: f64| -> Rounds {
        delays[runner].iter().map(|delays| at(&us(&delays.answered_ns), share)).collect()
    };
    let bare = |share: f64| median(&trips.iter().map(|trip| at(trip, share)).collect::<Rounds>());
    let late = |runner: usize| {
        median(&delays[runner].iter().map(|d| at(&us(&d.sent_ns), 0.99)).collect::<Rounds>())
    };
    println!("\n### Latency at {:.0} k/s on a schedule\n", rate / 1e3);
    println!(
        "Node and store on core {SERVER_CORE}, the load, which never sleeps, on core {LOAD_CORE}.\n"
    );
    println!("| microseconds | p50 | p99 | sent late, p99 |");
    println!("|---|---|---|---|");
    for (place, runner) in runners.iter().enumerate() {
        let (p50, p99) = (median(&of(place, 0.5)), median(&of(place, 0.99)));
        println!("| on {} | {p50:.0} | {p99:.0} | {:.0} |", runner.contender.name, late(place));
    }
    println!(
        "| a bare round trip (PING, one connection) | {:.0} | {:.0} | |",
        bare(0.5),
        bare(0.99)
    );
    let added = |share: f64| -> f64 {
        let pairs = of(1, share).into_iter().zip(of(0, share));
        median(&pairs.map(|(redis, memory)| redis - memory).collect::<Rounds>())
    };
    let p50 = added(0.5) / bare(0.5);
    println!("| added by Redis | {:.0} | {:.0} | |", added(0.5), added(0.99));
    println!(
        "\nAdded, p50: {p50:.2} of a bare round trip (target 1.3); p99 {:.0} us (target 2,000).",
        added(0.99)
    );
    Ok(())
}

/// From where the node is.
fn bare(redis: &Redis) -> Result<Rounds, Box<dyn Error>> {
    let mut client = redis.connect()?;
    let core = core_affinity::CoreId { id: SERVER_CORE };
    let ping = move || {
        core_affinity::set_for_current(core);
        let trip = |_| {
            let start = Instant::now();
            client.ask(&[b"PING"])?;
            Ok(start.elapsed().as_nanos() as f64 / 1e3)
        };
        (0..PINGS).map(trip).collect::<io::Result<Rounds>>()
    };
    Ok(thread::spawn(ping).join().map_err(|_| "a thread broke off")??)
}
