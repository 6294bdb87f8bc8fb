//! Open-loop load: requests are sent when they are due, whether or not earlier ones were answered.
//! Latency counts from the due time.

use crate::clock::now_us;
use crate::http::{Answer, Connection};
use crate::node::body;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::task::LocalSet;

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct LoadRequest {
    /// The index of the node.
    pub node: usize,
    /// The path, which chooses the limit.
    pub path: &'static str,
    /// The user, who is the key.
    pub user: u32,
    /// The cost.
    pub cost: u64,
}

/// The kind of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The store admitted the request.
    Admitted,
    /// The store or a node's deny cache refused the request.
    Refused,
    /// The store did not decide: the failure policy is open.
    FailOpen,
    /// The store did not decide: the failure policy is closed.
    FailClosed,
    /// The node's local share admitted the request.
    LocalAdmitted,
    /// The node's local share refused the request.
    LocalRefused,
    /// An unexpected response.
    Wrong(u16),
    /// No response.
    Lost,
}

/// A finished request.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The request.
    pub ask: LoadRequest,
    /// The time at which the request was due.
    pub due_us: u64,
    /// The time at which it was sent; the decision fell between this and `received_us`.
    pub sent_us: u64,
    /// The time at which the response arrived.
    pub received_us: u64,
    /// The kind of the response.
    pub outcome: Outcome,
    /// How often the request was sent to another node, because a node did not listen.
    pub resent: u32,
}

/// The settings of the load.
#[derive(Clone, Copy, Debug)]
pub struct LoadSettings {
    /// Requests per second.
    pub per_second: u64,
    /// The most requests in total.
    pub requests_max: u64,
    /// The most requests in flight. Without a bound, a machine that is too slow for the load would
    /// show only that.
    pub in_flight_max: u64,
    /// The time without a response after which a request is lost.
    pub timeout: Duration,
}

/// A running load.
#[derive(Debug)]
pub struct Load {
    stop: Arc<AtomicBool>,
    samples: Arc<Mutex<Vec<Sample>>>,
    thread: Option<JoinHandle<u64>>,
}

impl Load {
    /// Starts a load. `pick(n)` returns the `n`th request.
    pub fn start(nodes: Vec<SocketAddr>, pace: LoadSettings, pick: fn(u64) -> LoadRequest) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let samples = Arc::new(Mutex::new(Vec::new()));
        let (stopped, seen) = (stop.clone(), samples.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime");
            LocalSet::new().block_on(&runtime, run(nodes, pace, pick, stopped, seen))
        });
        Self { stop, samples, thread: Some(thread) }
    }

    /// The number of finished requests.
    pub fn answered(&self) -> usize {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Stops sending and waits for requests in flight. Returns all requests, and the most that were
    /// in flight at once.
    pub fn end(mut self) -> (Vec<Sample>, u64) {
        self.stop.store(true, Relaxed);
        let most = self.thread.take().map(|thread| thread.join().expect("the load goes on"));
        let samples =
            std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner));
        (samples, most.unwrap_or(0))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}

type Pool = RefCell<BTreeMap<usize, Vec<Connection>>>;

async fn run(
    nodes: Vec<SocketAddr>,
    pace: LoadSettings,
    pick: fn(u64) -> LoadRequest,
    stop: Arc<AtomicBool>,
    samples: Arc<Mutex<Vec<Sample>>>,
) -> u64 {
    let (nodes, pool) = (Rc::new(nodes), Rc::new(Pool::default()));
    let under_way = Rc::new(Cell::new(0_u64));
    let (start_us, mut next, mut most_under_way) = (now_us(), 0_u64, 0);
    let LoadSettings { per_second, requests_max: most, timeout: patience, .. } = pace;
    while !stop.load(Relaxed) && next < most {
        let due = |n: u64| start_us + n * 1_000_000 / per_second;
        let is_free = || under_way.get() < pace.in_flight_max;
        while next < most && due(next) <= now_us() && is_free() {
            let (ask, due_us) = (pick(next), due(next));
            let (nodes, pool) = (nodes.clone(), pool.clone());
            let (samples, count) = (samples.clone(), under_way.clone());
            count.set(count.get() + 1);
            most_under_way = most_under_way.max(count.get());
            tokio::task::spawn_local(async move {
                let sample = send_one(&nodes, &pool, ask, due_us, patience).await;
                samples.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
                count.set(count.get() - 1);
            });
            next += 1;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    while under_way.get() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    most_under_way
}

/// Sends one request. If a node does not listen, another node gets it, as behind a load balancer.
async fn send_one(
    nodes: &[SocketAddr],
    pool: &Pool,
    ask: LoadRequest,
    due_us: u64,
    patience: Duration,
) -> Sample {
    let sent_us = now_us();
    let (mut outcome, mut moved) = (Outcome::Lost, 0);
    for turn in 0..nodes.len() {
        let node = (ask.node + turn) % nodes.len();
        match tokio::time::timeout(patience, exchange(nodes[node], node, pool, ask)).await {
            Ok(Ok(answer)) => {
                outcome = judge(&answer);
                break;
            }
            // Nothing was sent, so another node may be tried.
            Ok(Err(ExchangeError::Unsent)) => moved += 1,
            Ok(Err(ExchangeError::Unanswered)) | Err(_) => break,
        }
    }
    Sample { ask, due_us, sent_us, received_us: now_us(), outcome, resent: moved }
}

enum ExchangeError {
    /// The connection could not be opened.
    Unsent,
    /// The connection closed before the response.
    Unanswered,
}

async fn exchange(
    address: SocketAddr,
    node: usize,
    pool: &Pool,
    ask: LoadRequest,
) -> Result<Answer, ExchangeError> {
    let idle = || pool.borrow_mut().entry(node).or_default().pop();
    let kept = std::iter::from_fn(idle).find(|connection| !connection.is_over());
    let mut connection = match kept {
        Some(connection) => connection,
        None => Connection::open(address).await.map_err(|_| ExchangeError::Unsent)?,
    };
    let body = body(&ask.user.to_string(), ask.path, ask.cost);
    let answer =
        connection.post("/v1/check", &body).await.map_err(|_| ExchangeError::Unanswered)?;
    if !answer.is_last {
        pool.borrow_mut().entry(node).or_default().push(connection);
    }
    Ok(answer)
}

fn judge(answer: &Answer) -> Outcome {
    match (answer.status, answer.source.as_deref()) {
        (200, None) => Outcome::Admitted,
        (200, Some("fail-open")) => Outcome::FailOpen,
        (200, Some("local-fallback")) => Outcome::LocalAdmitted,
        (429, Some("local-fallback")) => Outcome::LocalRefused,
        (429, None | Some("deny-cache" | "blocked")) => Outcome::Refused,
        (503, Some("fail-closed")) if answer.retry_after.as_deref() == Some("1") => {
            Outcome::FailClosed
        }
        (status, _) => Outcome::Wrong(status),
    }
}

impl Outcome {
    /// Whether the response came without the store.
    pub fn is_without_store(self) -> bool {
        !matches!(self, Self::Admitted | Self::Refused)
    }

    /// Whether the outcome is neither a decision nor a response of the failure policy.
    pub fn is_error(self) -> bool {
        matches!(self, Self::Wrong(_) | Self::Lost)
    }
}
