//! An upstream that can be overloaded: `workers exponential|bimodal`. Workers take calls from one
//! unbounded queue, oldest first, and sleep for the duration of the work. A call stays queued after
//! its client has left, as in most servers. `GET /control/MEAN_US/WORKERS` changes both numbers;
//! `GET /control/MEAN_US/WORKERS/clear` also empties the queue.
//!
//! A worker that wakes up late starts the next call at the time it should have. And durations are
//! drawn without replacement from [`DECK`] equal steps of the distribution. So the capacity is
//! `workers / mean` for each proxy, whatever else the machine does and whatever chance brings.

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Registry, Token};
use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 13\r\n\r\nHello, world!";
const LISTENER: Token = Token(usize::MAX);
/// Limit of workers.
const WORKERS_MAX: usize = 64;
/// Calls whose durations together follow the distribution exactly.
const DECK: usize = 1_000;
/// The most lateness that a worker makes up for.
const LATE_MAX: Duration = Duration::from_millis(5);

#[derive(Clone, Copy)]
enum Work {
    Exponential,
    /// Nine of ten calls take half of the mean; one takes five and a half times the mean.
    Bimodal,
}

struct QueuedCall {
    /// Empty after the connection of a departed client is dropped.
    stream: Weak<TcpStream>,
    came: Instant,
}

struct Pool {
    calls: VecDeque<QueuedCall>,
    workers: usize,
    mean: Duration,
    /// Steps of the distribution that are still to be drawn.
    deck: Vec<usize>,
    random: u64,
}

struct Shared {
    work: Work,
    pool: Mutex<Pool>,
    /// Signals a queued call.
    ready: Condvar,
    /// Signals a change of the number of workers.
    changed: Condvar,
}

struct ClientConnection {
    stream: Arc<TcpStream>,
    input: Vec<u8>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let work = match std::env::args().nth(1).as_deref() {
        Some("exponential") => Work::Exponential,
        Some("bimodal") => Work::Bimodal,
        _ => return Err("usage: workers exponential|bimodal".into()),
    };
    let mean = Duration::from_millis(10);
    let pool = Pool { calls: VecDeque::new(), workers: 8, mean, deck: Vec::new(), random: 1 };
    let (pool, ready, changed) = (Mutex::new(pool), Condvar::new(), Condvar::new());
    let shared = Arc::new(Shared { work, pool, ready, changed });
    for worker in 0..WORKERS_MAX {
        let shared = Arc::clone(&shared);
        thread::spawn(move || shared.serve(worker));
    }
    let mut listener = TcpListener::bind(([127, 0, 0, 1], 0).into())?;
    eprintln!("listening http {}", listener.local_addr()?);
    let (mut poll, mut events) = (Poll::new()?, Events::with_capacity(1024));
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let (mut connections, mut next) = (HashMap::new(), 0);
    loop {
        poll.poll(&mut events, None)?;
        for event in &events {
            match event.token() {
                LISTENER => accept(&listener, poll.registry(), &mut connections, &mut next)?,
                token => {
                    let connection = connections.get_mut(&token);
                    if connection.is_some_and(|connection| read(connection, &shared).is_err()) {
                        connections.remove(&token);
                    }
                }
            }
        }
    }
}

fn accept(
    listener: &TcpListener,
    registry: &Registry,
    connections: &mut HashMap<Token, ClientConnection>,
    next: &mut usize,
) -> io::Result<()> {
    loop {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        stream.set_nodelay(true)?;
        registry.register(&mut stream, Token(*next), Interest::READABLE)?;
        let stream = Arc::new(stream);
        connections.insert(Token(*next), ClientConnection { stream, input: Vec::new() });
        *next += 1;
    }
}

/// Reads available input; an error ends the connection.
fn read(connection: &mut ClientConnection, shared: &Shared) -> io::Result<()> {
    let mut buffer = [0; 4096];
    // Input before the end of the connection counts.
    let ended = loop {
        match (&*connection.stream).read(&mut buffer) {
            Ok(0) => break Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => connection.input.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    while let Some(end) = memchr::memmem::find(&connection.input, b"\r\n\r\n") {
        let head: Vec<u8> = connection.input.drain(..end + 4).collect();
        match head.strip_prefix(b"GET /control/") {
            Some(rest) => {
                shared.control(rest).ok_or(ErrorKind::InvalidInput)?;
                (&*connection.stream).write_all(ANSWER)?;
            }
            None => shared.push(Arc::downgrade(&connection.stream)),
        }
    }
    ended
}

impl Shared {
    fn push(&self, stream: Weak<TcpStream>) {
        let call = QueuedCall { stream, came: Instant::now() };
        self.lock().calls.push_back(call);
        self.ready.notify_one();
    }

    fn control(&self, rest: &[u8]) -> Option<()> {
        let target = str::from_utf8(rest).ok()?.split(' ').next()?;
        let mut parts = target.split('/');
        let mut pool = self.lock();
        pool.mean = Duration::from_micros(parts.next()?.parse().ok()?);
        pool.workers = parts.next()?.parse::<usize>().ok()?.min(WORKERS_MAX);
        if parts.next().is_some() {
            pool.calls.clear();
        }
        drop(pool);
        self.ready.notify_all();
        self.changed.notify_all();
        Some(())
    }

    fn serve(&self, worker: usize) {
        let mut free_at = Instant::now();
        loop {
            let (call, took) = self.next(worker);
            let earliest = Instant::now().checked_sub(LATE_MAX).unwrap_or(call.came);
            free_at = free_at.max(call.came).max(earliest) + took;
            thread::sleep(free_at.saturating_duration_since(Instant::now()));
            if let Some(stream) = call.stream.upgrade() {
                // A client that has just left gets no answer.
                (&*stream).write_all(ANSWER).ok();
            }
        }
    }

    /// The next call of a worker, and the duration of its work.
    fn next(&self, worker: usize) -> (QueuedCall, Duration) {
        let mut pool = self.lock();
        loop {
            let waits_for = match worker < pool.workers {
                true => match pool.calls.pop_front() {
                    Some(call) => return (call, pool.took(self.work)),
                    None => &self.ready,
                },
                false => &self.changed,
            };
            pool = waits_for.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    fn took(&mut self, work: Work) -> Duration {
        let quantile = (self.draw() as f64 + 0.5) / DECK as f64;
        match work {
            Work::Exponential => self.mean.mul_f64(-quantile.ln()),
            Work::Bimodal if quantile < 0.9 => self.mean / 2,
            Work::Bimodal => self.mean * 11 / 2,
        }
    }

    /// Draws one of the steps that are left of the deck.
    fn draw(&mut self) -> usize {
        if self.deck.is_empty() {
            self.deck.extend(0..DECK);
        }
        let index = self.random() % self.deck.len() as u64;
        self.deck.swap_remove(index as usize)
    }

    /// A splitmix64 number.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
