//! Compares the gateway with nginx, HAProxy and Envoy: thirteen bytes from one upstream, everything
//! admitted.
//!
//! Gateways run on the first core, in turns. The upstream shares the second core with the load,
//! which yields to it. In a closed loop the load sleeps until answers arrive; on a schedule it
//! yields whenever nothing is due.

mod abuse;
pub(crate) mod counted;
mod h2load;
mod mixed;
mod parts;
pub(crate) mod proxies;

use crate::closed::{self, Turn, each};
use crate::contender::{Programs, beside};
use crate::load::{Delays, Load};
use crate::process::{Program, Ready, Server};
use crate::table::{Rounds, median, quantile, quiet, ratio};
use crate::turns::{Runner, interleave};
use crate::{CONNECTIONS, Effort, LOAD_CORE};
use h2load::Version;
use proxies::{BARE, NGINX, OURS, Spoken};
use std::error::Error;

/// The target relative to nginx, in processor time and in p99.
const OF_NGINX: f64 = 1.0;
/// The target for the cost of the limits, in seconds per million.
const LIMITS_S: f64 = 1.5;

/// The divisor of a turn's length: a difference of a tenth shows only between turns close in time.
const SHORTER: usize = 10;

pub(crate) fn upstream() -> Result<Server, Box<dyn Error>> {
    let path = beside("upstream")?.to_string_lossy().into_owned();
    let program = Program { path, arguments: Vec::new(), ready: Ready::Line };
    Server::start_on(LOAD_CORE, &program)
}

/// Measures a client beside abusive ones.
pub(crate) fn report_abuse(programs: &Programs, effort: Effort) -> Result<(), Box<dyn Error>> {
    let upstream = upstream()?;
    abuse::report(&start(programs, Spoken::One, &upstream), effort)
}

/// Measures the cost of the limits, part by part.
pub(crate) fn report_parts(programs: &Programs, effort: Effort) -> Result<(), Box<dyn Error>> {
    let upstream = upstream()?;
    parts::report(programs, upstream.address, effort)
}

/// Measures processor time per request over HTTP/1.1, in a closed loop.
pub(crate) fn report(programs: &Programs, effort: Effort) -> Result<(), Box<dyn Error>> {
    let upstream = upstream()?;
    let runners = start(programs, Spoken::One, &upstream);
    let effort = effort.in_turns(SHORTER);
    let turn = |runner: &Runner| closed::turn(runner, effort.requests);
    let title = format!("Gateway, HTTP/1.1, {CONNECTIONS} connections");
    table(&title, &runners, effort, turn)?;
    for (what, requests) in [
        ("`POST`s of 200 bytes, answers of 1 KiB", mixed::posts()),
        ("`POST`s, `GET`s, chunks and 204s in turn", mixed::mixed()),
    ] {
        let turn = |runner: &Runner| closed::turn_of(runner, &requests, effort.requests);
        table(&format!("Gateway, HTTP/1.1, {what}"), &runners, effort, turn)?;
    }
    Ok(())
}

/// Measures latency on a schedule.
pub(crate) fn report_latency(programs: &Programs, effort: Effort) -> Result<(), Box<dyn Error>> {
    let upstream = upstream()?;
    latency(&start(programs, Spoken::One, &upstream), effort)
}

/// Measures processor time per request over HTTP/2, and over TLS.
pub(crate) fn report_two(programs: &Programs, effort: Effort) -> Result<(), Box<dyn Error>> {
    if !h2load::is_there() {
        eprintln!("HTTP/2 and TLS are left out: there is no h2load (Debian: nghttp2-client)");
        return Ok(());
    }
    let upstream = upstream()?;
    // Turns stay long, because each opens new connections and handshakes.
    let runners = start(programs, Spoken::Two, &upstream);
    let turn = |runner: &Runner| h2load::turn(runner, Version::Two, false, effort.requests);
    table("Gateway, HTTP/2, 10 connections with 10 streams each", &runners, effort, turn)?;
    drop(runners);
    let runners = start(programs, Spoken::Tls, &upstream);
    for (version, title) in [
        (Version::One, format!("Gateway, HTTP/1.1 over TLS, {CONNECTIONS} connections")),
        (Version::Two, "Gateway, HTTP/2 over TLS, 10 connections with 10 streams each".into()),
    ] {
        let turn = |runner: &Runner| h2load::turn(runner, version, true, effort.requests);
        table(&title, &runners, effort, turn)?;
    }
    Ok(())
}

/// Starts the gateways that can be started, and names the others.
fn start(programs: &Programs, spoken: Spoken, upstream: &Server) -> Vec<Runner> {
    let runner = |name| -> Result<Runner, Box<dyn Error>> {
        let contender = proxies::contender(programs, name, spoken, upstream.address)?;
        let server = Server::start(&contender.program)?;
        let requests = contender.wants.requests();
        Ok(Runner { contender, server, requests })
    };
    let mut runners = Vec::new();
    for name in proxies::ALL {
        match runner(name) {
            Ok(runner) => runners.push(runner),
            Err(error) => eprintln!("{name} is left out: {error}"),
        }
    }
    runners
}

fn place(runners: &[Runner], name: &str) -> Option<usize> {
    runners.iter().position(|runner| runner.contender.name == name)
}

