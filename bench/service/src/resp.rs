//! Measures processor time per command of the Redis protocol, one at a time and in pipelines.

use crate::closed::{Turn, costs, each};
use crate::contender::{CELL, FLOOR_RESP, OURS_RESP, Programs, THROTTLECRAB_RESP};
use crate::table::{median, ratio, spread, verdict};
use crate::turns::{Runner, interleave, start};
use crate::{CONNECTIONS, Effort};
use memchr::memchr_iter;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Commands in flight per connection, connections, and the target for Tollgate: a ratio, and its
/// reference.
const SHAPES: [(usize, usize, f64, &str); 3] =
    [(1, CONNECTIONS, 1.1, FLOOR_RESP), (16, CONNECTIONS, 0.3, CELL), (64, CONNECTIONS, 0.2, CELL)];
/// Lines of a reply: an array of five integers.
const LINES: usize = 6;
const PATIENCE: Duration = Duration::from_secs(10);
const BUFFER_BYTES: usize = 64 * 1024;

/// Prints a table for each depth.
pub(crate) fn report(programs: &Programs, effort: Effort) -> Result<(), Box<dyn Error>> {
    let names = [OURS_RESP, FLOOR_RESP, THROTTLECRAB_RESP, CELL];
    let runners = start(programs, &names, |contender| contender);
    for (depth, connections, target, of) in SHAPES {
        // About the same duration for each depth.
        let commands = effort.requests * depth.min(12);
        let turn = |runner: &Runner| turn(runner, connections, depth, commands);
        interleave(&runners, 1, turn)?;
        let figures = interleave(&runners, effort.rounds, turn)?;
        print(depth, connections, &runners, &figures, (target, of));
    }
    Ok(())
}

fn turn(
    runner: &Runner,
    connections: usize,
    depth: usize,
    commands: usize,
) -> Result<Turn, Box<dyn Error>> {
    let mut load = Load::open(runner.server.address, &runner.requests, connections, depth)?;
    load.run(connections)?;
    let batches = commands / depth;
    let before = runner.server.cpu_seconds();
    let seconds = load.run(batches)?.as_secs_f64();
    let cpu = runner.server.cpu_seconds() - before;
    Ok(Turn::new(cpu, seconds, batches * depth))
}

fn print(
    depth: usize,
    connections: usize,
    runners: &[Runner],
    figures: &[Vec<Turn>],
    (target, of): (f64, &str),
) {
    println!("\n### RESP, {connections} connections, {depth} at a time\n");
    println!("| | s/M | spread | k/s | of the core | of the floor | of redis-cell | target | |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let costs = costs(figures);
    let place = |name: &str| runners.iter().position(|runner| runner.contender.name == name);
    for (n, (runner, turns)) in runners.iter().zip(figures).enumerate() {
        let share = |name| place(name).map_or(f64::NAN, |base| ratio(&costs[n], &costs[base]));
        let target = match runner.contender.name == OURS_RESP {
            true => verdict(share(of), target, &format!(" of {of}")),
            false => " | ".into(),
        };
        println!(
            "| {} | {:.2} | {} | {:.0} | {:.0} % | {:.2} | {:.2} | {target} |",
            runner.contender.name,
            median(&costs[n]),
            spread(&costs[n], 2),
            each(turns, |turn| turn.k_per_s),
            each(turns, |turn| turn.busy * 100.0),
            share(FLOOR_RESP),
            share(CELL),
        );
    }
}

/// Connections that send the next batch once the last one is answered.
pub(crate) struct Load<'a> {
    poll: Poll,
    events: Events,
    /// The connections, with the missing lines of their replies.
    connections: Vec<(TcpStream, usize)>,
    requests: &'a [Vec<u8>],
    next: usize,
    depth: usize,
    batch: Vec<u8>,
    buffer: Vec<u8>,
}

impl<'a> Load<'a> {
    pub(crate) fn open(
        address: SocketAddr,
        requests: &'a [Vec<u8>],
        connections: usize,
        depth: usize,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let open = |token| {
            let stream = std::net::TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(token), Interest::READABLE)?;
            Ok((stream, 0))
        };
        let connections = (0..connections).map(open).collect::<io::Result<Vec<_>>>()?;
        let events = Events::with_capacity(connections.len());
        let (batch, buffer) = (Vec::new(), vec![0; BUFFER_BYTES]);
        Ok(Self { poll, events, connections, requests, next: 0, depth, batch, buffer })
    }

    /// Sends this many batches.
    pub(crate) fn run(&mut self, batches: usize) -> io::Result<Duration> {
        let start = Instant::now();
        let mut sent = 0;
        while sent < self.connections.len().min(batches) {
            self.send(sent)?;
            sent += 1;
        }
        let mut answered = 0;
        while answered < batches {
            self.poll.poll(&mut self.events, Some(PATIENCE))?;
            if self.events.is_empty() {
                return Err(io::Error::other("no answer for ten seconds"));
            }
            let ready: Vec<usize> = self.events.iter().map(|event| event.token().0).collect();
            for token in ready {
                if self.receive(token)? {
                    answered += 1;
                    if sent < batches {
                        self.send(token)?;
                        sent += 1;
                    }
                }
            }
        }
        Ok(start.elapsed())
    }

    fn send(&mut self, token: usize) -> io::Result<()> {
        self.batch.clear();
        for _ in 0..self.depth {
            self.next = (self.next + 1) % self.requests.len();
            self.batch.extend_from_slice(&self.requests[self.next]);
        }
        let (stream, lines) = &mut self.connections[token];
        *lines = self.depth * LINES;
        match stream.write(&self.batch)? {
            written if written == self.batch.len() => Ok(()),
            _ => Err(io::Error::other("no room for a batch")),
        }
    }

    /// Whether everything is answered. Any reply except integers ends the measurement.
    fn receive(&mut self, token: usize) -> io::Result<bool> {
        let (stream, lines) = &mut self.connections[token];
        let read = match stream.read(&mut self.buffer) {
            Ok(0) => return Err(io::Error::other("the server closed a connection")),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        let answers = &self.buffer[..read];
        if answers[0] == b'-' {
            return Err(io::Error::other(String::from_utf8_lossy(answers).into_owned()));
        }
        *lines = lines.saturating_sub(memchr_iter(b'\n', answers).count());
        Ok(*lines == 0)
    }
}
