//! What a node counts of itself, and how `/metrics` shows it.
//!
//! Counting costs a relaxed addition to a word that no other worker writes. What the engine and the
//! store count themselves is handed over as a [`MetricsSnapshot`] when somebody asks.

mod exposition;
mod gather;
mod process;
mod reading;
mod sheet;
mod stripe;

pub use exposition::ExpositionFormat;
pub(crate) use gather::snapshot;
pub use reading::{LeaseCounters, LimitCounters, MetricsSnapshot};
pub use tollgate_policy::settings::Front;

use crate::net::Stats;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use stripe::STRIPES;
use tollgate_store::StoreErrorKind;

/// The counters of a node. Shared by all its threads.
#[derive(Debug)]
pub struct Metrics {
    stripes: Box<[Stripe]>,
    connections: [ConnectionCounters; FRONTS.len()],
    /// What the front ends' own threads count, from when they were started.
    connection_stats: Mutex<Vec<(Front, Arc<Stats>)>>,
    store_errors: [AtomicU64; StoreErrorKind::ALL.len()],
    reloads: [AtomicU64; ReloadResult::ALL.len()],
    denied: [AtomicU64; AdminDenial::ALL.len()],
    upstream_failures: [AtomicU64; UpstreamFailure::ALL.len()],
    audit_failures: AtomicU64,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// Decided: the client may go on.
    Admitted,
    /// Decided: a limit said no.
    Refused,
    /// Not decided: the store failed, and a limit is closed then.
    FailClosed,
    /// Done, and nothing was to be decided: a settlement, a cancellation, an admin call.
    Ok,
    /// Not decided: the request makes no sense, and is the client's to mend.
    Invalid,
    /// Not decided: something went wrong here.
    Error,
    /// Not answered, decided or not: whoever asked has gone.
    Abandoned,
}

/// What became of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReloadResult {
    /// The new file is in force.
    Ok,
    /// The new file is bad and the last good one stays.
    Error,
}

/// Why the admin API turned somebody away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdminDenial {
    /// No token is configured, so nobody can have it.
    Disabled,
    /// No token was sent.
    Missing,
    /// Another token was sent.
    Wrong,
    /// Too many wrong ones came from there before.
    Limited,
    /// The call names a host that the listener does not answer to.
    Host,
}

/// Why a server behind the gateway gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UpstreamFailure {
    /// None could be reached.
    Connect,
    /// It broke off, or made no sense.
    Protocol,
    /// It took too long.
    Timeout,
}

/// The upper ends of the histogram's buckets but the last, which has none.
const BUCKET_BOUNDS_NS: [u64; 17] = [
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    1_000_000_000,
];

const FRONTS: [Front; 5] = [Front::Gateway, Front::Http, Front::Grpc, Front::Resp, Front::Admin];

/// What one thread counts. Processors fetch cache lines in pairs, so two stripes are two lines
/// apart.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe {
    fronts: [FrontCounters; FRONTS.len()],
}

/// What one thread counts for one front end: the first line for every request, then a word for how
/// long it took.
#[derive(Debug, Default)]
#[repr(align(64))]
struct FrontCounters {
    outcomes: [AtomicU64; Outcome::ALL.len()],
    sum_ns: AtomicU64,
    buckets: [AtomicU64; BUCKET_BOUNDS_NS.len() + 1],
}

/// Connections of one front end; they come too seldom to need stripes.
#[derive(Debug, Default)]
struct ConnectionCounters {
    opened: AtomicU64,
    closed: AtomicU64,
    accept_errors: AtomicU64,
}

impl Metrics {
    /// Counters that stand at zero.
    pub fn new() -> Self {
        Self {
            stripes: (0..STRIPES).map(|_| Stripe::default()).collect(),
            connections: Default::default(),
            connection_stats: Mutex::default(),
            store_errors: Default::default(),
            reloads: Default::default(),
            denied: Default::default(),
            upstream_failures: Default::default(),
            audit_failures: AtomicU64::new(0),
        }
    }

    /// Counts a request to `front`.
    #[inline]
    pub fn count_request(&self, front: Front, outcome: Outcome) {
        self.count_requests(front, outcome, 1);
    }

