//! Locks and atomics, replaced by loom's under `--cfg loom`.

#[cfg(not(loom))]
pub(crate) use crate::raw::lock::{Guard, Lock};
/// Loom's lock: loom can shorten its waiting. Our own lock has separate loom models.
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex as Lock, MutexGuard as Guard};

#[cfg(loom)]
pub(crate) use loom::sync::{
    RwLock,
    atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    RwLock,
    atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering},
};

/// Locks, even after a panic: no code here panics in the middle of a change.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn lock<T>(lock: &Lock<T>) -> Guard<'_, T> {
    lock.lock()
}

#[cfg(loom)]
pub(crate) fn lock<T>(lock: &Lock<T>) -> Guard<'_, T> {
    lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Marks a branch that is rarely taken.
#[cold]
pub(crate) const fn unlikely() {}

/// Locks, even after a panic: every change leaves the value consistent.
pub(crate) fn lock_mutex<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Keeps a value on cache lines of its own.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct CachePadded<T>(pub(crate) T);
