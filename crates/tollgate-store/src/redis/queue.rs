//! Requests on their way to a server.

mod room;

pub(super) use room::Room;

use super::batch::{Ask, Asks, Batch};
use super::replay::replay;
use super::reply::Decided;
use crate::{Answer, StoreError};
use ahash::RandomState;
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// How many requests one call decides at most: more gain nothing, and would hold Redis up for longer.
pub(super) const BATCH_MOST: usize = 64;
/// How many charges, since Lua passes only so many keys to one command.
const LINES_MOST: usize = 2_048;
/// How many calls for different slots go out together.
const CALLS_MOST: usize = 16;

/// Requests that wait for a connection, in the batches that they will be decided in.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Notify,
    room: Arc<Room>,
    /// How many connections serve it at the moment.
    pub(super) connected: AtomicUsize,
}

#[derive(Debug, Default)]
struct Waiting {
    batches: VecDeque<Pending>,
    /// How many batches have left at the front.
    left: u64,
    /// By slot, the number of the batch that can still grow.
    open: HashMap<Option<u16>, u64, RandomState>,
}

/// A batch, with those who wait for it.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Of a cluster.
    pub(super) slot: Option<u16>,
    pub(super) now_us: Option<u64>,
    pub(super) batch: Batch,
    waiters: Vec<Waiter>,
    /// Whether the slot is only on its way to the server that is asked.
    pub(super) asking: bool,
    /// How often it was sent elsewhere.
    pub(super) hops: u8,
}

/// Whoever asked for the next `requests` of the batch. It may have gone away meanwhile, which concerns nobody else.
#[derive(Debug)]
struct Waiter {
    requests: usize,
    reply: oneshot::Sender<Result<Answered, StoreError>>,
}

/// Whether a request was admitted, and what each of its limits said.
pub(super) type Rows = (bool, SmallVec<[Answer; 1]>);
/// The same of all requests that were asked together.
pub(super) type Answered = SmallVec<[Rows; 1]>;
/// What whoever asked waits for.
pub(super) type Reply = oneshot::Receiver<Result<Answered, StoreError>>;

impl Queue {
    pub(super) fn new(room: &Arc<Room>) -> Self {
        Self {
            waiting: Mutex::default(),
            arrived: Notify::new(),
            room: Arc::clone(room),
            connected: AtomicUsize::new(0),
        }
    }

    /// Has `asks` decided together, with whatever else waits.
    pub(super) fn push(
        &self,
        slot: Option<u16>,
        now_us: Option<u64>,
        asks: Asks,
    ) -> Result<Reply, StoreError> {
        let (requests, lines) = (asks.len(), asks.iter().map(|ask| ask.lines.len()).sum());
        self.room.enter(requests)?;
        let (reply, answer) = oneshot::channel();
        let mut waiting = self.lock();
        let pending = waiting.growing(slot, now_us, requests, lines);
        asks.into_iter().for_each(|ask| pending.batch.push(ask));
        pending.waiters.push(Waiter { requests, reply });
        drop(waiting);
        self.arrived.notify_one();
        Ok(answer)
    }

    /// Queues a batch again, before all others.
    pub(super) fn put_back(&self, pending: Pending) {
        self.room.enter_again(pending.batch.requests.len());
        let mut waiting = self.lock();
        waiting.left = waiting.left.wrapping_sub(1);
        waiting.batches.push_front(pending);
        drop(waiting);
        self.arrived.notify_one();
    }

    /// The next batches, once there are some: several only if they are for different slots.
    pub(super) async fn next(&self) -> Vec<Pending> {
        loop {
            let arrived = self.arrived.notified();
            let popped = self.pop();
            if !popped.is_empty() {
                return popped;
            }
            arrived.await;
        }
    }

