//! Requests on their way to a server.

use super::reply::DecideReply;
use super::rows::replay_rows;
use super::{Batch, DecideRequest, DecideRequests};
use crate::{Answer, StoreError, StoreErrorKind};
use ahash::RandomState;
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// How many requests one call decides at most: more gain nothing, and would hold Redis up for
/// longer.
pub(crate) const BATCH_REQUESTS_MAX: usize = 64;
/// How many charges, since Lua passes only so many keys to one command.
const BATCH_CHARGES_MAX: usize = 2_048;
/// How many calls for different slots go out together.
const CALLS_MOST: usize = 16;

/// Requests that wait for a connection, in the batches that they will be decided in.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<WaitingBatches>,
    arrived: Notify,
    limit: Arc<QueueLimit>,
    /// How many connections serve it at the moment.
    pub(crate) connected: AtomicUsize,
}

#[derive(Debug, Default)]
struct WaitingBatches {
    batches: VecDeque<PendingBatch>,
    /// How many batches have left at the front.
    popped: u64,
    /// By slot, the number of the batch that can still grow.
    open: HashMap<Option<u16>, u64, RandomState>,
}

/// A batch, with those who wait for it.
#[derive(Debug, Default)]
pub(crate) struct PendingBatch {
    /// Of a cluster.
    pub(crate) slot: Option<u16>,
    pub(crate) now_us: Option<u64>,
    pub(crate) batch: Batch,
    waiters: Vec<Waiter>,
    /// Whether the slot is only on its way to the server that is asked.
    pub(crate) asking: bool,
    /// How often it was sent elsewhere.
    pub(crate) redirects: u8,
}

/// Whoever asked for the next `requests` of the batch. It may have gone away meanwhile, which
/// concerns nobody else.
#[derive(Debug)]
struct Waiter {
    requests: usize,
    reply: oneshot::Sender<Result<BatchRows, StoreError>>,
}

/// Whether a request was admitted, and what each of its limits said.
pub(crate) type RequestRows = (bool, SmallVec<[Answer; 1]>);
/// The same of all requests that were asked together.
pub(crate) type BatchRows = SmallVec<[RequestRows; 1]>;
/// What whoever asked waits for.
pub(crate) type ReplyReceiver = oneshot::Receiver<Result<BatchRows, StoreError>>;

impl Queue {
    pub(crate) fn new(room: &Arc<QueueLimit>) -> Self {
        Self {
            waiting: Mutex::default(),
            arrived: Notify::new(),
            limit: Arc::clone(room),
            connected: AtomicUsize::new(0),
        }
    }

    /// Has `asks` decided together, with whatever else waits.
    pub(crate) fn push(
        &self,
        slot: Option<u16>,
        now_us: Option<u64>,
        asks: DecideRequests,
    ) -> Result<ReplyReceiver, StoreError> {
        let (requests, lines) = (asks.len(), asks.iter().map(|ask| ask.charges.len()).sum());
        self.limit.acquire(requests)?;
        let (reply, answer) = oneshot::channel();
        let mut waiting = self.lock();
        let pending = waiting.batch_with_room(slot, now_us, requests, lines);
        asks.into_iter().for_each(|ask| pending.batch.push(ask));
        pending.waiters.push(Waiter { requests, reply });
        drop(waiting);
        self.arrived.notify_one();
        Ok(answer)
    }

    /// Queues a batch again, before all others.
    pub(crate) fn put_back(&self, pending: PendingBatch) {
        self.limit.acquire_unchecked(pending.batch.requests.len());
        let mut waiting = self.lock();
        waiting.popped = waiting.popped.wrapping_sub(1);
        waiting.batches.push_front(pending);
        drop(waiting);
        self.arrived.notify_one();
    }

    /// The next batches, once there are some: several only if they are for different slots.
    pub(crate) async fn next(&self) -> Vec<PendingBatch> {
        loop {
            let arrived = self.arrived.notified();
            let popped = self.pop();
            if !popped.is_empty() {
                return popped;
            }
            arrived.await;
        }
    }

    fn pop(&self) -> Vec<PendingBatch> {
        let (mut popped, mut requests) = (Vec::new(), 0);
        let mut waiting = self.lock();
        while let Some(next) = waiting.batches.front() {
            requests += next.batch.requests.len();
            let alone =
                next.slot.is_none() || requests > BATCH_REQUESTS_MAX || popped.len() == CALLS_MOST;
            if alone && !popped.is_empty() {
                break;
            }
            popped.extend(waiting.pop(&self.limit));
            if alone {
                break;
            }
        }
        if !waiting.batches.is_empty() {
            self.arrived.notify_one();
        }
        popped
    }

    /// Everything that waits.
    pub(crate) fn drain(&self) -> Vec<PendingBatch> {
        let mut waiting = self.lock();
        std::iter::from_fn(|| waiting.pop(&self.limit)).collect()
    }

    /// Whether a connection serves it at the moment.
    pub(crate) fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().batches.is_empty()
    }

    /// A panic elsewhere leaves it whole: a request is added in one piece or its caller is gone.
    fn lock(&self) -> MutexGuard<'_, WaitingBatches> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.drain();
    }
}

