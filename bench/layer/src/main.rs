//! Measures the cost that a layer adds to a request of a small axum service: `cargo run --release
//! -p layer -- [ROUNDS] [REQUESTS]`.
//!
//! Each service is a process on the first core, started again for every round. The addresses of its
//! code and its connections make a process a few percent faster or slower, so the cost of a layer
//! is the mean of many. The load is this process, on the second core, with fifty persistent
//! HTTP/1.1 connections. The table is printed as Markdown, ready for `docs/benchmarks.md`.

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
    let (rounds, requests) = (number(0, 100)?, number(1, 10_000)?);
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let core = cores.iter().find(|core| core.id == LOAD_CORE).ok_or("this needs two cores")?;
    core_affinity::set_for_current(*core);

    let mut seconds = vec![Vec::new(); LAYERS.len()];
    for round in 0..rounds {
        let names = LAYERS.iter().map(|row| Server::start(row.name));
        let mut servers = names.collect::<Result<Vec<_>, _>>()?;
        for server in &mut servers {
            // Warms up.
            server.turn(requests / 4)?;
        }
        for place in 0..servers.len() {
            // Each round starts with another service, so that none always follows the same one.
            let n = (round + place) % servers.len();
            seconds[n].push(servers[n].turn(requests)?);
        }
        if (round + 1) % 10 == 0 {
            eprintln!("round {} of {rounds}", round + 1);
        }
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
        middle_mean(&pairs.map(|(own, bare)| own - bare).collect::<Vec<_>>())
    };
    println!("| | s/M | added | of its peer's | target | |");
    println!("|---|---|---|---|---|---|");
    for (n, row) in LAYERS.iter().enumerate() {
        let (own, _) = middle_mean(&seconds[n]);
        let (added_own, error_own) = added(n);
        let peer = LAYERS.iter().position(|peer| Some(peer.name) == row.peer);
        let verdict = match peer.map(&added) {
            None => " | | ".to_owned(),
            // On a busy machine the added cost of governor may be below the noise.
            Some((peer, error)) if peer <= 2.0 * error => {
                format!(" | <= {TARGET} | not measurable")
            }
            Some((peer, error)) => {
                let ratio = added_own / peer;
                let ratio_error = ratio * (error_own / added_own).hypot(error / peer);
                let word = if ratio <= TARGET { "met" } else { "missed" };
                format!("{ratio:.2} ± {ratio_error:.2} | <= {TARGET} | {word}")
            }
        };
        let title = row.title;
        println!("| {title} | {own:.2} | {added_own:.2} ± {error_own:.2} | {verdict} |");
    }
}

/// The mean without the tenth at either end, and its standard error.
fn middle_mean(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted.len() / 10;
    let middle = &sorted[cut..sorted.len() - cut];
    let count = middle.len() as f64;
    let mean = middle.iter().sum::<f64>() / count;
    let squares: f64 = middle.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / count / count).sqrt())
}
