//! Responses of the gateway: by upstream, by status class, and their duration.

use super::family_writer::{FamilyType, FamilyWriter, Seconds, buckets};
use super::{MS, Striped, add, lock};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// Upper bounds of the histogram's buckets. The last bucket has no bound.
const BUCKET_BOUNDS_NS: [u64; 14] = [
    MS,
    2 * MS + MS / 2,
    5 * MS,
    10 * MS,
    25 * MS,
    50 * MS,
    100 * MS,
    250 * MS,
    500 * MS,
    1_000 * MS,
    2_500 * MS,
    5_000 * MS,
    10_000 * MS,
    30_000 * MS,
];
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// The label of responses that came from no upstream.
const NO_UPSTREAM: &str = "none";

/// The counters of all upstreams. Only the policy names upstreams, so clients cannot add label
/// values. Upstreams of an earlier file keep their counters: a counter never decreases.
#[derive(Debug)]
pub(super) struct GatewayMetrics(Mutex<BTreeMap<Box<str>, Arc<ResponseCounters>>>);

/// The counters of one upstream.
#[derive(Debug, Default)]
pub struct ResponseCounters(Striped<ResponseStripe>);

/// The counters of one thread for one upstream.
#[derive(Debug, Default)]
#[repr(align(128))]
struct ResponseStripe {
    classes: [AtomicU64; CLASSES.len()],
    sum_ns: AtomicU64,
    buckets: [AtomicU64; BUCKET_BOUNDS_NS.len() + 1],
}

impl ResponseCounters {
    /// Counts a response: its status, and the time until its head was ready.
    #[inline]
    pub fn count(&self, status: u16, elapsed_us: u64) {
        let stripe = self.0.own();
        let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
        let elapsed_ns = elapsed_us.saturating_mul(1_000);
        let bucket = BUCKET_BOUNDS_NS.partition_point(|&bound_ns| bound_ns < elapsed_ns);
        add(&stripe.classes[class], 1);
        add(&stripe.sum_ns, elapsed_ns);
        add(&stripe.buckets[bucket], 1);
    }
}

impl Default for GatewayMetrics {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::from([(NO_UPSTREAM.into(), Arc::default())])))
    }
}

impl GatewayMetrics {
    /// The counters of an upstream; `None` means responses that came from no upstream.
    pub(super) fn upstream(&self, name: Option<&str>) -> Arc<ResponseCounters> {
        let name = name.unwrap_or(NO_UPSTREAM);
        let mut counters = lock(&self.0);
        match counters.get(name) {
            Some(known) => known.clone(),
            None => counters.entry(name.into()).or_default().clone(),
        }
    }

    pub(super) fn write(&self, page: &mut FamilyWriter<'_>) {
        let counters: Vec<_> =
            lock(&self.0).iter().map(|(name, one)| (name.clone(), one.clone())).collect();
        let responses = counters.iter().flat_map(|(name, one)| {
            CLASSES.into_iter().enumerate().map(move |(class, word)| {
                let labels = [("upstream", &**name), ("class", word)];
                (labels, one.0.sum(|stripe| &stripe.classes[class]))
            })
        });
        let help = "Responses of the gateway by upstream and class of status.";
        page.family(FamilyType::Counter, "tollgate_gateway_responses", help, responses);
        let histograms = counters.iter().map(|(name, one)| {
            let count = |bucket: usize| one.0.sum(|stripe| &stripe.buckets[bucket]);
            let sum = Seconds(one.0.sum(|stripe| &stripe.sum_ns));
            (("upstream", &**name), sum, buckets(&BUCKET_BOUNDS_NS, count))
        });
        let help = "Seconds from a complete request to the head of its response.";
        page.histograms("tollgate_gateway_seconds", help, histograms);
    }
}
