//! Requests that wait for a connection, grouped into the batches that decide them.

use super::fast_batch::read_single_reply;
use super::rows::{DecideReply, other_data, replay_rows};
use super::slot_returns::{SlotReturns, UnreadReply, UnreadSlots};
use super::{Batch, DecideRequest, DecideRequests};
use crate::redis::client::connection::ScriptCall;
use crate::sync::lock_mutex;
use crate::{Answer, StoreError, StoreErrorKind};
use ahash::RandomState;
use redis::Value;
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, oneshot};
use tokio::task::yield_now;

/// Limit of requests per call, and of all calls that a connection sends together. Larger calls
/// cost no less per request, and block Redis for longer.
pub(crate) const BATCH_REQUESTS_MAX: usize = 64;
/// Limit of charges per call, far below the number of arguments that Lua can unpack.
const BATCH_CHARGES_MAX: usize = 2_048;
/// Below this many requests, a call costs Redis more for its wake-up than for its decisions.
const SMALL_BATCH_REQUESTS: usize = 16;
/// Limit of batches that one connection sends together, each for one slot.
const BATCHES_PER_SEND_MAX: usize = 16;

/// Batches that wait for a connection.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<WaitingBatches>,
    /// Wakes a connection without a call in flight.
    wake_idle: Notify,
    /// Wakes a connection with a call in flight, which waits for more requests.
    wake_busy: Notify,
    limit: Arc<QueueLimit>,
    /// Whether a call waits for requests that have arrived in sockets and were not read yet.
    lingers: bool,
    /// Connections that currently serve this queue.
    pub(crate) connected: AtomicUsize,
}

#[derive(Debug, Default)]
struct WaitingBatches {
    batches: VecDeque<PendingBatch>,
    /// Requests in all batches.
    requests: usize,
    /// The number of the first batch. The batch at index `i` has the number `first + i`.
    first: u64,
    /// By scope, the number of the batch that can still grow.
    open: HashMap<BatchScope, u64, RandomState>,
}

/// The keys that one call may use together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum BatchScope {
    /// All keys of a server outside a cluster.
    #[default]
    Server,
    /// The keys of one slot: for servers whose scripts may not cross slots.
    Slot(u16),
    /// The keys of all slots of one primary: for servers whose scripts may cross slots.
    Primary,
}

/// A batch, and the callers that wait for it.
#[derive(Debug, Default)]
pub(crate) struct PendingBatch {
    pub(crate) scope: BatchScope,
    /// The instant of the decisions, by the callers' clock; `None` uses the clock of Redis.
    pub(crate) now_us: Option<u64>,
    pub(crate) batch: Batch,
    waiters: Vec<Waiter>,
    /// Whether to send `ASKING` first, because the slot migrates to the server.
    pub(crate) asking: bool,
    /// The redirects of a cluster that this batch has followed.
    pub(crate) redirects: u8,
}

/// The caller of some requests of a batch: the first `requests` that are not cancelled and not of
/// an earlier waiter.
#[derive(Debug)]
struct Waiter {
    requests: usize,
    reply: ReplySender,
}

/// Whether a request was admitted, and the answer of each of its limits.
pub(crate) type RequestRows = (bool, SmallVec<[Answer; 1]>);
pub(crate) type BatchRows = SmallVec<[RequestRows; 1]>;
pub(crate) type ReplySender = oneshot::Sender<Result<UnreadReply, StoreError>>;
pub(crate) type ReplyReceiver = oneshot::Receiver<Result<UnreadReply, StoreError>>;

/// The rows of a request whose server failed.
pub(crate) fn failed_rows(kind: StoreErrorKind, charges: usize) -> RequestRows {
    (true, SmallVec::from_elem(Answer::failed(kind), charges))
}

impl Queue {
    pub(crate) fn new(limit: &Arc<QueueLimit>, lingers: bool) -> Self {
        Self {
            waiting: Mutex::default(),
            wake_idle: Notify::new(),
            wake_busy: Notify::new(),
            limit: Arc::clone(limit),
            lingers,
            connected: AtomicUsize::new(0),
        }
    }

    /// Queues the requests of one caller, all in one batch. Fails if the queue is full.
    pub(crate) fn push(
        &self,
        scope: BatchScope,
        now_us: Option<u64>,
        requests: DecideRequests,
    ) -> Result<ReplyReceiver, StoreError> {
        let count = requests.len();
        let charges = requests.iter().map(|request| request.charges.len()).sum();
        self.limit.acquire(count)?;
        let (reply, receiver) = oneshot::channel();
        let mut waiting = lock_mutex(&self.waiting);
        let pending = waiting.batch_with_room(scope, now_us, count, charges);
        requests.into_iter().for_each(|request| pending.batch.push(request));
        pending.waiters.push(Waiter { requests: count, reply });
        waiting.requests += count;
        drop(waiting);
        self.notify();
        Ok(receiver)
    }

