//! Metrics: the counters of a node, the text of `/metrics`, and the push to a collector.
//!
//! Counting costs a relaxed addition to a word that no other worker writes. The engine and the
//! store have counters of their own. A [`MetricsSnapshot`] copies them when `/metrics` is read.

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

/// The counters of a node, shared by all threads.
#[derive(Debug, Default)]
pub struct Metrics {
    stripes: Striped<Stripe>,
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
/// Upper bounds of the histogram's buckets. The last bucket has no bound.
#[rustfmt::skip]
const BUCKET_BOUNDS_NS: [u64; 17] = [
    US, 2 * US + US / 2, 5 * US, 10 * US, 25 * US, 50 * US, 100 * US, 250 * US, 500 * US,
    MS, 2 * MS + MS / 2, 5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 1_000 * MS,
];

/// Stripes of counters, one per thread; further threads share stripes. Threads that share a word
/// pass its cache line around, which costs more than a decision.
#[derive(Debug)]
struct Striped<T>(Box<[T]>);

const STRIPES: usize = 32;

/// The counters of one thread. Processors fetch cache lines in pairs, so stripes are aligned to two
/// lines.
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

    /// Records the duration of a decision, from a complete request to a ready answer.
    #[inline]
    pub fn observe(&self, front: Front, elapsed: Duration) {
        self.observe_n(front, elapsed, 1);
    }

    /// Records the duration of `count` decisions of one batch: each counts with the full duration.
    #[inline]
    pub fn observe_n(&self, front: Front, elapsed: Duration, count: u64) {
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BUCKET_BOUNDS_NS.partition_point(|&bound_ns| bound_ns < elapsed_ns);
        let counters = self.front_counters(front);
        add(&counters.sum_ns, elapsed_ns.saturating_mul(count));
        add(&counters.buckets[bucket], count);
    }

    /// Adds the connection counters of a listener of `front` to the page.
    pub fn register_stats(&self, front: Front, stats: Arc<Stats>) {
        lock(&self.connection_stats).push((front, stats));
    }

    /// Open connections of all front ends.
    pub fn open_connections(&self) -> u64 {
        lock(&self.connection_stats).iter().map(|(_, stats)| stats.open()).sum()
    }

    /// Counts a store failure that the engine does not count itself.
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

    /// Counts a request without a response from an upstream.
    pub fn upstream_failed(&self, why: UpstreamFailure) {
        add(&self.upstream_failures[why as usize], 1);
    }

    /// Counts a change that was refused because the audit log was not writable.
    pub fn audit_failure(&self) {
        add(&self.audit_failures, 1);
    }

    /// The response counters of an upstream; `None` means responses that came from no upstream.
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
        &self.stripes.own().fronts[front as usize]
    }
}

impl<T: Default> Default for Striped<T> {
    fn default() -> Self {
        Self((0..STRIPES).map(|_| T::default()).collect())
    }
}

impl<T> Striped<T> {
    /// The counters of this thread.
    #[inline]
    fn own(&self) -> &T {
        &self.0[thread_number() % STRIPES]
    }

    /// Sums one counter over all threads.
    fn sum(&self, counter: impl Fn(&T) -> &AtomicU64) -> u64 {
        let counts = self.0.iter().map(|stripe| counter(stripe).load(Ordering::Relaxed));
        counts.fold(0, u64::wrapping_add)
    }
}

#[inline]
fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
