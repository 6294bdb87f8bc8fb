//! Generates load from one thread over keep-alive connections: in a closed loop, or on a schedule.

use crate::connection::Connection;
use mio::{Events, Poll};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// Read size; more than any expected answer.
const BUFFER_BYTES: usize = 16 * 1024;
/// A server without an answer for this long has failed.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Load<'a> {
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
    requests: &'a [Vec<u8>],
    next: usize,
    buffer: Vec<u8>,
}

/// The send and answer times of requests on a schedule, in nanoseconds after they were due.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    /// The lateness of the load itself. Smaller latencies of a server cannot be measured.
    pub(crate) sent_ns: Vec<u64>,
    pub(crate) answered_ns: Vec<u64>,
}

impl<'a> Load<'a> {
    /// Opens the connections, and gets one request answered on each.
    pub(crate) fn open(
        address: SocketAddr,
        requests: &'a [Vec<u8>],
        connections: usize,
    ) -> io::Result<Self> {
        Self::open_all(&[address], requests, connections)
    }

    /// Like `open`, spread over several servers.
    pub(crate) fn open_all(
        addresses: &[SocketAddr],
        requests: &'a [Vec<u8>],
        connections: usize,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let address = |token: usize| addresses[token % addresses.len()];
        let open = |token| Connection::open(address(token), poll.registry(), token);
        let connections = (0..connections).map(open).collect::<io::Result<Vec<_>>>()?;
        let events = Events::with_capacity(connections.len());
        let buffer = vec![0; BUFFER_BYTES];
        let mut load = Self { poll, events, connections, requests, next: 0, buffer };
        load.closed(load.connections.len())?;
        Ok(load)
    }

    /// Sends `count` requests, each when its connection has the answer to the previous one.
    pub(crate) fn closed(&mut self, count: usize) -> io::Result<Duration> {
        let start = Instant::now();
        let mut sent = 0;
        while sent < self.connections.len().min(count) {
            self.send(sent)?;
            sent += 1;
        }
        let mut answered = 0;
        while answered < count {
            for token in self.wait(Some(PATIENCE))? {
                if !self.receive(token)? {
                    continue;
                }
                answered += 1;
                if sent < count {
                    self.send(token)?;
                    sent += 1;
                }
            }
        }
        Ok(start.elapsed())
    }

    /// Sends `count` requests at equal intervals, `rate` per second, whether or not earlier ones
    /// are answered. A request without a free connection waits, and that wait is part of its
    /// latency.
    pub(crate) fn open_loop(&mut self, count: usize, rate: f64) -> io::Result<Delays> {
        let due = |n: usize| Duration::from_nanos((n as f64 * 1e9 / rate) as u64);
        let late_ns = |start: Instant, n| start.elapsed().saturating_sub(due(n)).as_nanos() as u64;
        let mut free: VecDeque<usize> = (0..self.connections.len()).collect();
        let mut carries = vec![0; self.connections.len()];
        let mut delays = Delays::default();
        let mut sent = 0;
        let start = Instant::now();
        while delays.answered_ns.len() < count {
            while sent < count && start.elapsed() >= due(sent) {
                let Some(token) = free.pop_front() else { break };
                carries[token] = sent;
                delays.sent_ns.push(late_ns(start, sent));
                self.send(token)?;
                sent += 1;
            }
            // Spins instead of sleeping, because waking up takes longer than the interval of
            // requests. Other runnable processes on the core go first.
            let ready = self.wait(Some(Duration::ZERO))?;
            if ready.is_empty() {
                thread::yield_now();
            }
            for token in ready {
                if self.receive(token)? {
                    delays.answered_ns.push(late_ns(start, carries[token]));
                    free.push_back(token);
                }
            }
            if sent == count && start.elapsed() > due(count) + PATIENCE {
                return Err(io::Error::other("answers are missing"));
            }
        }
        Ok(delays)
    }

    fn send(&mut self, token: usize) -> io::Result<()> {
        self.next = (self.next + 1) % self.requests.len();
        self.connections[token].send(&self.requests[self.next])
    }

    fn receive(&mut self, token: usize) -> io::Result<bool> {
        self.connections[token].receive(&mut self.buffer)
    }

    /// The connections with input.
    fn wait(&mut self, within: Option<Duration>) -> io::Result<Vec<usize>> {
        self.poll.poll(&mut self.events, within)?;
        if self.events.is_empty() && within == Some(PATIENCE) {
            return Err(io::Error::other("no answer for ten seconds"));
        }
        Ok(self.events.iter().map(|event| event.token().0).collect())
    }
}
