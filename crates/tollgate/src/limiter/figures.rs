//! Checks with every figure, for the headers of a response.

use super::{Limiter, Reservation, infallible};
use crate::{Decision, Key};
use tollgate_store::Answer;

impl Limiter {
    /// [`check_n`](Self::check_n) with every figure of the tightest quota. Headers show some that a
    /// permit leaves out.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::new(Quota::per_minute(100));
    /// let outcome = limiter.answer("alice", 1, |answer| answer.outcome);
    /// assert!(outcome.admitted);
    /// assert_eq!((outcome.limit, outcome.remaining), (100, 99));
    /// ```
    // Inlined: `conclude` says which figures are read, so that the others are not computed, and the
    // rest stays in registers.
    #[inline(always)]
    pub fn answer<T>(&self, key: impl Key, cost: u64, conclude: impl FnOnce(Answer) -> T) -> T {
        self.inner.answer_now(key.key_bytes().as_ref(), cost, conclude)
    }

    /// [`reserve`](Self::reserve) with the figures of [`answer`](Self::answer).
    pub fn reserve_answer(&self, key: impl Key, estimate: u64) -> (Answer, Decision<Reservation>) {
        let reply = |key: &[u8]| infallible(self.inner.reserve_answer(key, estimate));
        let (answer, decision) = reply(key.key_bytes().as_ref());
        (answer, decision.map(|record| Reservation::new(self, record)))
    }
}
