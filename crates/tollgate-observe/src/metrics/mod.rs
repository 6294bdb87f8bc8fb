//! Metrics: what a node counts, the text of `/metrics`, and what a collector is sent.
//!
//! Counting costs a relaxed addition to a word that no other worker writes. The engine and the
//! store have counters of their own; a [`MetricsSnapshot`] holds them when `/metrics` is read.

mod exposition;
mod family_writer;
mod gateway;
mod labels;
mod otlp;
mod process;
mod push;
mod snapshot;
mod text;
mod tiers;

pub use exposition::ExpositionFormat;
pub use gateway::ResponseCounters;
pub use labels::{AdminDenial, Outcome, ReloadResult, UpstreamFailure};
pub use push::MetricsPusher;
pub use snapshot::{ClassMetrics, LimitCounters, MetricsSnapshot};
pub use tollgate_policy::settings::Front;

use gateway::GatewayMetrics;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tiers::TierMetrics;
use tollgate::engine::{Rules, Verdict, thread_number};
use tollgate_net::{Stats, lock};
use tollgate_policy::facts::Facts;
use tollgate_store::StoreErrorKind;

/// The counters of a node. Shared by all its threads.
#[derive(Debug)]
pub struct Metrics {
    stripes: Box<[Stripe]>,
    /// The connection counters of each listener.
    connection_stats: Mutex<Vec<(Front, Arc<Stats>)>>,
    store_errors: [AtomicU64; StoreErrorKind::ALL.len()],
    reloads: [AtomicU64; ReloadResult::ALL.len()],
    /// Whether the last reload failed.
    reload_failed: AtomicBool,
    denied: [AtomicU64; AdminDenial::ALL.len()],
    upstream_failures: [AtomicU64; UpstreamFailure::ALL.len()],
    audit_failures: AtomicU64,
    gateway: GatewayMetrics,
    tiers: TierMetrics,
}

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;
/// The upper bounds of the histogram's buckets. One more bucket has none.
#[rustfmt::skip]
const BUCKET_BOUNDS_NS: [u64; 17] = [
    US, 2 * US + US / 2, 5 * US, 10 * US, 25 * US, 50 * US, 100 * US, 250 * US, 500 * US,
    MS, 2 * MS + MS / 2, 5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 1_000 * MS,
];

/// Threads that count in one word pass its cache line around, which costs more than a decision. So
/// each thread has a stripe. Further threads share one.
const STRIPES: usize = 32;

/// The counters of one thread. Processors fetch cache lines in pairs, so two stripes are two lines
/// apart.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe {
    fronts: [FrontCounters; Front::ALL.len()],
}

/// The counters of one thread for one front end. Every request counts in the first cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct FrontCounters {
    outcomes: [AtomicU64; Outcome::ALL.len()],
    sum_ns: AtomicU64,
    buckets: [AtomicU64; BUCKET_BOUNDS_NS.len() + 1],
}

impl Metrics {
    /// Counters at zero.
    pub fn new() -> Self {
        Self {
            stripes: (0..STRIPES).map(|_| Stripe::default()).collect(),
            connection_stats: Mutex::default(),
            store_errors: Default::default(),
            reloads: Default::default(),
            reload_failed: AtomicBool::new(false),
            denied: Default::default(),
            upstream_failures: Default::default(),
            audit_failures: AtomicU64::new(0),
            gateway: GatewayMetrics::default(),
            tiers: TierMetrics::default(),
        }
    }

    /// Counts a request to `front`.
    #[inline]
    pub fn count_request(&self, front: Front, outcome: Outcome) {
        self.count_requests(front, outcome, 1);
    }

    /// Counts `count` requests to `front` with the same outcome.
    #[inline]
    pub fn count_requests(&self, front: Front, outcome: Outcome, count: u64) {
        if count > 0 {
            add(&self.front_counters(front).outcomes[outcome as usize], count);
        }
    }

    /// Counts how long a decision took, from a request read to an answer ready to send.
    #[inline]
    pub fn observe(&self, front: Front, elapsed: Duration) {
        self.observe_n(front, elapsed, 1);
    }

    /// Counts how long `count` decisions took that were made together: each took all of it.
    #[inline]
    pub fn observe_n(&self, front: Front, elapsed: Duration, count: u64) {
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BUCKET_BOUNDS_NS.partition_point(|&bound_ns| bound_ns < elapsed_ns);
        let counters = self.front_counters(front);
        add(&counters.sum_ns, elapsed_ns.saturating_mul(count));
        add(&counters.buckets[bucket], count);
    }

    /// Adds counters of the connections of `front` to the page.
    pub fn register_stats(&self, front: Front, stats: Arc<Stats>) {
        lock(&self.connection_stats).push((front, stats));
    }

    /// Open connections of all front ends.
    pub fn open_connections(&self) -> u64 {
        lock(&self.connection_stats).iter().map(|(_, stats)| stats.open()).sum()
    }

    /// Counts a failure of the store that the engine does not count itself.
    pub fn store_error(&self, kind: StoreErrorKind) {
        add(&self.store_errors[kind as usize], 1);
    }

    /// Counts a reload.
    pub fn reload(&self, result: ReloadResult) {
        add(&self.reloads[result as usize], 1);
        self.reload_failed.store(result == ReloadResult::Error, Ordering::Relaxed);
    }

    /// Counts a call that the admin API denied.
    pub fn admin_denied(&self, why: AdminDenial) {
        add(&self.denied[why as usize], 1);
    }

    /// Counts a request that no upstream answered.
    pub fn upstream_failed(&self, why: UpstreamFailure) {
        add(&self.upstream_failures[why as usize], 1);
    }

    /// Counts a change that was refused because it could not be written to the audit log.
    pub fn audit_failure(&self) {
        add(&self.audit_failures, 1);
    }

    /// The counters of responses of an upstream, or of those that no upstream gave.
    pub fn responses(&self, upstream: Option<&str>) -> Arc<ResponseCounters> {
        self.gateway.upstream(upstream)
    }

    /// Counts a decision of the gateway by the tier of its request.
    #[inline]
    pub fn count_tier(&self, rules: &Rules, facts: &Facts<'_>, verdict: &Verdict<'_>) {
        self.tiers.count(rules, facts, verdict);
    }

    #[inline]
    fn front_counters(&self, front: Front) -> &FrontCounters {
        &self.stripes[thread_number() % STRIPES].fronts[front as usize]
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

#[inline]
fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
