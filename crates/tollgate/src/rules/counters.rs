//! Counters of each limit's answers, striped so that no two cores write to the same cache line.

use crate::engine::Source;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Number of stripes; further threads share them.
const STRIPES: usize = 8;

/// The counted answers of one limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// The limit admitted the request; another limit may have refused it.
    pub admitted: u64,
    /// The limit refused the request.
    pub refused: u64,
    /// The limit is in shadow mode and would have refused.
    pub shadow_refused: u64,
    /// The store failed, and the limit admitted.
    pub fail_open: u64,
    /// The store failed, and the limit refused.
    pub fail_closed: u64,
    /// The store failed, and this node admitted by itself.
    pub local_admitted: u64,
    /// The store failed, and this node refused by itself.
    pub local_refused: u64,
    /// The deny cache answered; also counted as [`refused`](Self::refused).
    pub deny_cache_hits: u64,
}

impl Counts {
    /// Adds other counts. A limit of the file may have the name of an inline limit.
    pub(crate) fn add(&mut self, other: &Self) {
        self.admitted += other.admitted;
        self.refused += other.refused;
        self.shadow_refused += other.shadow_refused;
        self.fail_open += other.fail_open;
        self.fail_closed += other.fail_closed;
        self.local_admitted += other.local_admitted;
        self.local_refused += other.local_refused;
        self.deny_cache_hits += other.deny_cache_hits;
    }
}

/// The counters of one limit. They belong to its name and survive a reload.
#[derive(Debug, Default)]
pub(crate) struct Counters([Stripe; STRIPES]);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe([AtomicU64; 8]);

impl Counters {
    /// Counts one answer, by the [number](thread_number) of the thread: its source, whether the
    /// limit admits, and whether it refuses.
    #[inline]
    pub(crate) fn count(&self, thread: usize, (source, admitted, refuses): (Source, bool, bool)) {
        let stripe = &self.0[thread % STRIPES].0;
        stripe[kind(source, admitted, refuses)].fetch_add(1, Ordering::Relaxed);
        if source == Source::DenyCache && refuses {
            stripe[7].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Increments a counter, for callers with kinds of their own.
    #[inline]
    pub(super) fn add_one(&self, kind: usize) {
        self.0[thread_number() % STRIPES].0[kind].fetch_add(1, Ordering::Relaxed);
    }

    /// The counters, summed over all stripes.
    pub(super) fn sums(&self) -> [u64; 8] {
        let sum =
            |kind: usize| self.0.iter().map(move |stripe| stripe.0[kind].load(Ordering::Relaxed));
        std::array::from_fn(|kind| sum(kind).sum())
    }

    pub(crate) fn read(&self) -> Counts {
        let [
            admitted,
            refused,
            shadow_refused,
            fail_open,
            fail_closed,
            local_admitted,
            local_refused,
            deny_cache_hits,
        ] = self.sums();
        Counts {
            admitted,
            refused,
            shadow_refused,
            fail_open,
            fail_closed,
            local_admitted,
            local_refused,
            deny_cache_hits,
        }
    }
}

/// The index of the counter for an answer.
#[inline]
fn kind(source: Source, admitted: bool, refuses: bool) -> usize {
    match (source, admitted) {
        (Source::FailOpen, _) => 3,
        (Source::FailClosed, _) => 4,
        (Source::LocalFallback, true) => 5,
        (Source::LocalFallback, false) => 6,
        (_, true) => 0,
        (_, false) if refuses => 1,
        (_, false) => 2,
    }
}

/// A number for the calling thread, constant for a thread. Threads count up from zero.
#[inline]
pub fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    NUMBER.with(|number| {
        if number.get() == usize::MAX {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}