/// Processor time and throughput in a closed loop.
fn table(
    title: &str,
    runners: &[Runner],
    effort: Effort,
    turn: impl Fn(&Runner) -> Result<Turn, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    interleave(runners, 1, &turn)?;
    let figures = interleave(runners, effort.rounds, &turn)?;
    println!("\n### {title}\n");
    println!("| | s/M | cheapest tenth | dearest | k/s | of the core | s/M of nginx |");
    println!("|---|---|---|---|---|---|---|");
    let costs = closed::costs(&figures);
    let nginx = place(runners, NGINX);
    let of_nginx = |n: usize| nginx.map_or(f64::NAN, |nginx| ratio(&costs[n], &costs[nginx]));
    for (n, (runner, turns)) in runners.iter().zip(&figures).enumerate() {
        println!(
            "| {} | {:.2} | {:.2} | {:.2} | {:.1} | {:.0} % | {:.2} |",
            runner.contender.name,
            median(&costs[n]),
            quiet(&costs[n]),
            quantile(&costs[n], 1.0),
            each(turns, |turn| turn.k_per_s),
            each(turns, |turn| turn.busy * 100.0),
            of_nginx(n),
        );
    }
    if let (Some(ours), Some(bare)) = (place(runners, OURS), place(runners, BARE)) {
        let own: Rounds = costs[ours].iter().zip(&costs[bare]).map(|(a, b)| a - b).collect();
        let (own, quiet_own) = (median(&own), quiet(&costs[ours]) - quiet(&costs[bare]));
        println!(
            "\nThree limits, identity and fields cost {own:.2} s/M (target <= {LIMITS_S}: {}); {quiet_own:.2} between the cheapest tenths.",
            met(own, LIMITS_S)
        );
        let ratio = of_nginx(ours);
        println!(
            "With them ours is at {ratio:.2} of nginx (target <= {OF_NGINX}: {}).",
            met(ratio, OF_NGINX)
        );
    }
    Ok(())
}

fn met(reached: f64, target: f64) -> &'static str {
    if reached <= target { "met" } else { "missed" }
}

/// The rate that half of a core can do with Tollgate: the pace of all gateways.
fn pace(runners: &[Runner], effort: Effort, share: f64) -> Result<f64, Box<dyn Error>> {
    let turn = |runner: &Runner| closed::turn(runner, effort.requests / 3);
    let saturated = interleave(runners, 1, turn)?;
    let turns =
        place(runners, OURS).and_then(|ours| saturated.get(ours)).ok_or("ours is not there")?;
    let costs: Rounds = turns.iter().map(|turn| turn.s_per_m).collect();
    // The load and the upstream share one core, and need less time per request than a gateway.
    Ok((share * 1e6 / median(&costs) / 1e3).round().max(1.0) * 1e3)
}

/// Latency on a schedule, from the instant a request was due.
fn latency(runners: &[Runner], effort: Effort) -> Result<(), Box<dyn Error>> {
    let rate = pace(runners, effort, 0.5)?;
    // A machine that stalls for some milliseconds spoils the p99 of only one short turn.
    let effort = effort.in_turns(SHORTER);
    let count = (rate * effort.schedule_seconds) as usize;
    let delays = interleave(runners, effort.rounds, |runner| {
        let mut load = Load::open(runner.server.address, &runner.requests, CONNECTIONS)?;
        Ok(load.open_loop(count, rate)?)
    })?;
    println!(
        "\n### Gateway, latency at {:.0} k/s on a schedule, {CONNECTIONS} connections\n",
        rate / 1e3
    );
    println!(
        "| microseconds from the instant due | p50 | p90 | p99 | p99.9 | of all: p99 | p99.9 | sent late, p99 |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (runner, rounds) in runners.iter().zip(&delays) {
        let turns = [0.5, 0.9, 0.99, 0.999].map(|at| format!("{:.0}", answered_us(rounds, at)));
        let all = [0.99, 0.999].map(|at| format!("{:.0}", of_all_us(rounds, at)));
        let late: Rounds = rounds.iter().map(|round| at_us(&round.sent_ns, 0.99)).collect();
        let (turns, all) = (turns.join(" | "), all.join(" | "));
        println!("| {} | {turns} | {all} | {:.0} |", runner.contender.name, median(&late));
    }
    if let (Some(ours), Some(nginx)) = (place(runners, OURS), place(runners, NGINX)) {
        let p99 = |n: usize| {
            delays[n].iter().map(|round| at_us(&round.answered_ns, 0.99)).collect::<Rounds>()
        };
        let turns = ratio(&p99(ours), &p99(nginx));
        let all = of_all_us(&delays[ours], 0.99) / of_all_us(&delays[nginx], 0.99);
        println!(
            "\np99 of ours is {all:.2} of nginx over all requests (target <= {OF_NGINX}: {}), and {turns:.2} turn by turn.",
            met(all, OF_NGINX)
        );
    }
    Ok(())
}

/// A quantile of the answers of all rounds, stalls of the machine included.
fn of_all_us(rounds: &[Delays], at: f64) -> f64 {
    let all: Vec<u64> = rounds.iter().flat_map(|round| round.answered_ns.iter().copied()).collect();
    at_us(&all, at)
}

/// The median over the rounds of a quantile of the answers.
fn answered_us(rounds: &[Delays], at: f64) -> f64 {
    median(&rounds.iter().map(|round| at_us(&round.answered_ns, at)).collect::<Rounds>())
}

fn at_us(delays_ns: &[u64], at: f64) -> f64 {
    quantile(&delays_ns.iter().map(|ns| *ns as f64 / 1e3).collect::<Vec<_>>(), at)
}
