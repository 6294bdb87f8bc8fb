//! Measures the waits of a well-behaved client beside abusive ones: silent, slow heads, slow
//! bodies, and no reading. A closed client reconnects.

use super::proxies::{BARE, NGINX, OURS};
use super::{answered_us, at_us, met, pace};
use crate::load::{Delays, Load};
use crate::table::{Rounds, ratio};
use crate::turns::Runner;
use crate::{CONNECTIONS, Effort};
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

/// The number of clients of each kind.
const EACH: usize = 100;
/// The interval at which slow clients send a byte.
const PAUSE: Duration = Duration::from_millis(200);
const SETTLE: Duration = Duration::from_secs(3);
/// The allowed factor between the latencies with and without abuse.
const TIMES: f64 = 2.0;

/// A kind of client: its first bytes, its next bytes, and whether it reads.
const KINDS: [(&[u8], &[u8], bool); 4] = [
    (b"", b"", true),
    (b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: ", b"x", true),
    (b"POST / HTTP/1.1\r\nhost: x\r\nx-user-id: a\r\ncontent-length: 100000\r\n\r\n", b"x", true),
    (b"GET /large HTTP/1.1\r\nhost: x\r\nx-user-id: b\r\n\r\n", b"", false),
];

/// Abusive clients, until dropped.
struct Crowd {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Crowd {
    fn gather(address: SocketAddr) -> Self {
        let stop: Arc<AtomicBool> = Arc::default();
        let stopped = stop.clone();
        let thread = spawn(move || {
            let mut clients: Vec<Option<TcpStream>> =
                (0..EACH * KINDS.len()).map(|_| None).collect();
            while !stopped.load(Relaxed) {
                for (n, client) in clients.iter_mut().enumerate() {
                    *client = step(client.take(), KINDS[n % KINDS.len()], address);
                }
                sleep(PAUSE);
            }
        });
        // All clients have connected, and their requests fill the buffers, before the measurement.
        sleep(SETTLE);
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Sends one more byte, or reconnects.
fn step(
    client: Option<TcpStream>,
    (first, more, reads): (&[u8], &[u8], bool),
    address: SocketAddr,
) -> Option<TcpStream> {
    let Some(mut stream) = client else {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.write_all(first).ok()?;
        stream.set_nonblocking(true).ok()?;
        return Some(stream);
    };
    if !more.is_empty() {
        stream.write_all(more).ok()?;
    }
    match reads.then(|| stream.read(&mut [0; 1024])) {
        None => Some(stream),
        Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => Some(stream),
        Some(_) => None,
    }
}

/// Prints the table of latencies under abuse.
pub(super) fn report(runners: &[Runner], effort: Effort) -> Result<(), Box<dyn Error>> {
    let rate = pace(runners, effort, 0.1)?;
    let count = (rate * effort.schedule_seconds) as usize;
    println!(
        "\n### Gateway, latency at {:.0} k/s beside {} clients that misbehave\n",
        rate / 1e3,
        EACH * KINDS.len()
    );
    println!(
        "| microseconds from the instant due | p50 alone | p50 beside | p99 alone | p99 beside | p50, times | p99, times |"
    );
    println!("|---|---|---|---|---|---|---|");
    let measure = |runner: &Runner| -> Result<Delays, Box<dyn Error>> {
        let mut load = Load::open(runner.server.address, &runner.requests, CONNECTIONS)?;
        Ok(load.open_loop(count, rate)?)
    };
    let mut reached = f64::NAN;
    for runner in
        runners.iter().filter(|runner| [OURS, BARE, NGINX].contains(&runner.contender.name))
    {
        let (mut alone, mut beside) = (Vec::new(), Vec::new());
        for _ in 0..effort.rounds {
            alone.push(measure(runner)?);
            let _crowd = Crowd::gather(runner.server.address);
            beside.push(measure(runner)?);
        }
        let times = |at| {
            let of = |rounds: &[Delays]| {
                rounds.iter().map(|round| at_us(&round.answered_ns, at)).collect::<Rounds>()
            };
            ratio(&of(&beside), &of(&alone))
        };
        let (p50, p99) = (times(0.5), times(0.99));
        let figure = |rounds: &[Delays], at| format!("{:.0}", answered_us(rounds, at));
        println!(
            "| {} | {} | {} | {} | {} | {p50:.2} | {p99:.2} |",
            runner.contender.name,
            figure(&alone, 0.5),
            figure(&beside, 0.5),
            figure(&alone, 0.99),
            figure(&beside, 0.99),
        );
        if runner.contender.name == OURS {
            reached = p50.max(p99);
        }
    }
    println!(
        "\nOurs waits {reached:.2} times as long (target <= {TIMES}: {}).",
        met(reached, TIMES)
    );
    Ok(())
}
