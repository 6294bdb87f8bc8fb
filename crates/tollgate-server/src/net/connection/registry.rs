//! The connections of one worker: their deadlines, their end, and who goes first when there is no
//! room.

use super::{
    CloseRequest, ConnectionState, FrontendContext, Stage, state::EvictionClass,
    timer::CoarseTimers,
};
use crate::net::Stats;
use slab::Slab;
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};
use tokio::sync::Notify;

/// Every open connection of a worker.
///
/// Deadlines are looked at in passing, once a tick for all of them: that costs a connection no
/// timer, and a request no look at the clock.
#[derive(Debug)]
pub(crate) struct Registry {
    connections: RefCell<Slab<Rc<ConnectionState>>>,
    tick: Duration,
    now: Rc<Cell<u64>>,
    alarms: Rc<CoarseTimers>,
    /// How many connections there were.
    connections_total: Cell<u64>,
    /// The tick at which a drain began.
    drained_at: Cell<Option<u64>>,
    /// The first came, or the last went.
    changed: Notify,
}

/// A connection's place, given up when dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) life: Rc<ConnectionState>,
    registry: Rc<Registry>,
    key: usize,
}

impl Registry {
    pub(crate) fn new(tick: Duration) -> Self {
        let tick = tick.max(Duration::from_millis(1));
        let alarms = Rc::new(CoarseTimers::new(tick));
        Self {
            connections: RefCell::default(),
            tick,
            now: alarms.now.clone(),
            alarms,
            connections_total: Cell::new(0),
            drained_at: Cell::new(None),
            changed: Notify::new(),
        }
    }

    pub(crate) fn tick(&self) -> Duration {
        self.tick
    }

    pub(crate) fn register(self: &Rc<Self>, front: &Rc<FrontendContext>) -> Registration {
        self.connections_total.set(self.connections_total.get() + 1);
        let life = Rc::new(ConnectionState::new(
            front.clone(),
            self.alarms.clone(),
            self.connections_total.get(),
        ));
        if self.drained_at.get().is_some() {
            life.request_close(CloseRequest::Graceful);
        }
        let key = self.connections.borrow_mut().insert(life.clone());
        if self.len() == 1 {
            self.changed.notify_waiters();
        }
        Registration { life, registry: self.clone(), key }
    }

    fn len(&self) -> usize {
        self.connections.borrow().len()
    }

    /// Waits until there is a connection.
    pub(crate) async fn wait_until_occupied(&self) {
        while self.len() == 0 {
            self.changed.notified().await;
        }
    }

    /// Waits until there is none.
    pub(crate) async fn wait_until_empty(&self) {
        while self.len() > 0 {
            self.changed.notified().await;
        }
    }

    /// Lets a tick pass, and closes what has waited for too long.
    pub(crate) fn advance_tick(&self) {
        self.now.set(self.now.get() + 1);
        self.alarms.fire_expired();
        for (_, life) in self.connections.borrow().iter() {
            let limits = &life.front.limits;
            let (allowed, since) = match (life.stage(), self.drained_at.get()) {
                // The last call is for everybody, however long they had been idle before it.
                (Stage::New | Stage::Idle, Some(at)) => (limits.drain_grace, life.since().max(at)),
                (Stage::New | Stage::ReadingHead, _) => (limits.head, life.since()),
                (Stage::Idle, None) => (limits.idle, life.since()),
                (Stage::Lingering, _) => (limits.linger, life.since()),
                (Stage::Busy, _) => continue,
            };
            if self.has_elapsed(since, allowed) && life.close_request() != CloseRequest::Immediate {
                Stats::add(&life.front.stats.expired);
                life.request_close(CloseRequest::Immediate);
            }
        }
    }

    /// Whether at least this much time has passed since a tick.
    fn has_elapsed(&self, since: u64, time: Duration) -> bool {
        // What began then began somewhere within that tick, so it does not count.
        let whole = self.now.get().saturating_sub(since + 1);
        u128::from(whole) * self.tick.as_nanos() >= time.as_nanos()
    }

    /// Closes the connection that has been idle for longest, of one front end or of all. Where none
    /// is idle one goes whose body is slow, or else whose answer has not been read for as long as a
    /// peer is given to hear it.
    pub(crate) fn evict(&self, front: Option<usize>) {
        let lives = self.connections.borrow();
        let candidates = lives.iter().map(|(_, life)| life).filter_map(|life| {
            let worth = life.eviction_class()?;
            let may_go = worth < EvictionClass::UnreadAnswer
                || self.has_elapsed(life.since(), life.front.limits.linger);
            let is_of = front.is_none_or(|front| life.front.index == front);
            (may_go && is_of && life.close_request() != CloseRequest::Immediate)
                .then_some((worth, life))
        });
        let first = |(worth, life): &(EvictionClass, &Rc<ConnectionState>)| {
            (*worth, life.since(), life.serial)
        };
        if let Some((_, life)) = candidates.min_by_key(first) {
            Stats::add(&life.front.stats.evicted);
            life.request_close(CloseRequest::Immediate);
        }
    }

    /// Has every connection end once nothing is under way on it, those to come included.
    pub(crate) fn drain(&self) {
        self.drained_at.set(self.drained_at.get().or(Some(self.now.get())));
        self.connections
            .borrow()
            .iter()
            .for_each(|(_, life)| life.request_close(CloseRequest::Graceful));
    }

    /// Counts what a drain leaves behind.
    pub(crate) fn count_cut(&self) {
        for (_, life) in self.connections.borrow().iter() {
            Stats::add(&life.front.stats.cut);
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.connections.borrow_mut().try_remove(self.key);
        if self.registry.len() == 0 {
            self.registry.changed.notify_waiters();
        }
    }
}