    /// Queues a batch again, ahead of all others.
    pub(crate) fn put_back(&self, pending: PendingBatch) {
        self.limit.acquire_unchecked(pending.requests());
        let mut waiting = lock_mutex(&self.waiting);
        waiting.first = waiting.first.wrapping_sub(1);
        waiting.requests += pending.requests();
        waiting.batches.push_front(pending);
        drop(waiting);
        self.notify();
    }

    /// Waits until `enough` requests are queued, at most a full batch. Returns the next batches:
    /// one, or several that are each for one slot.
    pub(crate) async fn next_at_least(&self, enough: usize) -> Vec<PendingBatch> {
        let wakes = if enough > 1 { &self.wake_busy } else { &self.wake_idle };
        let enough = enough.clamp(1, BATCH_REQUESTS_MAX);
        loop {
            let woken = wakes.notified();
            if self.requests() < enough {
                woken.await;
                continue;
            }
            if self.lingers {
                // If this connection is lost meanwhile, another one takes the requests.
                wakes.notify_one();
                self.linger().await;
            }
            let popped = self.pop(enough);
            if !popped.is_empty() {
                return popped;
            }
        }
    }

    /// Waits until the runtime has polled its sockets, and again while the poll brought requests to
    /// a small batch. Each repetition needs a new request, so their number is bounded.
    async fn linger(&self) {
        let mut before = self.requests();
        loop {
            // The runtime polls its sockets before this task runs again.
            yield_now().await;
            let now = self.requests();
            if now <= before || now >= SMALL_BATCH_REQUESTS {
                return;
            }
            before = now;
        }
    }

    fn requests(&self) -> usize {
        lock_mutex(&self.waiting).requests
    }

    /// Wakes an idle and a busy connection. With one signal for both, a busy connection could take
    /// it, find too few requests, and leave an idle one asleep.
    fn notify(&self) {
        self.wake_idle.notify_one();
        self.wake_busy.notify_one();
    }

    fn pop(&self, enough: usize) -> Vec<PendingBatch> {
        let (mut popped, mut requests) = (Vec::new(), 0);
        let mut waiting = lock_mutex(&self.waiting);
        if waiting.requests < enough {
            return popped;
        }
        while let Some(next) = waiting.batches.front() {
            requests += next.batch.requests.len();
            let goes_alone = !matches!(next.scope, BatchScope::Slot(_))
                || requests > BATCH_REQUESTS_MAX
                || popped.len() == BATCHES_PER_SEND_MAX;
            if goes_alone && !popped.is_empty() {
                break;
            }
            popped.extend(waiting.pop(&self.limit));
            if goes_alone {
                break;
            }
        }
        if !waiting.batches.is_empty() {
            self.notify();
        }
        popped
    }

    /// Removes all batches.
    pub(crate) fn drain(&self) -> Vec<PendingBatch> {
        let mut waiting = lock_mutex(&self.waiting);
        std::iter::from_fn(|| waiting.pop(&self.limit)).collect()
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock_mutex(&self.waiting).batches.is_empty()
    }
}

impl Drop for Queue {
    /// Releases the queued requests from the limit, which other queues share.
    fn drop(&mut self) {
        self.drain();
    }
}

impl WaitingBatches {
    /// Returns a batch with room for this many requests and charges.
    fn batch_with_room(
        &mut self,
        scope: BatchScope,
        now_us: Option<u64>,
        requests: usize,
        charges: usize,
    ) -> &mut PendingBatch {
        let open = self.open.get(&scope).map(|number| number.wrapping_sub(self.first) as usize);
        let fits = |pending: &&PendingBatch| {
            pending.batch.requests.len() + requests <= BATCH_REQUESTS_MAX
                && pending.batch.charges.len() + charges <= BATCH_CHARGES_MAX
        };
        let index = open.filter(|index| self.batches.get(*index).filter(fits).is_some());
        let index = index.unwrap_or_else(|| {
            let index = self.batches.len();
            self.open.insert(scope, self.first.wrapping_add(index as u64));
            self.batches.push_back(PendingBatch { scope, now_us, ..PendingBatch::default() });
            index
        });
        let pending = &mut self.batches[index];
        // A batch is decided at one instant: the latest of its requests.
        pending.now_us = pending.now_us.max(now_us);
        pending
    }

    fn pop(&mut self, limit: &QueueLimit) -> Option<PendingBatch> {
        let pending = self.batches.pop_front()?;
        if self.open.get(&pending.scope) == Some(&self.first) {
            self.open.remove(&pending.scope);
        }
        self.first = self.first.wrapping_add(1);
        self.requests -= pending.requests();
        limit.release(pending.requests());
        Some(pending)
    }
}

impl PendingBatch {
    /// Creates a batch of one request, without a waiting caller.
    pub(crate) fn without_waiters(request: DecideRequest, now_us: Option<u64>) -> Self {
        let mut pending = Self { now_us, ..Self::default() };
        pending.batch.push(request);
        pending
    }