    fn pop(&self) -> Vec<Pending> {
        let (mut popped, mut requests) = (Vec::new(), 0);
        let mut waiting = self.lock();
        while let Some(next) = waiting.batches.front() {
            requests += next.batch.requests.len();
            let alone = next.slot.is_none() || requests > BATCH_MOST || popped.len() == CALLS_MOST;
            if alone && !popped.is_empty() {
                break;
            }
            popped.extend(waiting.pop(&self.room));
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
    pub(super) fn drain(&self) -> Vec<Pending> {
        let mut waiting = self.lock();
        std::iter::from_fn(|| waiting.pop(&self.room)).collect()
    }

    /// Whether a connection serves it at the moment.
    pub(super) fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed) > 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().batches.is_empty()
    }

    /// A panic elsewhere leaves it whole: a request is added in one piece or its caller is gone.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.drain();
    }
}

impl Waiting {
    /// The batch that so much more goes into.
    fn growing(
        &mut self,
        slot: Option<u16>,
        now_us: Option<u64>,
        requests: usize,
        lines: usize,
    ) -> &mut Pending {
        let open = self.open.get(&slot).map(|number| number.wrapping_sub(self.left) as usize);
        let fits = |pending: &&Pending| {
            pending.batch.requests.len() + requests <= BATCH_MOST
                && pending.batch.lines.len() + lines <= LINES_MOST
        };
        let place = open.filter(|place| self.batches.get(*place).filter(fits).is_some());
        let place = place.unwrap_or_else(|| {
            let place = self.batches.len();
            self.open.insert(slot, self.left.wrapping_add(place as u64));
            self.batches.push_back(Pending { slot, now_us, ..Pending::default() });
            place
        });
        let pending = &mut self.batches[place];
        // Those who wait together are decided at one instant, as by a server's clock: when the last of them asked.
        pending.now_us = pending.now_us.max(now_us);
        pending
    }

    fn pop(&mut self, room: &Room) -> Option<Pending> {
        let pending = self.batches.pop_front()?;
        if self.open.get(&pending.slot) == Some(&self.left) {
            self.open.remove(&pending.slot);
        }
        self.left = self.left.wrapping_add(1);
        room.leave(pending.batch.requests.len());
        Some(pending)
    }
}

impl Pending {
    /// A batch of one that nobody waits for.
    pub(super) fn unawaited(ask: Ask, now_us: Option<u64>) -> Self {
        let mut pending = Self { now_us, ..Self::default() };
        pending.batch.push(ask);
        pending
    }

    /// Leaves out what nobody waits for any more, and answers whether anything is left.
    pub(super) fn prune(&mut self) -> bool {
        let mut asked = self.batch.requests.iter_mut().filter(|asked| !asked.gone);
        self.waiters.retain(|waiter| {
            let gone = waiter.reply.is_closed();
            asked.by_ref().take(waiter.requests).for_each(|asked| asked.gone = gone);
            !gone
        });
        !self.waiters.is_empty()
    }

    /// Answers everybody from what the script said.
    pub(super) fn answer(self, decided: Result<Decided, StoreError>) -> Result<(), StoreError> {
        let mut all = Vec::with_capacity(self.batch.requests.len());
        let replayed = decided.and_then(|decided| {
            replay(&self.batch, &decided, |admitted, rows| {
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
    pub(super) fn fail(self, error: &StoreError) {
        for waiter in self.waiters {
            let _ = waiter.reply.send(Err(error.clone()));
        }
    }

    /// A batch for each who waits.
    pub(super) fn split(mut self) -> Vec<Self> {
        self.prune();
        let mut left = (0..self.batch.requests.len()).filter(|n| !self.batch.requests[*n].gone);
        let each = self.waiters.into_iter().map(|waiter| {
            let mut batch = Batch::default();
            let asks = left.by_ref().take(waiter.requests).filter_map(|n| self.batch.ask(n));
            asks.for_each(|ask| batch.push(ask));
            let (slot, now_us, hops) = (self.slot, self.now_us, self.hops);
            Self { slot, now_us, batch, waiters: vec![waiter], asking: false, hops }
        });
        each.collect()
    }

    /// How many wait for it.
    pub(super) fn waiters(&self) -> usize {
        self.waiters.len()
    }
}

#[cfg(test)]
mod tests;
