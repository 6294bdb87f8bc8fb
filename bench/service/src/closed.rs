//! Measures processor time per request with fifty connections, each sending the next request after
//! an answer.

use crate::contender::{FLOOR, FLOOR_FIELDS, OURS, OURS_3, Programs, THROTTLECRAB};
use crate::load::Load;
use crate::table::{Rounds, median, ratio, spread, verdict};
use crate::turns::{Runner, interleave, start};
use crate::{CONNECTIONS, Effort};
use std::error::Error;

const TARGET: f64 = 1.25;

/// The result of one turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Processor seconds of the server per million requests.
    pub(crate) s_per_m: f64,
    /// Thousands of requests per second.
    pub(crate) k_per_s: f64,
    /// The server's share of its core. Below 1, it waited for the load, or for other processes on
    /// the core.
    pub(crate) busy: f64,
}

/// Prints the table of HTTP/1.1.
pub(crate) fn report(programs: &Programs, effort: Effort) -> Result<(), Box<dyn Error>> {
    let names = [OURS, OURS_3, FLOOR, FLOOR_FIELDS, THROTTLECRAB];
    let runners = start(programs, &names, |contender| contender);
    let turn = |runner: &Runner| turn(runner, effort.requests);
    interleave(&runners, 1, turn)?;
    let figures = interleave(&runners, effort.rounds, turn)?;
    let title = format!("HTTP/1.1, {CONNECTIONS} connections");
    print(&title, &runners, &figures, Some((OURS, FLOOR, TARGET)));
    Ok(())
}

/// Measures one turn, on new connections.
pub(crate) fn turn(runner: &Runner, count: usize) -> Result<Turn, Box<dyn Error>> {
    turn_of(runner, &runner.requests, count)
}

/// Measures one turn with the given requests.
pub(crate) fn turn_of(
    runner: &Runner,
    requests: &[Vec<u8>],
    count: usize,
) -> Result<Turn, Box<dyn Error>> {
    let mut load = Load::open(runner.server.address, requests, CONNECTIONS)?;
    let before = runner.server.cpu_seconds();
    let seconds = load.closed(count)?.as_secs_f64();
    let cpu = runner.server.cpu_seconds() - before;
    Ok(Turn::new(cpu, seconds, count))
}

impl Turn {
    pub(crate) fn new(cpu: f64, seconds: f64, requests: usize) -> Self {
        let millions = requests as f64 / 1e6;
        let k_per_s = requests as f64 / 1e3 / seconds;
        Self { s_per_m: cpu / millions, k_per_s, busy: cpu / seconds }
    }
}

/// The median of one figure over the turns.
pub(crate) fn each(turns: &[Turn], figure: fn(&Turn) -> f64) -> f64 {
    median(&turns.iter().map(figure).collect::<Rounds>())
}

/// The costs of each contender's turns.
pub(crate) fn costs(figures: &[Vec<Turn>]) -> Vec<Rounds> {
    figures.iter().map(|turns| turns.iter().map(|turn| turn.s_per_m).collect()).collect()
}

/// A target: the contender, the reference, and the ratio.
type Target = (&'static str, &'static str, f64);

/// Prints a table.
pub(crate) fn print(
    title: &str,
    runners: &[Runner],
    figures: &[Vec<Turn>],
    target: Option<Target>,
) {
    println!("\n### {title}\n");
    println!("| | s/M | spread | k/s | of the core | of the floor | target | |");
    println!("|---|---|---|---|---|---|---|---|");
    let costs = costs(figures);
    let floor = target.map_or(FLOOR, |(_, floor, _)| floor);
    let floor = runners.iter().position(|runner| runner.contender.name == floor);
    for (n, (runner, turns)) in runners.iter().zip(figures).enumerate() {
        let name = runner.contender.name;
        let of_floor = floor.map_or(f64::NAN, |floor| ratio(&costs[n], &costs[floor]));
        let target = match target {
            Some((whose, _, target)) if name == whose => verdict(of_floor, target, " x"),
            _ => " | ".into(),
        };
        println!(
            "| {name} | {:.2} | {} | {:.1} | {:.0} % | {of_floor:.2} | {target} |",
            median(&costs[n]),
            spread(&costs[n], 2),
            each(turns, |turn| turn.k_per_s),
            each(turns, |turn| turn.busy * 100.0),
        );
    }
}