    /// Marks the requests of callers that are gone as cancelled, and drops these callers. Returns
    /// whether a caller is left.
    pub(crate) fn drop_cancelled(&mut self) -> bool {
        let mut live = self.batch.requests.iter_mut().filter(|request| !request.cancelled);
        self.waiters.retain(|waiter| {
            let gone = waiter.reply.is_closed();
            live.by_ref().take(waiter.requests).for_each(|request| request.cancelled = gone);
            !gone
        });
        !self.waiters.is_empty()
    }

    /// Reads the reply to `call`, which decided this batch.
    pub(crate) fn read_reply(
        &self,
        call: &ScriptCall,
        reply: Value,
    ) -> Result<DecideReply, StoreError> {
        if call.single {
            read_single_reply(&self.batch, self.now_us, reply)
        } else {
            DecideReply::read(reply)
        }
    }

    /// Sends each caller the answers to its requests, or the error. `returns` gets the slots of
    /// callers that are gone. Returns the error too, also if only some keys hold other data.
    pub(crate) fn answer(
        self,
        reply: Result<DecideReply, StoreError>,
        returns: &Arc<SlotReturns>,
    ) -> Result<(), StoreError> {
        let mut all = Vec::with_capacity(self.batch.requests.len());
        let replayed = reply.and_then(|reply| {
            replay_rows(&self.batch, &reply, |admitted, rows| {
                all.push((admitted, SmallVec::from_slice(rows)))
            })
        });
        let (mut all, mut live) = (all.into_iter(), self.batch.live_requests());
        for waiter in self.waiters {
            let reply = replayed.as_ref().map_err(StoreError::clone).and_then(|_| {
                let rows: BatchRows = all.by_ref().take(waiter.requests).collect();
                let mut slots = UnreadSlots::default();
                for ((_, rows), (_, charges)) in rows.iter().zip(live.by_ref()) {
                    for (row, charge) in rows.iter().zip(charges) {
                        let params = &self.batch.tables.params[charge.params];
                        let named = || self.batch.named(charge);
                        slots.add(returns, self.now_us, (params, row), named);
                    }
                }
                decided(rows).map(|rows| UnreadReply { rows, slots })
            });
            // The caller may be gone: then the reply is dropped here.
            let _ = waiter.reply.send(reply);
        }
        if replayed? { Ok(()) } else { Err(other_data()) }
    }

    /// Sends each caller the error.
    pub(crate) fn fail(self, error: &StoreError) {
        for waiter in self.waiters {
            let _ = waiter.reply.send(Err(error.clone()));
        }
    }

    /// Splits into one batch per caller that still waits.
    pub(crate) fn split(self) -> Vec<Self> {
        let (scope, now_us, redirects) = (self.scope, self.now_us, self.redirects);
        let of_caller = |(requests, reply): (DecideRequests, ReplySender)| {
            let (mut batch, count) = (Batch::default(), requests.len());
            requests.into_iter().for_each(|request| batch.push(request));
            let waiters = vec![Waiter { requests: count, reply }];
            Self { scope, now_us, batch, waiters, asking: false, redirects }
        };
        self.into_callers().into_iter().map(of_caller).collect()
    }

    /// The requests of each caller that is still waiting.
    pub(crate) fn into_callers(mut self) -> Vec<(DecideRequests, ReplySender)> {
        self.drop_cancelled();
        let mut left =
            (0..self.batch.requests.len()).filter(|n| !self.batch.requests[*n].cancelled);
        let each = self.waiters.into_iter().map(|waiter| {
            let own = left.by_ref().take(waiter.requests).filter_map(|n| self.batch.request_at(n));
            (own.collect(), waiter.reply)
        });
        each.collect()
    }

    pub(crate) fn waiters(&self) -> usize {
        self.waiters.len()
    }

    pub(crate) fn requests(&self) -> usize {
        self.batch.requests.len()
    }
}

/// The rows of a caller; an error if no charge was decided.
fn decided(rows: BatchRows) -> Result<BatchRows, StoreError> {
    let mut all = rows.iter().flat_map(|(_, rows)| rows).peekable();
    let has_charges = all.peek().is_some();
    if has_charges && all.all(|row| row.failure().is_some()) { Err(other_data()) } else { Ok(rows) }
}

/// The limit of waiting requests, shared by all queues of one Redis server.
#[derive(Debug)]
pub(crate) struct QueueLimit {
    waiting: AtomicUsize,
    max: usize,
}

impl QueueLimit {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { waiting: AtomicUsize::new(0), max })
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Counts requests that start to wait; an error if there are too many.
    pub(crate) fn acquire(&self, requests: usize) -> Result<(), StoreError> {
        let before = self.waiting.fetch_add(requests, Ordering::Relaxed);
        if before + requests <= self.max {
            return Ok(());
        }
        self.release(requests);
        Err(StoreError::new(StoreErrorKind::Busy, "too many requests wait"))
    }

    /// Counts requests that are queued again.
    pub(crate) fn acquire_unchecked(&self, requests: usize) {
        self.waiting.fetch_add(requests, Ordering::Relaxed);
    }

    pub(crate) fn release(&self, requests: usize) {
        self.waiting.fetch_sub(requests, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
