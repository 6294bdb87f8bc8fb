//! Deadlines of what a handler waits for, as coarse as those of connections and as cheap.

use super::{CloseRequest, ConnectionState};
use crate::net::Stats;
use slab::Slab;
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

/// The alarms of one worker. Setting one is an entry in a list that is looked at once a tick.
#[derive(Debug)]
pub(crate) struct CoarseTimers {
    pub(crate) now: Rc<Cell<u64>>,
    tick: Duration,
    entries: RefCell<Slab<(u64, Waker)>>,
    /// Connections that are closed at a tick, since nobody runs who could be woken.
    write_timeouts: RefCell<Slab<(u64, Rc<ConnectionState>)>>,
}

impl CoarseTimers {
    pub(crate) fn new(tick: Duration) -> Self {
        Self {
            now: Rc::default(),
            tick,
            entries: RefCell::default(),
            write_timeouts: RefCell::default(),
        }
    }

    /// Wakes whoever has waited for long enough.
    pub(crate) fn fire_expired(&self) {
        let now = self.now.get();
        for (_, (at, waker)) in self.entries.borrow().iter() {
            if *at <= now {
                waker.wake_by_ref();
            }
        }
        for (_, (at, life)) in self.write_timeouts.borrow().iter() {
            if *at <= now && life.close_request() != CloseRequest::Immediate {
                Stats::add(&life.front.stats.expired);
                life.request_close(CloseRequest::Immediate);
            }
        }
    }

    /// The tick at which this much time will have passed for certain.
    fn deadline_tick(&self, time: Duration) -> u64 {
        let ticks = time.as_nanos().div_ceil(self.tick.as_nanos().max(1));
        let ticks = u64::try_from(ticks).unwrap_or(u64::MAX);
        self.now.get().saturating_add(ticks).saturating_add(1)
    }
}

/// Ends a wait, at the earliest after its time and at the latest two ticks later. Until it is
/// polled it costs nothing.
#[derive(Debug)]
pub struct CoarseTimer {
    alarms: Rc<CoarseTimers>,
    key: Option<usize>,
}

impl CoarseTimer {
    pub(crate) fn new(alarms: Rc<CoarseTimers>) -> Self {
        Self { alarms, key: None }
    }

    /// Whether `within` has passed since the first call after the last [`reset`](Self::reset).
    pub fn poll(&mut self, context: &mut Context<'_>, within: Duration) -> Poll<()> {
        let mut set = self.alarms.entries.borrow_mut();
        let Some(key) = self.key else {
            self.key =
                Some(set.insert((self.alarms.deadline_tick(within), context.waker().clone())));
            return Poll::Pending;
        };
        match set.get_mut(key) {
            Some((at, _)) if *at <= self.alarms.now.get() => Poll::Ready(()),
            Some((_, waker)) => {
                waker.clone_from(context.waker());
                Poll::Pending
            }
            None => Poll::Pending,
        }
    }

    /// Begins anew at once, as if polled for the first time now.
    pub fn restart(&mut self, within: Duration) {
        let at = self.alarms.deadline_tick(within);
        let mut set = self.alarms.entries.borrow_mut();
        if let Some((until, _)) = self.key.and_then(|key| set.get_mut(key)) {
            *until = at;
        }
    }

    /// Begins anew.
    pub fn reset(&mut self) {
        if let Some(key) = self.key.take() {
            self.alarms.entries.borrow_mut().try_remove(key);
        }
    }
}

impl Drop for CoarseTimer {
    fn drop(&mut self) {
        self.reset();
    }
}

/// Closes a connection whose peer does not take what it asked for, unless that is dropped in time.
#[derive(Debug)]
pub(crate) struct WriteTimeout {
    alarms: Rc<CoarseTimers>,
    key: usize,
}

impl WriteTimeout {
    pub(crate) fn new(life: &Rc<ConnectionState>, within: Duration) -> Self {
        let alarms = life.alarms.clone();
        let key =
            alarms.write_timeouts.borrow_mut().insert((alarms.deadline_tick(within), life.clone()));
        Self { alarms, key }
    }

    /// Begins anew.
    pub(crate) fn restart(&mut self, within: Duration) {
        if let Some((at, _)) = self.alarms.write_timeouts.borrow_mut().get_mut(self.key) {
            *at = self.alarms.deadline_tick(within);
        }
    }
}

impl Drop for WriteTimeout {
    fn drop(&mut self) {
        self.alarms.write_timeouts.borrow_mut().try_remove(self.key);
    }
}