    /// Counts so many requests to `front`, all with this outcome.
    #[inline]
    pub fn count_requests(&self, front: Front, outcome: Outcome, count: u64) {
        if count > 0
            && let Some(cells) = self.front_counters(front)
        {
            cells.outcomes[outcome as usize].fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Counts how long a decision took, from a request read to an answer ready to send.
    #[inline]
    pub fn observe(&self, front: Front, elapsed: Duration) {
        self.observe_n(front, elapsed, 1);
    }

    /// Counts how long so many decisions took that were made together: each took all of it.
    #[inline]
    pub fn observe_n(&self, front: Front, elapsed: Duration, count: u64) {
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BUCKET_BOUNDS_NS.partition_point(|&bound_ns| bound_ns < elapsed_ns);
        if let Some(cells) = self.front_counters(front) {
            cells.sum_ns.fetch_add(elapsed_ns.saturating_mul(count), Ordering::Relaxed);
            cells.buckets[bucket].fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Counts a connection that was accepted. Each is followed by one
    /// [`connection_closed`](Self::connection_closed).
    pub fn connection_opened(&self, front: Front) {
        if let Some(at) = front_index(front) {
            self.connections[at].opened.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a connection that ended.
    pub fn connection_closed(&self, front: Front) {
        if let Some(at) = front_index(front) {
            self.connections[at].closed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Shows what is counted for the connections of `front` by whoever serves them.
    pub fn register_stats(&self, front: Front, stats: Arc<Stats>) {
        self.connection_stats.lock().unwrap_or_else(PoisonError::into_inner).push((front, stats));
    }

    /// Connections of all front ends that are open now.
    pub(crate) fn open_connections(&self) -> usize {
        let served = self.connection_stats.lock().unwrap_or_else(PoisonError::into_inner);
        served.iter().map(|(_, stats)| stats.open()).sum()
    }

    /// Counts a connection that could not be accepted.
    pub fn accept_error(&self, front: Front) {
        if let Some(at) = front_index(front) {
            self.connections[at].accept_errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a failure of the store that the engine does not count itself.
    pub fn store_error(&self, kind: StoreErrorKind) {
        if let Some(at) = StoreErrorKind::ALL.iter().position(|&known| known == kind) {
            self.store_errors[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a reload.
    pub fn reload(&self, result: ReloadResult) {
        self.reloads[result as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call of the admin API that was turned away.
    pub fn admin_denied(&self, why: AdminDenial) {
        self.denied[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that a server behind the gateway did not answer.
    pub fn upstream_failed(&self, why: UpstreamFailure) {
        self.upstream_failures[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a change that was refused, since it could not be written to the audit log.
    pub fn audit_failure(&self) {
        self.audit_failures.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    fn front_counters(&self, front: Front) -> Option<&FrontCounters> {
        front_index(front).map(|at| &self.stripes[stripe::current()].fronts[at])
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Where a front end stands in `FRONTS`.
#[inline]
fn front_index(front: Front) -> Option<usize> {
    FRONTS.iter().position(|&known| known == front)
}

impl Outcome {
    /// Every outcome, in the order in which they are declared.
    pub const ALL: [Self; 7] = [
        Self::Admitted,
        Self::Refused,
        Self::FailClosed,
        Self::Ok,
        Self::Invalid,
        Self::Error,
        Self::Abandoned,
    ];

    /// The word of the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Refused => "refused",
            Self::FailClosed => "fail_closed",
            Self::Ok => "ok",
            Self::Invalid => "invalid",
            Self::Error => "error",
            Self::Abandoned => "abandoned",
        }
    }
}

impl ReloadResult {
    /// Both, in the order in which they are declared.
    pub const ALL: [Self; 2] = [Self::Ok, Self::Error];

    /// The word of the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
        }
    }
}

impl AdminDenial {
    /// Every reason, in the order in which they are declared.
    pub const ALL: [Self; 5] =
        [Self::Disabled, Self::Missing, Self::Wrong, Self::Limited, Self::Host];

    /// The word of the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Missing => "missing",
            Self::Wrong => "wrong",
            Self::Limited => "limited",
            Self::Host => "host",
        }
    }
}

impl UpstreamFailure {
    /// Every reason, in the order in which they are declared.
    pub const ALL: [Self; 3] = [Self::Connect, Self::Protocol, Self::Timeout];

    /// The word of the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Protocol => "protocol",
            Self::Timeout => "timeout",
        }
    }
}
