//! Measures latency on a schedule at half of a core's capacity, from the instant a request was due.

use crate::contender::{FLOOR, OURS, OURS_3, Programs, THROTTLECRAB};
use crate::load::{Delays, Load};
use crate::table::{Rounds, median, quantile};
use crate::turns::{Runner, interleave, start};
use crate::{CONNECTIONS, Effort, closed};
use std::error::Error;

const SHARES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];
/// The contender whose capacity is halved: all have the same schedule, and this one is not the
/// cheapest.
const PACE: &str = OURS;

/// Prints the table of latencies.
pub(crate) fn report(programs: &Programs, effort: Effort) -> Result<(), Box<dyn Error>> {
    let runners = start(programs, &[OURS, OURS_3, FLOOR, THROTTLECRAB], |contender| contender);
    let saturated = interleave(&runners, 3, |runner| closed::turn(runner, effort.requests / 3))?;
    let pace = runners.iter().position(|runner| runner.contender.name == PACE).unwrap_or(0);
    let costs: Rounds =
        saturated.get(pace).into_iter().flatten().map(|turn| turn.s_per_m).collect();
    // From processor time, not from the achieved rate: other processes on the core must not lower
    // the rate.
    let rate = (0.5e6 / median(&costs) / 1e3).round() * 1e3;
    let count = (rate * effort.schedule_seconds) as usize;
    let delays = interleave(&runners, effort.rounds, |runner| {
        let mut load = Load::open(runner.server.address, &runner.requests, CONNECTIONS)?;
        Ok(load.open_loop(count, rate)?)
    })?;
    print(rate, &runners, &delays);
    Ok(())
}

fn print(rate: f64, runners: &[Runner], delays: &[Vec<Delays>]) {
    let k_per_s = rate / 1e3;
    println!("\n### Latency at {k_per_s:.0} k/s on a schedule, {CONNECTIONS} connections\n");
    println!("| microseconds from the instant due | p50 | p90 | p99 | p99.9 | sent late, p99 |");
    println!("|---|---|---|---|---|---|");
    for (runner, rounds) in runners.iter().zip(delays) {
        let cell = |at, of: fn(&Delays) -> &[u64]| {
            let each: Rounds = rounds.iter().map(|round| percentile_us(of(round), at)).collect();
            format!("{:.0}", median(&each))
        };
        let cells = SHARES.map(|at| cell(at, |delays| &delays.answered_ns)).join(" | ");
        let late = cell(0.99, |delays| &delays.sent_ns);
        println!("| {} | {cells} | {late} |", runner.contender.name);
    }
}

pub(crate) fn percentile_us(delays_ns: &[u64], at: f64) -> f64 {
    quantile(&delays_ns.iter().map(|ns| *ns as f64 / 1e3).collect::<Vec<_>>(), at)
}
