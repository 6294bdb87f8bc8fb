//! The primitives whose interleavings loom explores when it is asked to (`--cfg loom`).

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard, RwLock,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard, RwLock,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use std::sync::{PoisonError, TryLockError};

/// Locks, also after a panic elsewhere: no code here panics half-way through a change, and refusing everybody
/// because one thread died would be worse.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks if nobody else holds the lock.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
