//! Pins: a thread that reads an array without a lock prevents it from being freed.
//!
//! A reader announces itself with a plain store to a record of its own thread. The thread that
//! frees memory pays for the ordering: `membarrier(2)` makes every other core execute a barrier.
//! Then it waits for all records that show a reader. Without that system call, each pin executes a
//! barrier.

#[cfg(loom)]
use loom::sync::atomic::{AtomicUsize, Ordering, fence};
#[cfg(loom)]
use loom::thread::yield_now;
use std::marker::PhantomData;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicUsize, Ordering, fence};
#[cfg(not(loom))]
use std::thread::yield_now;

/// Pins the current thread until dropped.
#[derive(Debug)]
pub(crate) struct Pin<'a> {
    /// `None` in loom models of the store, which free nothing before their end.
    record: Option<&'a PinRecord>,
    /// Makes the pin `!Send`: it belongs to its thread.
    not_send: PhantomData<*mut ()>,
}

/// The reads of one thread, on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct PinRecord {
    /// Starts and ends of pins: odd while the thread is pinned.
    edges: AtomicUsize,
    /// Whether `membarrier` replaces the reader's own barrier.
    #[cfg(not(loom))]
    asymmetric: bool,
    #[cfg(not(loom))]
    in_use: std::sync::atomic::AtomicBool,
    #[cfg(not(loom))]
    next: Option<&'static PinRecord>,
}

impl PinRecord {
    /// Marks this record as reading. Only one thread at a time may use a record, for one pin at a
    /// time. `ASYMMETRIC`: `membarrier` replaces the reader's own barrier.
    #[inline(always)]
    pub(super) fn begin<const ASYMMETRIC: bool>(&self) {
        let edges = self.edges.load(Ordering::Relaxed);
        assert!(edges & 1 == 0, "pins do not nest");
        // Release: a thread that waits for the end of the previous pin may see this store instead.
        self.edges.store(edges.wrapping_add(1), Ordering::Release);
        if ASYMMETRIC {
            std::sync::atomic::compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    #[cfg(not(loom))]
    fn is_pinned(&self) -> bool {
        self.edges.load(Ordering::Relaxed) & 1 == 1
    }

    /// Waits for the end of the current pin of the record. The caller has unpublished the memory,
    /// and then executed a barrier.
    pub(super) fn wait(&self) {
        let seen = self.edges.load(Ordering::Acquire);
        while seen & 1 == 1 && self.edges.load(Ordering::Acquire) == seen {
            yield_now();
        }
    }
}

impl Drop for Pin<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let Some(record) = self.record else { return };
        let edges = record.edges.load(Ordering::Relaxed);
        record.edges.store(edges.wrapping_add(1), Ordering::Release);
    }
}

/// The records of all threads. Loom models of the store free no array before their end, so they
/// need none.
#[cfg(not(loom))]
mod registry {
    use super::{AtomicUsize, Ordering, PhantomData, Pin, PinRecord, fence, membarrier};
    use std::cell::Cell;
    use std::sync::atomic::AtomicBool;
    use std::sync::{Mutex, PoisonError};

    static RECORDS: Mutex<Option<&'static PinRecord>> = Mutex::new(None);

    thread_local! {
        /// The record of this thread, if `membarrier` replaces the reader's own barrier.
        static ASYMMETRIC: Cell<Option<&'static PinRecord>> = const { Cell::new(None) };
        /// The record of this thread.
        static RECORD: Cell<Option<&'static PinRecord>> = const { Cell::new(None) };
        /// Returns the record when the thread ends.
        static RETURN: ReturnRecord = const { ReturnRecord(Cell::new(None)) };
    }

    struct ReturnRecord(Cell<Option<&'static PinRecord>>);

    impl Drop for ReturnRecord {
        fn drop(&mut self) {
            if let Some(record) = self.0.get() {
                ASYMMETRIC.set(None);
                RECORD.set(None);
                record.in_use.store(false, Ordering::Release);
            }
        }
    }

    /// Pins the current thread.
    #[inline(always)]
    pub(crate) fn pin() -> Pin<'static> {
        let record = match ASYMMETRIC.get() {
            Some(record) => {
                record.begin::<true>();
                record
            }
            None => begin_slowly(),
        };
        Pin { record: Some(record), not_send: PhantomData }
    }

    /// Begins a pin of a thread that has no record yet, or whose pins execute a barrier.
    #[cold]
    #[inline(never)]
    fn begin_slowly() -> &'static PinRecord {
        let record = RECORD.get().unwrap_or_else(register);
        if record.asymmetric {
            record.begin::<true>();
        } else {
            record.begin::<false>();
        }
        record
    }

    /// Waits until every pinned thread has unpinned. If the current thread is pinned itself,
    /// returns `false` without waiting.
    pub(crate) fn wait_for_readers() -> bool {
        if RECORD.get().is_some_and(PinRecord::is_pinned) {
            return false;
        }
        let mut next = *RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
        match next {
            Some(record) if record.asymmetric && !membarrier::execute() => return false,
            _ => fence(Ordering::SeqCst),
        }
        while let Some(record) = next {
            record.wait();
            next = record.next;
        }
        true
    }

    fn register() -> &'static PinRecord {
        let mut first = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = *first;
        let record = loop {
            match next {
                Some(free) if !free.in_use.swap(true, Ordering::Acquire) => break free,
                Some(used) => next = used.next,
                None => {
                    let asymmetric =
                        first.map_or_else(membarrier::register, |first| first.asymmetric);
                    let record = Box::leak(Box::new(PinRecord {
                        edges: AtomicUsize::new(0),
                        asymmetric,
                        in_use: AtomicBool::new(true),
                        next: *first,
                    }));
                    *first = Some(record);
                    break record;
                }
            }
        };
        // If the thread's locals are already gone, the record stays in use for ever, which costs
        // only memory.
        let _ = RETURN.try_with(|returned| returned.0.set(Some(record)));
        ASYMMETRIC.set(Some(record).filter(|record| record.asymmetric));
        RECORD.set(Some(record));
        record
    }
}

#[cfg(loom)]
mod registry {
    use super::{PhantomData, Pin};

    pub(crate) fn pin() -> Pin<'static> {
        Pin { record: None, not_send: PhantomData }
    }

    pub(crate) fn wait_for_readers() -> bool {
        false
    }
}

pub(crate) use registry::{pin, wait_for_readers};

#[cfg(not(loom))]
mod membarrier {
    /// Registers this process for the barrier. Returns whether the kernel supports it.
    pub(super) fn register() -> bool {
        call(1 << 4)
    }

    /// Makes every running thread of this process execute a barrier.
    pub(super) fn execute() -> bool {
        call(1 << 3)
    }

    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(miri)
    ))]
    fn call(command: core::ffi::c_int) -> bool {
        use core::ffi::{c_int, c_long, c_uint};
        const SYS_MEMBARRIER: c_long = if cfg!(target_arch = "x86_64") { 324 } else { 283 };
        unsafe extern "C" {
            fn syscall(number: c_long, ...) -> c_long;
        }
        let (flags, cpu): (c_uint, c_int) = (0, 0);
        // SAFETY: this system call takes three integers and touches no memory of the process.
        unsafe { syscall(SYS_MEMBARRIER, command, flags, cpu) == 0 }
    }

    #[cfg(not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(miri)
    )))]
    fn call(_: core::ffi::c_int) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
