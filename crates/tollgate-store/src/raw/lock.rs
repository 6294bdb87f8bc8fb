//! A lock for a few nanoseconds' work.
//!
//! The system's lock is let go by an atomic exchange, since somebody may be asleep on it: as much
//! again as taking it. What is guarded here is held for less time than falling asleep takes, so
//! those who wait look again instead, ever less often, and letting go is an ordinary store. One
//! that finds the lock held for long, because its holder was interrupted, sleeps in between.

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

/// Looks between which the processor pauses, twice as long each time: microseconds in all.
const PAUSES: u32 = 7;
/// Looks until then, those included between which other threads may run.
const ALL: u32 = PAUSES + 16;
/// How long to sleep after that.
const NAP: Duration = Duration::from_micros(50);

/// One value for one thread at a time. A panic while it is held leaves it as it is then.
// The flag comes first, so that it shares a cache line with the beginning of the value.
#[repr(C)]
pub(crate) struct Lock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard alone, of which there is one at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The right to the value, until it is dropped.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// It gives out `&mut T`, so it may not be shared just because the lock may.
    not_sync: PhantomData<*mut T>,
}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits until nobody else holds it.
    #[inline(always)]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
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
        let mut look = 0_u32;
        loop {
            match look {
                0..PAUSES => (0..1 << look).for_each(|_| spin_loop()),
                PAUSES..ALL => yield_now(),
                _ => sleep(NAP),
            }
            look = look.saturating_add(1);
            // Only looking leaves the line with the holder, who is about to write to it.
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
        // SAFETY: this guard is the only one, and it lends the value only for as long as it is
        // borrowed itself.
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
        // Loom lets an exchange that read the value before a store take effect after it, which no
        // exchange can.
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
        f.debug_struct("LoginThrottle").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
