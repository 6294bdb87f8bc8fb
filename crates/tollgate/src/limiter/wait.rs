//! Waiting in line until admitted.

use super::decision::PermitRecord;
use super::detach::{run_to_completion, spawn_detached};
use super::pause::{at_most, pause};
use super::store_calls::{PermitEnd, micros};
use super::wait_queue::{QueuePlace, WaitQueue};
use super::{Decision, Limiter, Permit, Refusal, Reservation};
use crate::Key;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Handle;
use tollgate_store::{Store, StoreError};

/// The reason why [waiting](crate::Limiter::wait) led to no decision.
#[derive(Debug)]
#[non_exhaustive]
pub enum WaitError {
    /// The line is [full](crate::limiter::LimiterBuilder::max_waiters). Nothing was charged.
    LineFull,
    /// There is no tokio runtime here, it has ended, or it has no timers. Nothing was charged.
    NoRuntime,
    /// The store failed.
    Store(StoreError),
}

impl<S: Store + 'static> Limiter<S> {
    /// Waits in line for one unit, but not longer than `within`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Decision, Limiter, Quota};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::builder(Quota::per_second(10).with_burst(1)?)
    /// #   .clock(tollgate::TokioClock::default())
    ///     .build()?;
    /// for page in 0..3 {
    ///     match limiter.wait("crawler", Duration::from_secs(5)).await? {
    ///         Decision::Admitted(_) => println!("page {page}"),
    ///         Decision::Refused(refusal) => println!("gave up: {refusal}"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// * Waiters for one key are admitted in the order in which their futures were first polled. A
    ///   [`check`](Limiter::check) does not wait, and may overtake the line.
    /// * The line for a key is bounded: one waiter too many gets [`WaitError::LineFull`] at once.
    /// * A waiter that cannot be admitted in time is refused as soon as that is known: at once for
    ///   a rate, at the deadline if only a freed slot would help.
    /// * Dropping the future leaves the line, wakes the next waiter and charges nothing.
    /// * The [delay](crate::Permit::delay) of a queue is part of the wait.
    ///
    /// Call this inside a tokio runtime with timers, which tick in milliseconds. In tests, pause
    /// tokio's time and give the limiter a [`TokioClock`](crate::TokioClock). Waiting needs the
    /// feature `tokio`.
    ///
    /// # Errors
    ///
    /// If the line is full, there is no tokio runtime, or the store fails. A refusal is not an
    /// error.
    pub async fn wait(&self, key: impl Key, within: Duration) -> Result<Decision, WaitError> {
        self.wait_n(key, 1, within).await
    }

    /// [Waits](Self::wait) for `cost` units together. A small cost does not overtake a large one.
    ///
    /// # Errors
    ///
    /// If the line is full, or the store fails. A refusal is not an error.
    pub async fn wait_n(
        &self,
        key: impl Key,
        cost: u64,
        within: Duration,
    ) -> Result<Decision, WaitError> {
        let waited = self.wait_for_record(key.key_bytes().as_ref(), cost, within).await?;
        Ok(waited.map(|record| record.permit))
    }

    /// [Waits](Self::wait) for `estimate` units together, and [reserves](Limiter::reserve) them.
    ///
    /// # Errors
    ///
    /// If the line is full, or the store fails. A refusal is not an error.
    pub async fn wait_reserve(
        &self,
        key: impl Key,
        estimate: u64,
        within: Duration,
    ) -> Result<Decision<Reservation<S>>, WaitError> {
        let waited = self.wait_for_record(key.key_bytes().as_ref(), estimate, within).await?;
        Ok(waited.map(|record| Reservation::new(self, record)))
    }

    async fn wait_for_record(
        &self,
        key: &[u8],
        cost: u64,
        within: Duration,
    ) -> Result<Decision<PermitRecord>, WaitError> {
        if Handle::try_current().is_err() {
            return Err(WaitError::NoRuntime);
        }
        let place = self.inner.wait_queues.join(key).ok_or(WaitError::LineFull)?;
        let mut waiter = Waiter {
            limiter: self,
            queue_place: &place,
            cost,
            deadline_us: self.inner.now_us().saturating_add(micros(within)),
            left: within,
        };
        let line = place.line();
        // Polled before anything is awaited, so that the line keeps the order of arrival.
        let mut turn = pin!(line.wait_for_front());
        if let Poll::Ready(_turn) = poll_fn(|cx| Poll::Ready(turn.as_mut().poll(cx))).await {
            return waiter.until_admitted(line).await;
        }
        if let Some(refusal) = waiter.refusal_if_too_late().await? {
            return Ok(Decision::Refused(refusal));
        }
        match at_most(waiter.left(), turn).await? {
            Some(_turn) => waiter.until_admitted(line).await,
            None => Ok(Decision::Refused(waiter.refusal().await?)),
        }
    }

    /// The number of waiters, for all keys ([example](crate::Limiter::wait)).
    pub fn waiting(&self) -> usize {
        self.inner.wait_queues.waiting()
    }
}

struct Waiter<'a, S> {
    limiter: &'a Limiter<S>,
    queue_place: &'a QueuePlace<'a>,
    cost: u64,
    deadline_us: u64,
    left: Duration,
}

