//! Measures the cost that a layer adds to a request of a small axum service: `cargo run --release
//! -p layer -- [ROUNDS] [REQUESTS]`.
//!
//! Each service is a process on the first core. The load is this process, on the second core, with
//! fifty persistent HTTP/1.1 connections. The table is printed as Markdown, ready for
//! `docs/benchmarks.md`.

mod load;

use layer::LAYERS;
use load::Load;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const SERVICE_CORE: &str = "0";
const LOAD_CORE: usize = 1;
const TARGET: f64 = 0.7;
/// Rounds before the services are started again. The addresses at which a process has its code and
/// its connections make it a few percent faster or slower for all of its life.
const ROUNDS_A_PROCESS: usize = 3;

/// A running service, killed when dropped.
struct Server {
    child: Child,
    load: Load,
}

impl Server {
    fn start(layer: &str) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new("taskset");
        command.args(["-c", SERVICE_CORE]).arg(std::env::current_exe()?).args(["serve", layer]);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut address = String::new();
        let stdout = child.stdout.take().ok_or("the service has no output")?;
        BufReader::new(stdout).read_line(&mut address)?;
        let load = Load::open(address.trim().parse()?)?;
        Ok(Self { child, load })
    }

    /// Processor seconds per million requests, in user and kernel mode.
    fn turn(&mut self, requests: usize) -> Result<f64, Box<dyn Error>> {
        let before_ns = self.spent_ns()?;
        let sent = self.load.send(requests)?;
        Ok((self.spent_ns()? - before_ns) as f64 / 1e3 / sent as f64)
    }

    /// The processor time of the service, which has one thread.
    fn spent_ns(&self) -> Result<u64, Box<dyn Error>> {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.child.id()))?;
        Ok(text.split(' ').next().ok_or("no time")?.parse()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [verb, layer] = &arguments[..]
        && verb == "serve"
    {
        return layer::serve(layer);
    }
    let number =
        |at: usize, otherwise| arguments.get(at).map_or(Ok(otherwise), |text| text.parse());
    let (rounds, requests) = (number(0, 15)?, number(1, 50_000)?);
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let core = cores.iter().find(|core| core.id == LOAD_CORE).ok_or("this needs two cores")?;
    core_affinity::set_for_current(*core);

    let mut seconds = vec![Vec::new(); LAYERS.len()];
    for first in (0..rounds).step_by(ROUNDS_A_PROCESS) {
        let last = rounds.min(first + ROUNDS_A_PROCESS);
        let names = LAYERS.iter().map(|row| Server::start(row.name));
        let mut servers = names.collect::<Result<Vec<_>, _>>()?;
        for server in &mut servers {
            // Warms up.
            server.turn(requests)?;
        }
        for round in first..last {
            for place in 0..servers.len() {
                // Each round starts with another service, so that none always follows the same one.
                let n = (round + place) % servers.len();
                seconds[n].push(servers[n].turn(requests)?);
            }
        }
        eprintln!("round {last} of {rounds}");
    }
    print(&seconds);
    Ok(())
}

fn print(seconds: &[Vec<f64>]) {
    let bare = &seconds[0];
    // The added cost of a layer within one round, which slow and fast minutes of the machine do not
    // affect.
    let added = |n: usize| {
        let pairs = seconds[n].iter().zip(bare);
        median(&pairs.map(|(own, bare)| own - bare).collect::<Vec<_>>())
    };
    println!("| | s/M | spread | added | of its peer's | target | |");
    println!("|---|---|---|---|---|---|---|");
    for (n, row) in LAYERS.iter().enumerate() {
        let own = median(&seconds[n]);
        let least = seconds[n].iter().copied().fold(f64::INFINITY, f64::min);
        let most = seconds[n].iter().copied().fold(0.0, f64::max);
        let added_own = added(n);
        let peer = LAYERS.iter().position(|peer| Some(peer.name) == row.peer);
        let verdict = match peer.map(&added) {
            None => " | | ".to_owned(),
            // On a busy machine the added cost of governor may be below the noise.
            Some(peer) if peer <= 0.0 => format!(" | <= {TARGET} | not measurable"),
            Some(peer) => {
                let ratio = added_own / peer;
                let word = if ratio <= TARGET { "met" } else { "missed" };
                format!("{ratio:.2} | <= {TARGET} | {word}")
            }
        };
        let title = row.title;
        println!("| {title} | {own:.2} | {least:.2}-{most:.2} | {added_own:.2} | {verdict} |");
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
