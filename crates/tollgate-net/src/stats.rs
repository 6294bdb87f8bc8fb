//! Connection counters of a front end.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! stats {
    ($($(#[$about:meta])* $counter:ident,)*) => {
        /// Connection counters of one front end. All except [`open`](Self::open) only grow.
        #[derive(Debug, Default)]
        pub struct Stats {
            $(pub(super) $counter: AtomicU64,)*
            pub(super) handshake_errors: AtomicU64,
            /// One bit for each kind of handshake error already logged.
            pub(super) handshake_reasons: AtomicU64,
        }

        impl Stats {
            $($(#[$about])* pub fn $counter(&self) -> u64 {
                self.$counter.load(Relaxed)
            })*

            pub(super) fn add(counter: &AtomicU64) {
                counter.fetch_add(1, Relaxed);
            }
        }
    };
}

stats! {
    /// Connections that are open now.
    open,
    /// Connections accepted.
    accepted,
    /// Failures to accept, mostly from a lack of file descriptors.
    accept_errors,
    /// Connections closed at a deadline.
    expired,
    /// Idle connections closed to make room for others.
    evicted,
    /// Connections closed at the end of a drain with requests in flight.
    cut,
    /// Requests whose handler panicked.
    panics,
}
