//! Decisions without a future, where the store has them at hand.

use crate::{End, Gate, ReservationError, Rules, Settled, Verdict, Work};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use tollgate_policy::facts::Facts;
use tollgate_store::MemoryStore;

/// The value of a future that never waits.
#[inline]
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("the memory store has its answer at once"),
    }
}

/// The value of a future that waits for another thread at most.
fn soon<T>(future: impl Future<Output = T>) -> T {
    struct Parked(Thread);

    impl Wake for Parked {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Parked(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// The memory store never waits, so neither do these; they are the others without `await`.
impl Gate<MemoryStore> {
    /// [`check`](Self::check).
    #[inline]
    pub fn check_now<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        cost: u64,
        work: &mut Work,
    ) -> Verdict<'r> {
        now(self.check(rules, now_us, facts, cost, work))
    }

    /// [`peek`](Self::peek).
    #[inline]
    pub fn peek_now<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        cost: u64,
        work: &mut Work,
    ) -> Verdict<'r> {
        now(self.peek(rules, now_us, facts, cost, work))
    }

    /// [`reserve`](Self::reserve).
    #[expect(clippy::too_many_arguments, reason = "those of `reserve`")]
    pub fn reserve_now<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        id: &str,
        facts: &Facts<'_>,
        cost: u64,
        ttl_us: Option<u64>,
        work: &mut Work,
    ) -> Result<(Verdict<'r>, Option<u64>), ReservationError> {
        now(self.reserve(rules, now_us, id, facts, cost, ttl_us, work))
    }

    /// [`end`](Self::end). Another thread may be ending the same reservation; then this waits for it.
    pub fn end_now(&self, now_us: u64, id: &str, end: End) -> Result<Settled, ReservationError> {
        soon(self.end(now_us, id, end))
    }
}
