//! Measures Envoy with a rate limit service for every request, in front of a tiny server: the cost
//! in both.
//!
//! Envoy and the service share the first core; the load and the tiny server share the second.

use crate::contender::{
    FLOOR_GRPC, LIMITADOR_GRPC, OURS_GRPC, OURS_GRPC_3, Programs, beside, folder,
};
use crate::load::Load;
use crate::process::{Program, Ready, Server};
use crate::table::{Rounds, median, quantile, ratio, spread};
use crate::{CONNECTIONS, Effort, LOAD_CORE};
use std::error::Error;
use std::fs;
use std::net::TcpListener;
use std::path::Path;

/// The number of users in requests.
const USERS: usize = 10_000;
const BARE: &str = "Envoy alone, no limits";

/// Envoy and its rate limit service.
struct Edge {
    name: &'static str,
    envoy: Server,
    rls: Option<Server>,
}

/// The result of one turn: processor seconds per million requests of each, thousands per second,
/// and the 99th percentile at half of that rate.
#[derive(Clone, Copy)]
struct Turn {
    envoy: f64,
    rls: f64,
    k_per_s: f64,
    p99_ms: f64,
}

/// Prints the table.
pub(crate) fn report(programs: &Programs, effort: Effort) -> Result<(), Box<dyn Error>> {
    let arguments = vec!["--tiny".into()];
    let path = beside("floor")?.to_string_lossy().into_owned();
    let app = Program { path, arguments, ready: Ready::Line };
    let app = Server::start_on(LOAD_CORE, &app)?;
    let mut edges = Vec::new();
    for name in [BARE, OURS_GRPC, OURS_GRPC_3, FLOOR_GRPC, LIMITADOR_GRPC] {
        match edge(programs, name, &app) {
            Ok(edge) => edges.push(edge),
            Err(error) => eprintln!("{name} behind Envoy is left out: {error}"),
        }
    }
    let requests: Vec<Vec<u8>> = (0..USERS)
        .map(|user| format!("GET / HTTP/1.1\r\nHost: localhost\r\nx-user: user-{user:06}\r\n\r\n"))
        .map(String::into_bytes)
        .collect();
    let mut figures: Vec<Vec<Turn>> = edges.iter().map(|_| Vec::new()).collect();
    for round in 0..=effort.rounds {
        for place in 0..edges.len() {
            let n = (round + place) % edges.len();
            let said = turn(&edges[n], &requests, effort)
                .map_err(|error| format!("{}: {error}", edges[n].name))?;
            // The first round only warms up.
            if round > 0 {
                figures[n].push(said);
            }
        }
    }
    print(&edges, &figures);
    Ok(())
}

/// Starts a service, and an Envoy that calls it.
fn edge(programs: &Programs, name: &'static str, app: &Server) -> Result<Edge, Box<dyn Error>> {
    let rls = match name {
        BARE => None,
        _ => Some(Server::start(&programs.contender(name)?.program)?),
    };
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let asked = rls.as_ref().map_or(1, |rls| rls.address.port());
    let file = include_str!("envoy.yaml")
        .replace("EDGE", &port.to_string())
        .replace("APP", &app.address.port().to_string())
        .replace("RLS", &asked.to_string())
        .replace("DISABLED", if rls.is_some() { "false" } else { "true" });
    fs::create_dir_all(folder())?;
    let path = folder().join(format!("envoy-{port}.yaml"));
    fs::write(&path, file)?;
    let envoy = Server::start(&envoy(programs, &path, port))?;
    Ok(Edge { name, envoy, rls })
}

fn envoy(programs: &Programs, file: &Path, port: u16) -> Program {
    let file = file.to_string_lossy();
    let arguments = ["--disable-hot-restart", "--concurrency", "1", "-l", "error", "-c", &file]
        .map(str::to_owned);
    let path = programs.envoy.to_string_lossy().into_owned();
    Program { path, arguments: arguments.into(), ready: Ready::At(([127, 0, 0, 1], port).into()) }
}

fn turn(edge: &Edge, requests: &[Vec<u8>], effort: Effort) -> Result<Turn, Box<dyn Error>> {
    // A tenth of the usual requests, because they take ten times as long.
    let count = effort.requests / 10;
    let cpu = || (edge.envoy.cpu_seconds(), edge.rls.as_ref().map_or(0.0, Server::cpu_seconds));
    let mut load = Load::open(edge.envoy.address, requests, CONNECTIONS)?;
    let before = cpu();
    let seconds = load.closed(count)?.as_secs_f64();
    let after = cpu();
    let (rate, millions) = (count as f64 / seconds, count as f64 / 1e6);
    let half = rate / 2.0;
    let delays = load.open_loop((half * effort.schedule_seconds) as usize, half)?;
    let answered_ms: Rounds = delays.answered_ns.iter().map(|ns| *ns as f64 / 1e6).collect();
    Ok(Turn {
        envoy: (after.0 - before.0) / millions,
        rls: (after.1 - before.1) / millions,
        k_per_s: rate / 1e3,
        p99_ms: quantile(&answered_ms, 0.99),
    })
}

fn print(edges: &[Edge], figures: &[Vec<Turn>]) {
    println!("\n### Envoy and a rate limit service, {CONNECTIONS} connections\n");
    println!(
        "| service | Envoy, s/M | service, s/M | both, spread | of the bare service's | k/s | p99 at half of that, ms |"
    );
    println!("|---|---|---|---|---|---|---|");
    let each = |n: usize, of: fn(&Turn) -> f64| figures[n].iter().map(of).collect::<Rounds>();
    let floor = edges.iter().position(|edge| edge.name == FLOOR_GRPC);
    for (n, edge) in edges.iter().enumerate() {
        let both = |n| each(n, |turn| turn.envoy + turn.rls);
        let of_floor = floor.map_or(f64::NAN, |floor| ratio(&both(n), &both(floor)));
        println!(
            "| {} | {:.1} | {:.1} | {} | {of_floor:.2} | {:.1} | {:.1} |",
            edge.name,
            median(&each(n, |turn| turn.envoy)),
            median(&each(n, |turn| turn.rls)),
            spread(&both(n), 1),
            median(&each(n, |turn| turn.k_per_s)),
            median(&each(n, |turn| turn.p99_ms)),
        );
    }
}
