//! The connections of one worker: deadlines, eviction and drain.

use super::{CloseRequest, ConnectionState, Stage, state::EvictionClass, timer::CoarseTimers};
use crate::{Stats, accept::ListenerState};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::{rc::Rc, sync::Arc, time::Duration};
use tokio::sync::Notify;

/// All open connections of a worker. Deadlines are checked once a tick for all connections. So a
/// connection needs no timer, and a request does not read the clock.
#[derive(Debug)]
pub(crate) struct Registry {
    connections: RefCell<Slab<Rc<ConnectionState>>>,
    timers: Rc<CoarseTimers>,
    connections_total: Cell<u64>,
    /// The tick at which a drain began.
    drained_at: Cell<Option<u64>>,
    /// Notified when the first connection opens and when the last one closes.
    changed: Notify,
}

/// A connection's entry in the registry, removed when dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) state: Rc<ConnectionState>,
    registry: Rc<Registry>,
    key: usize,
}

impl Registry {
    pub(crate) fn new(tick: Duration) -> Self {
        let tick = tick.max(Duration::from_millis(1));
        Self {
            connections: RefCell::default(),
            timers: Rc::new(CoarseTimers::new(tick)),
            connections_total: Cell::new(0),
            drained_at: Cell::new(None),
            changed: Notify::new(),
        }
    }

    pub(crate) fn tick(&self) -> Duration {
        self.timers.tick
    }

    pub(crate) fn register(self: &Rc<Self>, listener: &Arc<ListenerState>) -> Registration {
        let serial = self.connections_total.get() + 1;
        self.connections_total.set(serial);
        let state = Rc::new(ConnectionState::new(listener.clone(), self.timers.clone(), serial));
        if self.drained_at.get().is_some() {
            state.request_close(CloseRequest::Graceful);
        }
        let key = self.connections.borrow_mut().insert(state.clone());
        if self.len() == 1 {
            self.changed.notify_waiters();
        }
        Registration { state, registry: self.clone(), key }
    }

    fn len(&self) -> usize {
        self.connections.borrow().len()
    }

    pub(crate) async fn wait_until_occupied(&self) {
        while self.len() == 0 {
            self.changed.notified().await;
        }
    }

    pub(crate) async fn wait_until_empty(&self) {
        while self.len() > 0 {
            self.changed.notified().await;
        }
    }

    /// Counts a tick, and closes connections past a deadline.
    pub(crate) fn advance_tick(&self) {
        self.timers.now.update(|now| now + 1);
        self.timers.fire_expired();
        for (_, state) in self.connections.borrow().iter() {
            let limits = &state.listener.limits;
            let (allowed, since) = match (state.stage(), self.drained_at.get()) {
                // In a drain, every idle connection has the same grace period, counted from the
                // drain.
                (Stage::New | Stage::Idle, Some(at)) => {
                    (limits.drain_grace, state.since.get().max(at))
                }
                (Stage::New | Stage::ReadingHead, _) => (limits.head, state.since.get()),
                (Stage::Idle, None) => (limits.idle, state.since.get()),
                (Stage::Lingering, _) => (limits.linger, state.since.get()),
                (Stage::Busy, _) => continue,
            };
            if self.has_elapsed(since, allowed) {
                state.expire();
            }
        }
    }

    /// Whether `time` has certainly passed since a moment within tick `since`.
    fn has_elapsed(&self, since: u64, time: Duration) -> bool {
        let whole = self.timers.now.get().saturating_sub(since + 1);
        u128::from(whole) * self.tick().as_nanos() >= time.as_nanos()
    }

    /// Closes the connection that has been idle longest, of one listener or of all. If none is
    /// idle, the next candidates are connections with a slow body. Last come connections whose
    /// answer was not read for [`Limits::linger`](crate::Limits::linger).
    pub(crate) fn evict(&self, listener: Option<usize>) {
        let connections = self.connections.borrow();
        let candidates = connections.iter().filter_map(|(_, state)| {
            let class = state.eviction_class()?;
            let may_go = class < EvictionClass::UnreadAnswer
                || self.has_elapsed(state.since.get(), state.listener.limits.linger);
            let is_of_listener = listener.is_none_or(|index| state.listener.index == index);
            let is_open = state.close_request() != CloseRequest::Immediate;
            (may_go && is_of_listener && is_open)
                .then_some(((class, state.since.get(), state.serial), state))
        });
        if let Some((_, state)) = candidates.min_by_key(|(order, _)| *order) {
            Stats::add(&state.listener.stats.evicted);
            state.request_close(CloseRequest::Immediate);
        }
    }

    /// Closes every connection, present and future, as soon as it has no request in flight.
    pub(crate) fn drain(&self) {
        self.drained_at.update(|at| at.or(Some(self.timers.now.get())));
        for (_, state) in self.connections.borrow().iter() {
            state.request_close(CloseRequest::Graceful);
        }
    }

    /// Counts the connections that are still open at the end of a drain.
    pub(crate) fn count_cut(&self) {
        for (_, state) in self.connections.borrow().iter() {
            Stats::add(&state.listener.stats.cut);
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
