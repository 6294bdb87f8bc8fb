//! Measures the check API beside a floor and a peer, and the gateway beside others: `cargo run --profile product -p service -- [ROW ...] [--ours FILE]
//! [--before FILE] [--throttlecrab FILE] [--redis-cell FILE] [--envoy FILE] [--rounds N] [--requests N] [--seconds N] [--guard WORD] [--times N] [--plot FILE]`.
//!
//! Each server is a process on the first core. The load is this process, on the second core. Tables
//! are printed as Markdown, ready for `docs/benchmarks.md`. Programs that are not installed are
//! skipped.

mod closed;
mod connection;
mod contender;
mod distributed;
mod envoy;
mod footprint;
mod gateway;
mod grpc;
mod http2;
mod instructions;
mod latency;
mod load;
mod process;
mod redis;
mod resp;
mod script;
mod shed;
mod table;
mod turns;

use contender::Programs;
use std::error::Error;
use std::process::ExitCode;

const ROWS: [&str; 17] = [
    "http",
    "http2",
    "grpc",
    "resp",
    "envoy",
    "latency",
    "footprint",
    "gateway",
    "gateway-latency",
    "gateway-two",
    "abuse",
    "limits",
    "shed",
    "script",
    "distributed",
    "leased",
    "instructions",
];
const CONNECTIONS: usize = 50;
const LOAD_CORE: usize = 1;

/// The effort of a measurement.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Turns of each contender.
    rounds: usize,
    /// Requests in one turn of a closed loop; tables with shorter turns have more turns.
    requests: usize,
    /// The duration of one turn on a schedule.
    schedule_seconds: f64,
}

impl Effort {
    /// Divides the requests into more, shorter turns: consecutive turns find the machine in a
    /// similar state.
    fn in_turns(self, times: usize) -> Self {
        Self {
            rounds: self.rounds * times,
            requests: (self.requests / times).max(CONNECTIONS),
            schedule_seconds: self.schedule_seconds / times as f64,
        }
    }
}

#[derive(Debug)]
struct Options {
    rows: Vec<String>,
    programs: Programs,
    effort: Effort,
    shed: shed::ShedOptions,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(options) = read(&arguments) else {
        let options = "[--ours FILE] [--before FILE] [--throttlecrab FILE] [--redis-cell FILE] [--envoy FILE] [--rounds N] [--requests N] [--seconds N] [--guard WORD] [--times N] [--plot FILE]";
        eprintln!("usage: service [ROW ...] {options}; rows: {}", ROWS.join(" "));
        return ExitCode::from(2);
    };
    let measured = measure(&options);
    std::fs::remove_dir_all(contender::folder()).ok();
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<(), Box<dyn Error>> {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let core = cores.iter().find(|core| core.id == LOAD_CORE).ok_or("this needs two cores")?;
    core_affinity::set_for_current(*core);
    let wanted = |row: &str| options.rows.is_empty() || options.rows.iter().any(|name| name == row);
    let Options { programs, effort, .. } = options;
    for row in ROWS.into_iter().filter(|row| wanted(row)) {
        match row {
            "http" => closed::report(programs, *effort)?,
            "http2" => http2::report(programs, *effort)?,
            "grpc" => grpc::report(programs, *effort)?,
            "envoy" => envoy::report(programs, *effort)?,
            "resp" => resp::report(programs, *effort)?,
            "latency" => latency::report(programs, *effort)?,
            "footprint" => footprint::report(programs)?,
            "gateway" => gateway::report(programs, *effort)?,
            "gateway-latency" => gateway::report_latency(programs, *effort)?,
            "gateway-two" => gateway::report_two(programs, *effort)?,
            "abuse" => gateway::report_abuse(programs, *effort)?,
            "limits" => gateway::report_parts(programs, *effort)?,
            "shed" => shed::report(programs, *effort, &options.shed)?,
            "script" => script::report(programs, *effort)?,
            "distributed" => distributed::report(programs, *effort)?,
            "leased" => distributed::leased::report(programs, *effort)?,
            _ => instructions::report(programs)?,
        }
    }
    Ok(())
}

fn read(arguments: &[String]) -> Option<Options> {
    let mut programs = Programs {
        ours: "../target/dist/tollgate".into(),
        before: None,
        throttlecrab: "target/peers/bin/throttlecrab-server".into(),
        redis_cell: "target/peers/libredis_cell.so".into(),
        envoy: "envoy".into(),
    };
    let mut effort = Effort { rounds: 7, requests: 150_000, schedule_seconds: 2.0 };
    let (mut rows, mut shed) = (Vec::new(), shed::ShedOptions::default());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--ours" => programs.ours = arguments.next()?.into(),
            "--before" => programs.before = Some(arguments.next()?.into()),
            "--throttlecrab" => programs.throttlecrab = arguments.next()?.into(),
            "--redis-cell" => programs.redis_cell = arguments.next()?.into(),
            "--envoy" => programs.envoy = arguments.next()?.into(),
            "--rounds" => effort.rounds = arguments.next()?.parse().ok()?,
            "--requests" => effort.requests = arguments.next()?.parse().ok()?,
            "--seconds" => effort.schedule_seconds = arguments.next()?.parse().ok()?,
            "--plot" => shed.plot = Some(arguments.next()?.into()),
            "--guard" => shed.guard = Some(arguments.next()?.into()),
            "--times" => shed.times = Some(arguments.next()?.parse().ok()?),
            row if ROWS.contains(&row) => rows.push(row.into()),
            _ => return None,
        }
    }
    Some(Options { rows, programs, effort, shed })
}
