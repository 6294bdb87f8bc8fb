//! Clients of an overloaded service: each sends one request at a random time, independent of the
//! others, and gives up after a second.

use crate::connection::Connection;
use mio::{Events, Poll};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// The patience of a client, from the instant its request was due.
const PATIENCE_US: u64 = 1_000_000;
/// The longest pause of the load: requests are at most this late.
const PAUSE_US: u64 = 200;
/// Limit of requests sent before answers are read.
const BURST: usize = 64;
/// One in this many requests is critical.
const CRITICAL_PART: u64 = 5;
const BUFFER_BYTES: usize = 16 * 1024;

/// Critical requests, and all others.
const REQUESTS: [&[u8]; 2] = [
    b"GET /critical HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /normal HTTP/1.1\r\nHost: localhost\r\n\r\n",
];

/// One request, and its fate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) due_us: u64,
    pub(super) is_critical: bool,
    pub(super) fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Pending,
    /// Answered with 200, this many microseconds after it was due.
    Served(u64),
    Refused,
    /// The client gave up, or its connection broke.
    Lost,
}

/// The rate in requests per second, from a given second on.
pub(super) type Pace = [(u64, f64)];

struct Clients {
    address: SocketAddr,
    poll: Poll,
    connections: Vec<Option<Connection>>,
    /// The call of each connection.
    carries: Vec<Option<usize>>,
    free: Vec<usize>,
    calls: Vec<Call>,
    /// Calls in flight, oldest first, with their connections.
    sent: VecDeque<(usize, usize)>,
}

/// Sends requests for `seconds`, and waits until the last one is answered or given up.
pub(super) fn run(
    address: SocketAddr,
    pace: &Pace,
    seconds: u64,
    seed: u64,
) -> io::Result<Vec<Call>> {
    let mut clients = Clients {
        address,
        poll: Poll::new()?,
        connections: Vec::new(),
        carries: Vec::new(),
        free: Vec::new(),
        calls: Vec::new(),
        sent: VecDeque::new(),
    };
    let schedule = schedule(pace, seconds, seed);
    let (mut events, mut buffer) = (Events::with_capacity(1024), vec![0; BUFFER_BYTES]);
    let (mut next, start) = (0, Instant::now());
    while next < schedule.len() || !clients.sent.is_empty() {
        let now_us = start.elapsed().as_micros() as u64;
        let due = schedule[next..].iter().take_while(|call| call.due_us <= now_us).take(BURST);
        for call in due.clone() {
            // A request whose client would have given up by now is not sent.
            let is_late = call.due_us + PATIENCE_US < now_us;
            if is_late || clients.send(*call).is_err() {
                clients.calls.push(Call { fate: Fate::Lost, ..*call });
            }
        }
        next += due.count();
        clients.give_up(now_us);
        clients.poll.poll(&mut events, Some(Duration::ZERO))?;
        if events.is_empty() {
            let due_us = schedule.get(next).map_or(u64::MAX, |call| call.due_us);
            thread::sleep(Duration::from_micros(due_us.saturating_sub(now_us).min(PAUSE_US)));
        }
        let now_us = start.elapsed().as_micros() as u64;
        for event in &events {
            clients.receive(event.token().0, now_us, &mut buffer);
        }
    }
    Ok(clients.calls)
}

/// The times of requests, with exponential intervals.
fn schedule(pace: &Pace, seconds: u64, seed: u64) -> Vec<Call> {
    let (mut random, mut due_s, mut calls) = (seed, 0.0, Vec::new());
    loop {
        let rate = pace.iter().rev().find(|step| step.0 as f64 <= due_s).map_or(1.0, |step| step.1);
        due_s += -uniform(&mut random).ln() / rate;
        if due_s >= seconds as f64 {
            return calls;
        }
        let is_critical = uniform(&mut random) * (CRITICAL_PART as f64) < 1.0;
        calls.push(Call { due_us: (due_s * 1e6) as u64, is_critical, fate: Fate::Pending });
    }
}

impl Clients {
    fn send(&mut self, call: Call) -> io::Result<()> {
        let request = REQUESTS[usize::from(!call.is_critical)];
        loop {
            let (token, is_new) = match self.free.pop() {
                Some(token) => (token, false),
                None => (self.open()?, true),
            };
            // Replaces a connection that the server has closed meanwhile.
            match self.connections[token].as_mut().map(|connection| connection.send(request)) {
                Some(Ok(())) => {
                    let id = self.calls.len();
                    self.calls.push(call);
                    self.carries[token] = Some(id);
                    self.sent.push_back((id, token));
                    return Ok(());
                }
                Some(Err(error)) if is_new => return Err(error),
                _ => self.connections[token] = None,
            }
        }
    }

    fn open(&mut self) -> io::Result<usize> {
        let token = self.connections.len();
        let connection = Connection::open(self.address, self.poll.registry(), token)?;
        self.connections.push(Some(connection));
        self.carries.push(None);
        Ok(token)
    }

    fn receive(&mut self, token: usize, now_us: u64, buffer: &mut [u8]) {
        let Some(connection) = &mut self.connections[token] else { return };
        let fate = |due_us: u64, status| match status {
            200 => Fate::Served(now_us.saturating_sub(due_us)),
            _ => Fate::Refused,
        };
        match connection.receive_status(buffer) {
            Ok(None) => {}
            Ok(Some(status)) => {
                if let Some(id) = self.carries[token].take() {
                    self.calls[id].fate = fate(self.calls[id].due_us, status);
                }
                self.free.push(token);
            }
            Err(_) => self.close(token),
        }
    }

    fn close(&mut self, token: usize) {
        self.connections[token] = None;
        self.free.retain(|free| *free != token);
        if let Some(id) = self.carries[token].take() {
            self.calls[id].fate = Fate::Lost;
        }
    }

    fn give_up(&mut self, now_us: u64) {
        while let Some(&(id, token)) = self.sent.front() {
            let is_pending = self.calls[id].fate == Fate::Pending;
            if is_pending && now_us < self.calls[id].due_us + PATIENCE_US {
                return;
            }
            if is_pending {
                self.close(token);
            }
            self.sent.pop_front();
        }
    }
}

/// A splitmix64 number above 0 and up to 1.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (((mixed ^ (mixed >> 31)) >> 11) + 1) as f64 / (1_u64 << 53) as f64
}
