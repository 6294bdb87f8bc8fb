//! Tail: streams decisions to readers as they happen.
//!
//! Without a reader, a request costs one load. A reader has a filter and a queue. A decision that
//! finds the queue full or locked is skipped and counted. No request waits for a reader.

mod filter;

pub use filter::{SAMPLE_ALL, TailFilter};

use arc_swap::ArcSwap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tollgate::engine::{ObservedDecision, Source};
use tollgate_net::lock;

/// Limit of concurrent readers.
pub const READERS_MAX: usize = 16;
/// Limit of decisions queued for a reader: a tenth of a second at ten thousand a second.
const QUEUE_MAX: usize = 1_024;
/// Limit of a key; a longer key is left out of its decision.
const KEY_BYTES_MAX: usize = 512;

/// The readers of a node.
#[derive(Debug, Default)]
pub struct Tail {
    readers: ArcSwap<Vec<Arc<TailQueue>>>,
    /// The length of `readers`, readable without following a pointer.
    count: AtomicUsize,
    change_lock: Mutex<()>,
}

/// The queue of one reader.
#[derive(Debug)]
pub struct TailQueue {
    filter: TailFilter,
    queue: Mutex<VecDeque<TailDecision>>,
    seen: AtomicU64,
    skipped: AtomicU64,
}

/// A reader. Dropping it ends the subscription.
#[derive(Debug)]
pub struct TailReader {
    tail: Arc<Tail>,
    own: Arc<TailQueue>,
}

/// The answer of one limit to a request.
#[derive(Clone, Debug)]
pub struct TailDecision {
    /// The time of the decision.
    pub time_us: u64,
    /// The name of the limit.
    pub limit: Box<str>,
    /// The index of the key, if the limit has several.
    pub key_index: usize,
    /// The key; `None` if it is too long.
    pub key: Option<Box<[u8]>>,
    /// The answer of the limit.
    pub verdict: TailVerdict,
    /// The units requested.
    pub units: u64,
    /// The limit's capacity.
    pub capacity: u64,
    /// The units left.
    pub remaining: u64,
    /// The wait until the request would pass; `None` if never.
    pub retry_after_us: Option<u64>,
    /// The source of the decision.
    pub source: Source,
}

/// The answer of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailVerdict {
    /// The limit admitted the request.
    Admitted,
    /// The limit refused the request.
    Refused,
    /// The limit is in shadow mode and would have refused.
    ShadowRefused,
}

impl TailVerdict {
    /// The name in streams and filters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Refused => "refused",
            Self::ShadowRefused => "shadow_refused",
        }
    }

    fn of(decision: &ObservedDecision<'_>) -> Self {
        match (decision.refuses, decision.outcome.admitted) {
            (true, _) => Self::Refused,
            (false, true) => Self::Admitted,
            (false, false) => Self::ShadowRefused,
        }
    }
}

impl Tail {
    /// Queues decisions for the readers whose filters match. Never waits.
    #[inline]
    pub fn offer(&self, decisions: &[ObservedDecision<'_>]) {
        if self.count.load(Relaxed) > 0 {
            decisions.iter().for_each(|decision| self.offer_to_readers(decision));
        }
    }

    #[cold]
    fn offer_to_readers(&self, decision: &ObservedDecision<'_>) {
        let verdict = TailVerdict::of(decision);
        for reader in self.readers.load().iter() {
            if reader.filter.accepts(decision, verdict) {
                reader.push(decision, verdict);
            }
        }
    }

    /// Adds a reader; `None` if there are too many.
    pub fn read(self: &Arc<Self>, filter: TailFilter) -> Option<TailReader> {
        let own = Arc::new(TailQueue {
            filter,
            queue: Mutex::default(),
            seen: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
        });
        let _one_at_a_time = lock(&self.change_lock);
        let mut readers = Vec::clone(&self.readers.load());
        if readers.len() >= READERS_MAX {
            return None;
        }
        readers.push(own.clone());
        self.replace(readers);
        Some(TailReader { tail: self.clone(), own })
    }

    /// The number of readers.
    pub fn reader_count(&self) -> usize {
        self.count.load(Relaxed)
    }

    fn replace(&self, readers: Vec<Arc<TailQueue>>) {
        self.count.store(readers.len(), Relaxed);
        self.readers.store(Arc::new(readers));
    }
}

impl TailQueue {
    fn push(&self, decision: &ObservedDecision<'_>, verdict: TailVerdict) {
        let number = self.seen.fetch_add(1, Relaxed);
        let pushed = self.filter.samples(number) && self.try_push(decision, verdict);
        if !pushed {
            self.skipped.fetch_add(1, Relaxed);
        }
    }

    fn try_push(&self, decision: &ObservedDecision<'_>, verdict: TailVerdict) -> bool {
        let Ok(mut queue) = self.queue.try_lock() else { return false };
        if queue.len() >= QUEUE_MAX {
            return false;
        }
        let selected = decision.selected;
        queue.push_back(TailDecision {
            time_us: decision.now_us,
            limit: selected.limit.name.clone(),
            key_index: selected.key_index,
            key: (selected.key.len() <= KEY_BYTES_MAX).then(|| selected.key.into()),
            verdict,
            units: decision.asked,
            capacity: decision.outcome.limit,
            remaining: decision.outcome.remaining,
            retry_after_us: decision.outcome.retry_after_us,
            source: decision.source,
        });
        true
    }
}

impl TailReader {
    /// Takes the decisions since the last call, and the number of skipped ones.
    pub fn take(&self) -> (VecDeque<TailDecision>, u64) {
        let decisions = std::mem::take(&mut *lock(&self.own.queue));
        (decisions, self.own.skipped.swap(0, Relaxed))
    }
}

impl Drop for TailReader {
    fn drop(&mut self) {
        let _one_at_a_time = lock(&self.tail.change_lock);
        let mut readers = Vec::clone(&self.tail.readers.load());
        readers.retain(|reader| !Arc::ptr_eq(reader, &self.own));
        self.tail.replace(readers);
    }
}

#[cfg(test)]
mod tests;