impl WaitingBatches {
    /// The batch that so much more goes into.
    fn batch_with_room(
        &mut self,
        slot: Option<u16>,
        now_us: Option<u64>,
        requests: usize,
        lines: usize,
    ) -> &mut PendingBatch {
        let open = self.open.get(&slot).map(|number| number.wrapping_sub(self.popped) as usize);
        let fits = |pending: &&PendingBatch| {
            pending.batch.requests.len() + requests <= BATCH_REQUESTS_MAX
                && pending.batch.charges.len() + lines <= BATCH_CHARGES_MAX
        };
        let place = open.filter(|place| self.batches.get(*place).filter(fits).is_some());
        let place = place.unwrap_or_else(|| {
            let place = self.batches.len();
            self.open.insert(slot, self.popped.wrapping_add(place as u64));
            self.batches.push_back(PendingBatch { slot, now_us, ..PendingBatch::default() });
            place
        });
        let pending = &mut self.batches[place];
        // Those who wait together are decided at one instant, as by a server's clock: when the last
        // of them asked.
        pending.now_us = pending.now_us.max(now_us);
        pending
    }

    fn pop(&mut self, room: &QueueLimit) -> Option<PendingBatch> {
        let pending = self.batches.pop_front()?;
        if self.open.get(&pending.slot) == Some(&self.popped) {
            self.open.remove(&pending.slot);
        }
        self.popped = self.popped.wrapping_add(1);
        room.release(pending.batch.requests.len());
        Some(pending)
    }
}

impl PendingBatch {
    /// A batch of one that nobody waits for.
    pub(crate) fn without_waiters(ask: DecideRequest, now_us: Option<u64>) -> Self {
        let mut pending = Self { now_us, ..Self::default() };
        pending.batch.push(ask);
        pending
    }

    /// Leaves out what nobody waits for any more, and answers whether anything is left.
    pub(crate) fn drop_cancelled(&mut self) -> bool {
        let mut asked = self.batch.requests.iter_mut().filter(|asked| !asked.cancelled);
        self.waiters.retain(|waiter| {
            let gone = waiter.reply.is_closed();
            asked.by_ref().take(waiter.requests).for_each(|asked| asked.cancelled = gone);
            !gone
        });
        !self.waiters.is_empty()
    }

    /// Answers everybody from what the script said.
    pub(crate) fn answer(self, decided: Result<DecideReply, StoreError>) -> Result<(), StoreError> {
        let mut all = Vec::with_capacity(self.batch.requests.len());
        let replayed = decided.and_then(|decided| {
            replay_rows(&self.batch, &decided, |admitted, rows| {
                all.push((admitted, SmallVec::from_slice(rows)))
            })
        });
        let mut all = all.into_iter();
        for waiter in self.waiters {
            let rows = match &replayed {
                Ok(()) => Ok(all.by_ref().take(waiter.requests).collect()),
                Err(error) => Err(error.clone()),
            };
            // Whoever asked may be gone.
            let _ = waiter.reply.send(rows);
        }
        replayed
    }

    /// Tells everybody that nothing was decided.
    pub(crate) fn fail(self, error: &StoreError) {
        for waiter in self.waiters {
            let _ = waiter.reply.send(Err(error.clone()));
        }
    }

    /// A batch for each who waits.
    pub(crate) fn split(mut self) -> Vec<Self> {
        self.drop_cancelled();
        let mut left =
            (0..self.batch.requests.len()).filter(|n| !self.batch.requests[*n].cancelled);
        let each = self.waiters.into_iter().map(|waiter| {
            let mut batch = Batch::default();
            let asks = left.by_ref().take(waiter.requests).filter_map(|n| self.batch.request_at(n));
            asks.for_each(|ask| batch.push(ask));
            let (slot, now_us, hops) = (self.slot, self.now_us, self.redirects);
            Self { slot, now_us, batch, waiters: vec![waiter], asking: false, redirects: hops }
        });
        each.collect()
    }

    /// How many wait for it.
    pub(crate) fn waiters(&self) -> usize {
        self.waiters.len()
    }
}

/// What all queues for one server share: how many requests wait, and how many may.
#[derive(Debug)]
pub(crate) struct QueueLimit {
    taken: AtomicUsize,
    max: usize,
}

impl QueueLimit {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { taken: AtomicUsize::new(0), max: most })
    }

    /// How many requests wait.
    pub(crate) fn waiting(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Lets so many more wait, if there is room.
    pub(crate) fn acquire(&self, requests: usize) -> Result<(), StoreError> {
        let taken = self.taken.fetch_add(requests, Ordering::Relaxed);
        if taken + requests <= self.max {
            return Ok(());
        }
        self.release(requests);
        Err(StoreError::new(StoreErrorKind::Busy, "too many requests wait"))
    }

    /// Lets those wait again who have left.
    pub(crate) fn acquire_unchecked(&self, requests: usize) {
        self.taken.fetch_add(requests, Ordering::Relaxed);
    }

    pub(crate) fn release(&self, requests: usize) {
        self.taken.fetch_sub(requests, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
