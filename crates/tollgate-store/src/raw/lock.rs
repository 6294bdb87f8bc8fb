//! A spin lock for a few nanoseconds of work.
//!
//! A system lock is released by an atomic exchange, because threads may sleep on it: that doubles
//! its cost. Here a thread holds the lock for less time than falling asleep takes. So waiting
//! threads poll, less and less often, and the release is a plain store. A thread that waits long,
//! because the holder was preempted, sleeps between polls.

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, Ordering};
use std::cell::UnsafeCell;
use std::fmt;
use std::hint::spin_loop;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{sleep, yield_now};
use std::time::Duration;

/// Polls with a processor pause between them, twice as long each time: microseconds in all.
const PAUSES: u32 = 7;
/// Polls before the first sleep: after the pauses, the thread yields between polls.
const ALL: u32 = PAUSES + 16;
/// The sleep between later polls.
const NAP: Duration = Duration::from_micros(50);

/// A mutual exclusion lock. A panic while it is held does not poison it.
// The flag comes first, so that it shares a cache line with the beginning of the value.
#[repr(C)]
pub struct Lock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only a guard gives access to the value, and there is one guard at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Access to the value, until dropped.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// Makes the guard `!Sync`: it gives out `&mut T`.
    not_sync: PhantomData<*mut T>,
}

impl<T> Lock<T> {
    /// Creates an unlocked lock.
    pub fn new(value: T) -> Self {
        Self { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits until the lock is free, and takes it.
    #[inline(always)]
    pub fn lock(&self) -> Guard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    #[inline(always)]
    fn try_lock(&self) -> Option<Guard<'_, T>> {
        let held = self.held.swap(true, Ordering::Acquire);
        (!held).then(|| Guard { lock: self, not_sync: PhantomData })
    }

    #[cold]
    fn wait(&self) -> Guard<'_, T> {
        let mut poll = 0_u32;
        loop {
            match poll {
                0..PAUSES => (0..1 << poll).for_each(|_| spin_loop()),
                PAUSES..ALL => yield_now(),
                _ => sleep(NAP),
            }
            poll = poll.saturating_add(1);
            // A load leaves the cache line with the holder, which is about to write to it.
            if !self.held.load(Ordering::Relaxed)
                && let Some(guard) = self.try_lock()
            {
                return guard;
            }
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one, and the borrow of the value ends with its own.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        #[cfg(not(loom))]
        self.lock.held.store(false, Ordering::Release);
        // Loom reorders an exchange after a store, which hardware cannot; so it gets an exchange.
        #[cfg(loom)]
        self.lock.held.swap(false, Ordering::Release);
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Guard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
