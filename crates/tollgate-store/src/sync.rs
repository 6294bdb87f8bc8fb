//! The primitives whose interleavings loom explores when it is asked to (`--cfg loom`).

#[cfg(not(loom))]
pub(crate) use crate::raw::lock::{Guard, Lock};
/// The store's models use loom's own lock, whose waiting loom knows how to cut short; ours has
/// models of its own.
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex as Lock, MutexGuard as Guard};

#[cfg(loom)]
pub(crate) use loom::sync::{
    RwLock,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    RwLock,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// Locks, also after a panic elsewhere: no code here panics half-way through a change, and refusing
/// everybody because one thread died would be worse.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn lock<T>(lock: &Lock<T>) -> Guard<'_, T> {
    lock.lock()
}

#[cfg(loom)]
pub(crate) fn lock<T>(lock: &Lock<T>) -> Guard<'_, T> {
    lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
