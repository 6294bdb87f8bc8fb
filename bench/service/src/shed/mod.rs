//! Load shedding: an upstream of eight workers with 10 ms of work on average, behind Tollgate and
//! its peers, from half to five times its capacity.
//!
//! Guards run on the first core. The upstream sleeps instead of working, so it shares the second
//! core with the clients. Every cell starts with an empty queue at the upstream.

mod changes;
mod clients;
mod guards;
mod picture;

use crate::contender::{Programs, beside};
use crate::process::{Program, Ready, Server};
use crate::table::{Rounds, quantile};
use crate::{Effort, LOAD_CORE};
use clients::{Call, Fate};
use guards::{Guard, get};
use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

const WORKS: [&str; 2] = ["exponential", "bimodal"];
const LOADS: [f64; 5] = [0.5, 1.0, 2.0, 3.0, 5.0];
/// The capacity in requests per second: eight workers of 10 ms.
const CAPACITY: f64 = 800.0;
/// The first seconds are not counted: adaptive guards are still learning.
const WARM_S: u64 = 5;
/// The load goes on for this long after the window that is counted. Otherwise requests that wait at
/// its end are served after the load, and a long queue looks like throughput.
const COOL_S: u64 = 2;

/// The part of the table to measure, all by default, and the file of its picture.
#[derive(Debug, Default)]
pub(crate) struct ShedOptions {
    /// A word in the name of each guard.
    pub(crate) guard: Option<String>,
    pub(crate) times: Option<f64>,
    pub(crate) plot: Option<PathBuf>,
}

/// The figures of a cell of the table.
#[derive(Clone, Debug)]
struct Cell {
    work: &'static str,
    guard: &'static str,
    load: f64,
    goodput: f64,
    critical_percent: f64,
    critical_p99_ms: f64,
    served_p99_ms: f64,
    refused: usize,
    lost: usize,
}

/// An upstream of workers.
struct Upstream(Server);

impl Upstream {
    fn start(work: &str) -> Result<Self, Box<dyn Error>> {
        let path = beside("workers")?.to_string_lossy().into_owned();
        let program = Program { path, arguments: vec![work.into()], ready: Ready::Line };
        Ok(Self(Server::start_on(LOAD_CORE, &program)?))
    }

    /// Restarts with eight workers of 10 ms.
    fn reset(&self) -> Result<(), Box<dyn Error>> {
        control(self.0.address, "10000/8/clear")
    }
}

fn control(upstream: SocketAddr, what: &str) -> Result<(), Box<dyn Error>> {
    get(upstream, &format!("/control/{what}")).map(drop)
}

/// Prints the table and how Tollgate follows changes, and draws the picture.
pub(crate) fn report(
    programs: &Programs,
    effort: Effort,
    options: &ShedOptions,
) -> Result<(), Box<dyn Error>> {
    let seconds = (effort.schedule_seconds * 5.0) as u64;
    let mut cells = Vec::new();
    for work in WORKS {
        let upstream = Upstream::start(work)?;
        let unloaded = cell(
            &Guard::start(programs, guards::NOTHING, upstream.0.address)?,
            work,
            0.3,
            seconds,
        )?;
        println!("\n### Shedding, {work} work: {seconds} s a cell after {WARM_S} s\n");
        println!("Unloaded p99: {:.0} ms.\n", unloaded.served_p99_ms);
        println!(
            "| times the capacity | | goodput, 1/s | critical served, % | p99 of critical, ms | p99 of served, ms | of unloaded | refused | lost |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
        for load in LOADS.into_iter().filter(|load| options.times.is_none_or(|it| it == *load)) {
            let is_wanted = |name: &&str| options.guard.as_ref().is_none_or(|it| name.contains(it));
            for name in guards::ALL.into_iter().filter(is_wanted) {
                upstream.reset()?;
                let guard = Guard::start(programs, name, upstream.0.address);
                match guard.and_then(|guard| cell(&guard, work, load, seconds)) {
                    Ok(cell) => cells.push(cell),
                    Err(error) => {
                        eprintln!("{name} is left out: {error}");
                        continue;
                    }
                }
                print(&cells[cells.len() - 1], unloaded.served_p99_ms);
            }
        }
        if options.times.is_none() {
            changes::report(programs, &upstream, work)?;
        }
    }
    if let Some(path) = &options.plot {
        fs::write(path, picture::svg(&cells))?;
    }
    Ok(())
}

fn cell(
    guard: &Guard,
    work: &'static str,
    load: f64,
    seconds: u64,
) -> Result<Cell, Box<dyn Error>> {
    let seed = (load * 10.0) as u64;
    let (pace, end_s) = ([(0, load * CAPACITY)], WARM_S + seconds);
    let calls = clients::run(guard.address, &pace, end_s + COOL_S, seed)?;
    let window_us = WARM_S * 1_000_000..end_s * 1_000_000;
    let calls: Vec<Call> =
        calls.into_iter().filter(|call| window_us.contains(&call.due_us)).collect();
    let critical: Vec<Call> = calls.iter().filter(|call| call.is_critical).copied().collect();
    let served = |calls: &[Call]| calls.iter().filter_map(served_ms).collect::<Rounds>();
    let count = |fate| calls.iter().filter(|call| call.fate == fate).count();
    let (all, important) = (served(&calls), served(&critical));
    Ok(Cell {
        work,
        guard: guard.name,
        load,
        goodput: all.len() as f64 / seconds as f64,
        critical_percent: important.len() as f64 * 100.0 / critical.len().max(1) as f64,
        critical_p99_ms: quantile(&important, 0.99),
        served_p99_ms: quantile(&all, 0.99),
        refused: count(Fate::Refused),
        lost: count(Fate::Lost),
    })
}

fn served_ms(call: &Call) -> Option<f64> {
    match call.fate {
        Fate::Served(us) => Some(us as f64 / 1e3),
        _ => None,
    }
}

fn print(cell: &Cell, unloaded_ms: f64) {
    println!(
        "| {} | {} | {:.0} | {:.2} | {:.0} | {:.0} | {:.2} | {} | {} |",
        cell.load,
        cell.guard,
        cell.goodput,
        cell.critical_percent,
        cell.critical_p99_ms,
        cell.served_p99_ms,
        cell.served_p99_ms / unloaded_ms,
        cell.refused,
        cell.lost,
    );
}
