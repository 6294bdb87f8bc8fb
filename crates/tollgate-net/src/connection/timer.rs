//! Coarse timers: deadlines that are checked once a tick, so that setting one costs little.

use super::ConnectionState;
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::task::{Context, Poll, Waker};
use std::{rc::Rc, time::Duration};

/// The timers of one worker.
#[derive(Debug)]
pub(crate) struct CoarseTimers {
    /// The current tick.
    pub(crate) now: Cell<u64>,
    pub(super) tick: Duration,
    entries: RefCell<Slab<(u64, OnExpiry)>>,
}

#[derive(Debug)]
enum OnExpiry {
    Wake(Waker),
    Close(Rc<ConnectionState>),
}

impl CoarseTimers {
    pub(crate) fn new(tick: Duration) -> Self {
        Self { now: Cell::default(), tick, entries: RefCell::default() }
    }

    pub(crate) fn fire_expired(&self) {
        for (_, (at, action)) in self.entries.borrow().iter() {
            match action {
                _ if *at > self.now.get() => {}
                OnExpiry::Wake(waker) => waker.wake_by_ref(),
                OnExpiry::Close(state) => state.expire(),
            }
        }
    }

    /// The first tick at which `time` has certainly passed.
    pub(super) fn deadline_tick(&self, time: Duration) -> u64 {
        // In 64 bits, since every request to an upstream has a deadline: 584 years are enough.
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let ticks = ns(time).div_ceil(ns(self.tick).max(1));
        self.now.get().saturating_add(ticks).saturating_add(1)
    }
}

/// A timer that is never early, and at most two ticks late. It costs nothing until it is polled.
#[derive(Debug)]
pub struct CoarseTimer {
    timers: Rc<CoarseTimers>,
    key: Option<usize>,
}

impl CoarseTimer {
    pub(crate) fn new(timers: Rc<CoarseTimers>) -> Self {
        Self { timers, key: None }
    }

    /// Ready once `within` has passed since the first poll after the last [`reset`](Self::reset).
    pub fn poll(&mut self, context: &mut Context<'_>, within: Duration) -> Poll<()> {
        let mut entries = self.timers.entries.borrow_mut();
        let wake = || OnExpiry::Wake(context.waker().clone());
        let Some(key) = self.key else {
            self.key = Some(entries.insert((self.timers.deadline_tick(within), wake())));
            return Poll::Pending;
        };
        match entries.get_mut(key) {
            Some((at, _)) if *at <= self.timers.now.get() => return Poll::Ready(()),
            Some((_, OnExpiry::Wake(waker))) => waker.clone_from(context.waker()),
            _ => {}
        }
        Poll::Pending
    }

    /// Moves the deadline to `within` from now.
    pub fn restart(&mut self, within: Duration) {
        let mut entries = self.timers.entries.borrow_mut();
        if let Some((at, _)) = self.key.and_then(|key| entries.get_mut(key)) {
            *at = self.timers.deadline_tick(within);
        }
    }

    /// Stops the timer. The next poll starts it again.
    #[inline]
    pub fn reset(&mut self) {
        if let Some(key) = self.key.take() {
            self.timers.entries.borrow_mut().try_remove(key);
        }
    }
}

impl Drop for CoarseTimer {
    fn drop(&mut self) {
        self.reset();
    }
}

/// Closes a connection whose peer stopped reading, unless it is dropped in time.
#[derive(Debug)]
pub(crate) struct WriteTimeout(pub(crate) CoarseTimer);

impl WriteTimeout {
    pub(crate) fn new(state: &Rc<ConnectionState>, within: Duration) -> Self {
        let timers = state.timers.clone();
        let entry = (timers.deadline_tick(within), OnExpiry::Close(state.clone()));
        let key = timers.entries.borrow_mut().insert(entry);
        Self(CoarseTimer { timers, key: Some(key) })
    }
}
