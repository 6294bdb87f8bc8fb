//! Measures the latency that a decision in Redis adds to a request.
//!
//! The store shares a core with the load, as in the other tables: the idle load yields to it.

use super::{IN_FLIGHT, MEMORY, REDIS, runner};
use crate::contender::Programs;
use crate::latency::percentile_us;
use crate::load::{Delays, Load};
use crate::process::SERVER_CORE;
use crate::redis::Redis;
use crate::table::{Rounds, median, quantile};
use crate::turns::{Runner, interleave};
use crate::{Effort, LOAD_CORE};
use std::error::Error;
use std::time::Instant;
use std::{io, thread};

const PINGS: usize = 2_000;
/// Shares of the node's highest rate. The targets are for the last one.
const SHARES: [f64; 3] = [0.1, 0.25, 0.5];

/// One rate: the waits of each node's requests, and bare round trips between them.
struct Pace {
    rate: f64,
    delays: Vec<Vec<Delays>>,
    trips: Vec<Rounds>,
}

/// Measures on schedules at shares of one node's highest rate on Redis, beside bare round trips.
pub(super) fn report(
    programs: &Programs,
    k_per_s: f64,
    effort: Effort,
) -> Result<(), Box<dyn Error>> {
    let redis = Redis::start(LOAD_CORE, &[])?;
    let store = format!("url: 'redis://127.0.0.1:{}/0'", redis.port);
    let runners = [runner(programs, MEMORY, "")?, runner(programs, REDIS, &store)?];
    println!("\n### What Redis adds to latency\n");
    println!(
        "Node on core {SERVER_CORE}, load on a schedule and store on core {LOAD_CORE}; microseconds.\n"
    );
    println!(
        "| k/s | memory, p50 | p99 | Redis, p50 | p99 | round trip, p50 | p99 | added, p50 | in round trips | added, p99 | sent late, p99 |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for share in SHARES {
        let rate = (share * k_per_s).round().max(1.0) * 1e3;
        pace(&redis, &runners, rate, effort)?.print();
    }
    println!("\nTargets at half of what one node did: p50 1.3 round trips, p99 2,000 us.");
    Ok(())
}

fn pace(
    redis: &Redis,
    runners: &[Runner],
    rate: f64,
    effort: Effort,
) -> Result<Pace, Box<dyn Error>> {
    let count = (rate * effort.schedule_seconds) as usize;
    let mut trips: Vec<Rounds> = Vec::new();
    let delays = interleave(runners, effort.rounds, |runner| {
        trips.push(bare(redis)?);
        let mut load = Load::open(runner.server.address, &runner.requests, IN_FLIGHT)?;
        Ok(load.open_loop(count, rate)?)
    })?;
    Ok(Pace { rate, delays, trips })
}

impl Pace {
    fn print(&self) {
        let bare = |share| {
            median(&self.trips.iter().map(|trip| quantile(trip, share)).collect::<Rounds>())
        };
        let added = |share| {
            let pairs = self.of(1, share).into_iter().zip(self.of(0, share));
            median(&pairs.map(|(redis, memory)| redis - memory).collect::<Rounds>())
        };
        let late = self.delays.iter().flatten().map(|delays| percentile_us(&delays.sent_ns, 0.99));
        println!(
            "| {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.2} | {:.0} | {:.0} |",
            self.rate / 1e3,
            median(&self.of(0, 0.5)),
            median(&self.of(0, 0.99)),
            median(&self.of(1, 0.5)),
            median(&self.of(1, 0.99)),
            bare(0.5),
            bare(0.99),
            added(0.5),
            added(0.5) / bare(0.5),
            added(0.99),
            median(&late.collect::<Rounds>()),
        );
    }

    /// A quantile of each round of one node.
    fn of(&self, runner: usize, share: f64) -> Rounds {
        self.delays[runner].iter().map(|delays| percentile_us(&delays.answered_ns, share)).collect()
    }
}

/// Measures bare round trips from the node's core.
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
