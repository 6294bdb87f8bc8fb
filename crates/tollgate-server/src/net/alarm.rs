//! Deadlines of what a handler waits for, as coarse as those of connections and as cheap.

use super::{
    Stats,
    life::{Life, Order},
};
use slab::Slab;
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

/// The alarms of one worker. Setting one is an entry in a list that is looked at once a tick.
#[derive(Debug)]
pub(super) struct Alarms {
    pub(super) now: Rc<Cell<u64>>,
    tick: Duration,
    set: RefCell<Slab<(u64, Waker)>>,
    /// Connections that are closed at a tick, since nobody runs who could be woken.
    stalls: RefCell<Slab<(u64, Rc<Life>)>>,
}

impl Alarms {
    pub(super) fn new(tick: Duration) -> Self {
        Self { now: Rc::default(), tick, set: RefCell::default(), stalls: RefCell::default() }
    }

    /// Wakes whoever has waited for long enough.
    pub(super) fn ring(&self) {
        let now = self.now.get();
        for (_, (at, waker)) in self.set.borrow().iter() {
            if *at <= now {
                waker.wake_by_ref();
            }
        }
        for (_, (at, life)) in self.stalls.borrow().iter() {
            if *at <= now && life.order() != Order::Close {
                Stats::add(&life.front.stats.expired);
                life.tell(Order::Close);
            }
        }
    }

    /// The tick at which this much time will have passed for certain.
    fn after(&self, time: Duration) -> u64 {
        let ticks = time.as_nanos().div_ceil(self.tick.as_nanos().max(1));
        let ticks = u64::try_from(ticks).unwrap_or(u64::MAX);
        self.now.get().saturating_add(ticks).saturating_add(1)
    }
}

/// Ends a wait, at the earliest after its time and at the latest two ticks later. Until it is polled it costs nothing.
#[derive(Debug)]
pub struct Alarm {
    alarms: Rc<Alarms>,
    key: Option<usize>,
}

impl Alarm {
    pub(super) fn new(alarms: Rc<Alarms>) -> Self {
        Self { alarms, key: None }
    }

    /// Whether `within` has passed since the first call after the last [`reset`](Self::reset).
    pub fn poll(&mut self, context: &mut Context<'_>, within: Duration) -> Poll<()> {
        let mut set = self.alarms.set.borrow_mut();
        let Some(key) = self.key else {
            self.key = Some(set.insert((self.alarms.after(within), context.waker().clone())));
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
    pub fn postpone(&mut self, within: Duration) {
        let at = self.alarms.after(within);
        let mut set = self.alarms.set.borrow_mut();
        if let Some((until, _)) = self.key.and_then(|key| set.get_mut(key)) {
            *until = at;
        }
    }

    /// Begins anew.
    pub fn reset(&mut self) {
        if let Some(key) = self.key.take() {
            self.alarms.set.borrow_mut().try_remove(key);
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.reset();
    }
}

/// Closes a connection whose peer does not take what it asked for, unless that is dropped in time.
#[derive(Debug)]
pub(super) struct Stall {
    alarms: Rc<Alarms>,
    key: usize,
}

impl Stall {
    pub(super) fn new(life: &Rc<Life>, within: Duration) -> Self {
        let alarms = life.alarms.clone();
        let key = alarms.stalls.borrow_mut().insert((alarms.after(within), life.clone()));
        Self { alarms, key }
    }

    /// Begins anew.
    pub(super) fn again(&mut self, within: Duration) {
        if let Some((at, _)) = self.alarms.stalls.borrow_mut().get_mut(self.key) {
            *at = self.alarms.after(within);
        }
    }
}

impl Drop for Stall {
    fn drop(&mut self) {
        self.alarms.stalls.borrow_mut().try_remove(self.key);
    }
}
