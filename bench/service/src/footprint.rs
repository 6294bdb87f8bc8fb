//! Measures the footprint of a server: its file, its start, its memory when idle and with idle
//! connections.

use crate::contender::{Contender, FLOOR, OURS, Programs, THROTTLECRAB};
use crate::load::Load;
use crate::process::Server;
use crate::table::{Rounds, median, spread};
use std::error::Error;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

const IDLE_CONNECTIONS: usize = 5_000;
const STARTS: usize = 10;
const MIB: f64 = 1024.0 * 1024.0;
/// Long enough for one-time work after the start.
const REST: Duration = Duration::from_millis(500);

/// Targets: start in milliseconds, memory and file in MiB, an idle connection in KiB.
const TARGETS: [f64; 4] = [50.0, 15.0, 16.0, 15.0];

/// Prints the table of footprints.
pub(crate) fn report(programs: &Programs) -> Result<(), Box<dyn Error>> {
    println!("\n### Start, memory, size\n");
    println!(
        "| | start to ready, ms (spread) | idle, MiB | KiB an idle connection | program, MiB |"
    );
    println!("|---|---|---|---|---|");
    for name in [OURS, FLOOR, THROTTLECRAB] {
        match programs.contender(name) {
            Ok(contender) => row(&contender)?,
            Err(error) => eprintln!("{name} is left out: {error}"),
        }
    }
    Ok(())
}

fn row(contender: &Contender) -> Result<(), Box<dyn Error>> {
    let mut starts = Rounds::new();
    for _ in 0..STARTS {
        let server = Server::start(&contender.program)?;
        starts.push(server.started_in.as_secs_f64() * 1e3);
    }
    let server = Server::start(&contender.program)?;
    sleep(REST);
    let idle_mib = server.resident_bytes() / MIB;
    // Memory for the first connections, users and answers does not count for idle connections.
    let requests = contender.wants.requests();
    Load::open(server.address, &requests, 100)?.closed(20_000)?;
    sleep(REST);
    let before = server.resident_bytes();
    let load = Load::open(server.address, &requests, IDLE_CONNECTIONS)?;
    sleep(REST);
    let connection_kib = (server.resident_bytes() - before) / IDLE_CONNECTIONS as f64 / 1024.0;
    drop(load);
    let file_mib = fs::metadata(&contender.program.path)?.len() as f64 / MIB;
    let figures = [median(&starts), idle_mib, connection_kib, file_mib];
    let met = |n: usize| match contender.name == OURS {
        true if figures[n] <= TARGETS[n] => format!(" (target {}: met)", TARGETS[n]),
        true => format!(" (target {}: missed)", TARGETS[n]),
        false => String::new(),
    };
    println!(
        "| {} | {:.1} ({}){} | {idle_mib:.1}{} | {connection_kib:.1}{} | {file_mib:.1}{} |",
        contender.name,
        figures[0],
        spread(&starts, 1),
        met(0),
        met(1),
        met(2),
        met(3),
    );
    Ok(())
}
