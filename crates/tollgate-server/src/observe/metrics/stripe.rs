//! The stripe of the counters that a thread adds to.
//!
//! Threads that count in one word pass its cache line around, which costs more than a decision. So
//! each thread has a stripe, and only `/metrics` reads all of them. Up to [`STRIPES`] threads share
//! none.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of stripes, a power of two.
pub(super) const STRIPES: usize = 32;

static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD_STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The calling thread's stripe, the same on every call.
#[inline]
pub(super) fn current() -> usize {
    THREAD_STRIPE.with(|own| match own.get() {
        usize::MAX => assign(own),
        stripe => stripe,
    })
}

#[cold]
fn assign(own: &Cell<usize>) -> usize {
    let stripe = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
    own.set(stripe);
    stripe
}