impl<S: Store + 'static> Waiter<'_, S> {
    /// First in line: checks, and sleeps until another check can help.
    async fn until_admitted(
        &mut self,
        line: &WaitQueue,
    ) -> Result<Decision<PermitRecord>, WaitError> {
        loop {
            let refusal = match self.check().await? {
                Decision::Admitted(held) => return self.wait_out_delay(held).await,
                Decision::Refused(refusal) => refusal,
            };
            let left = self.left();
            let (Some(retry), Some(earliest_us)) = (refusal.retry_after(), refusal.earliest_us)
            else {
                return Ok(Decision::Refused(refusal));
            };
            if left.is_zero() || Duration::from_micros(earliest_us) > left {
                return Ok(Decision::Refused(refusal));
            }
            line.set_ready(self.limiter.inner.now_us().saturating_add(earliest_us));
            let longest = retry.min(left);
            // A manual clock may stand still; the deadline must come nearer nevertheless.
            if at_most(longest, line.changed.notified()).await?.is_none() {
                self.left = self.left.saturating_sub(longest);
            }
        }
    }

    /// Checks the limiter. A permit that arrives after the waiter has left is given back.
    async fn check(&self) -> Result<Decision<UnclaimedPermit<S>>, WaitError> {
        let (limiter, cost) = (self.limiter.clone(), self.cost);
        let key: Box<[u8]> = self.queue_place.key().into();
        let checking = async move {
            let decision = limiter.inner.reserve(&key, cost).await?;
            Ok(decision.map(|record| UnclaimedPermit { limiter, record: Some(record) }))
        };
        run_to_completion(checking).await.map_err(WaitError::Store)
    }

    /// Sleeps for the delay of a queue.
    async fn wait_out_delay(
        &mut self,
        held: UnclaimedPermit<S>,
    ) -> Result<Decision<PermitRecord>, WaitError> {
        let (delay, left) = (held.delay(), self.left());
        if delay > left {
            return Ok(Decision::Refused(held.give_up(delay - left)));
        }
        if !delay.is_zero() {
            pause(delay).await?;
        }
        Ok(Decision::Admitted(held.claim()))
    }

    /// The refusal of a waiter behind others, if it cannot be admitted before the deadline.
    async fn refusal_if_too_late(&mut self) -> Result<Option<Refusal>, WaitError> {
        let refusal = self.refusal().await?;
        let is_late = |earliest_us| Duration::from_micros(earliest_us) > self.left();
        Ok(refusal.earliest_us.is_none_or(is_late).then_some(refusal))
    }

    /// The refusal of a waiter behind others. Its wait is at least that of the first.
    async fn refusal(&self) -> Result<Refusal, WaitError> {
        let inner = &self.limiter.inner;
        let standing =
            inner.peek(self.queue_place.key(), self.cost).await.map_err(WaitError::Store)?;
        let first_us = micros(self.queue_place.line().ready_after(inner.now_us()));
        let mut refusal = Refusal::from(standing);
        refusal.retry_after_us = refusal.retry_after_us.map(|wait_us| wait_us.max(first_us));
        refusal.earliest_us = refusal.earliest_us.map(|wait_us| wait_us.max(first_us));
        Ok(refusal)
    }

    fn left(&mut self) -> Duration {
        let left_us = self.deadline_us.saturating_sub(self.limiter.inner.now_us());
        self.left = self.left.min(Duration::from_micros(left_us));
        self.left
    }
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LineFull => f.write_str("the line is full; try again later"),
            Self::NoRuntime => {
                f.write_str("waiting needs a tokio runtime with timers; call it inside one")
            }
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WaitError {}

impl From<StoreError> for WaitError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A permit that is given back unless it is claimed.
struct UnclaimedPermit<S: Store + 'static> {
    limiter: Limiter<S>,
    record: Option<PermitRecord>,
}

impl<S: Store> UnclaimedPermit<S> {
    fn delay(&self) -> Duration {
        self.record.as_ref().map_or(Duration::ZERO, |record| record.permit.delay())
    }

    /// Claims the permit after its delay.
    fn claim(mut self) -> PermitRecord {
        match self.record.take() {
            Some(mut record) => {
                record.permit.delay_us = 0;
                record
            }
            None => unreachable!("only this and dropping take the permit"),
        }
    }

    /// Gives the permit back, since its delay is too long by `excess`.
    fn give_up(self, excess: Duration) -> Refusal {
        let Some(PermitRecord { permit, .. }) = &self.record else {
            unreachable!("only `claim` and dropping take the permit")
        };
        let &Permit { limit, remaining, reset_after_us, .. } = permit;
        let (retry_after_us, earliest_us) = (Some(micros(excess)), Some(micros(excess)));
        Refusal { limit, remaining, blocked: false, retry_after_us, reset_after_us, earliest_us }
    }
}

impl<S: Store + 'static> Drop for UnclaimedPermit<S> {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            let limiter = self.limiter.clone();
            spawn_detached(async move {
                // If the store fails, the charge stays until time restores it.
                let _ = limiter.inner.end(&record, PermitEnd::Refund).await;
            });
        }
    }
}
