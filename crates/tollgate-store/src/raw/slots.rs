//! Slot arrays that threads read without a lock while others replace them.

use super::pin::{Pin, wait_for_readers};
use super::prefetch::{LINE, prefetch};
use crate::sync::{AtomicPtr, AtomicU64, Lock, Ordering, lock};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::Deref;
use std::{mem, ptr, slice};

/// Slots in a chunk. Under loom, tables must grow within a few steps.
pub(crate) const SLOTS: usize = if cfg!(loom) { 4 } else { 64 };
/// Alignment of arrays, which leaves low bits of an address free for the size.
const ALIGN: usize = 128;
/// Limit of replaced arrays not freed yet. Beyond it, a thread waits for their readers.
const GARBAGE_BYTES_MAX: usize = 1 << 20;

/// A tag, and the words that belong to it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Slot<const W: usize> {
    pub(crate) tag: AtomicU64,
    pub(crate) words: [AtomicU64; W],
}

/// The size of an array in chunks: a float with four bits of exponent and three of mantissa. The
/// next size is one chunk larger, or at most an eighth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArraySize(u8);

impl ArraySize {
    pub(crate) const ZERO: Self = Self(0);
    const MAX: u8 = ALIGN as u8 - 1;

    pub(crate) const fn chunks(self) -> usize {
        let (exponent, mantissa) = ((self.0 >> 3) as usize, (self.0 & 7) as usize);
        if exponent == 0 { mantissa } else { (8 + mantissa) << (exponent - 1) }
    }

    #[inline(always)]
    pub(crate) const fn slots(self) -> usize {
        SLOTS_OF[(self.0 & Self::MAX) as usize] as usize
    }

    /// The next larger size, if there is one.
    pub(crate) fn next(self) -> Option<Self> {
        (self.0 < Self::MAX).then_some(Self(self.0 + 1))
    }
}

/// The slots of every size: looked up faster than computed.
const SLOTS_OF: [u32; ALIGN] = {
    let mut slots = [0; ALIGN];
    let mut size = 0;
    while size < ALIGN {
        slots[size] = (ArraySize(size as u8).chunks() * SLOTS) as u32;
        size += 1;
    }
    slots
};

/// An array of slots. Once published, it is freed only through [`replace`](Self::replace), or with
/// the store, which then has no readers.
#[derive(Debug)]
pub(crate) struct SlotArray<const W: usize> {
    start: *mut Slot<W>,
    /// The number of slots, since every access would compute it from the size.
    len: u32,
    size: ArraySize,
}

// SAFETY: it owns its slots, which are atomics.
unsafe impl<const W: usize> Send for SlotArray<W> {}
// SAFETY: as above.
unsafe impl<const W: usize> Sync for SlotArray<W> {}

impl<const W: usize> SlotArray<W> {
    /// Allocates slots that are all zero.
    pub(crate) fn new(size: ArraySize) -> Self {
        let len = size.slots() as u32;
        let Some(layout) = Self::layout(size) else {
            return Self { start: Self::nowhere(), len, size };
        };
        // SAFETY: the layout has bytes.
        let start = unsafe { alloc(layout) }.cast::<Slot<W>>();
        if start.is_null() {
            handle_alloc_error(layout);
        }
        for at in 0..size.slots() {
            let words = std::array::from_fn(|_| AtomicU64::new(0));
            // SAFETY: the slot is within the array, which is not published yet.
            unsafe { start.add(at).write(Slot { tag: AtomicU64::new(0), words }) };
        }
        Self { start, len, size }
    }

    pub(crate) const fn size(&self) -> ArraySize {
        self.size
    }

    /// Publishes `new` in place of the array. Frees the old one when no pinned thread can read it.
    pub(crate) fn replace(&mut self, new: Self, location: &Location<W>, garbage: &Garbage) {
        location.publish(&new);
        let bytes = Self::layout(self.size).map_or(0, |layout| layout.size());
        let old = mem::replace(self, new);
        let mut garbage = lock(&garbage.0);
        garbage.arrays.push(Box::new(old));
        garbage.bytes += bytes;
    }

    /// The memory layout; `None` without slots.
    fn layout(size: ArraySize) -> Option<Layout> {
        let array = Layout::array::<Slot<W>>(size.slots()).ok()?.align_to(ALIGN).ok()?;
        (array.size() > 0).then_some(array)
    }

    /// The address of an empty array, aligned like that of others.
    const fn nowhere() -> *mut Slot<W> {
        ptr::without_provenance_mut(ALIGN)
    }
}

impl<const W: usize> Deref for SlotArray<W> {
    type Target = [Slot<W>];

    #[inline(always)]
    fn deref(&self) -> &[Slot<W>] {
        // SAFETY: the array has so many slots, all written by `new`, and lives as long as `self`.
        unsafe { slice::from_raw_parts(self.start, self.len as usize) }
    }
}

impl<const W: usize> Drop for SlotArray<W> {
    fn drop(&mut self) {
        let Some(layout) = Self::layout(self.size) else { return };
        let slots = ptr::slice_from_raw_parts_mut(self.start, self.len as usize);
        // SAFETY: `new` allocated and wrote these slots. They have no readers: an array is dropped
        // before it was published, with its store, or as garbage after its last reader.
        unsafe {
            ptr::drop_in_place(slots);
            dealloc(self.start.cast(), layout);
        }
    }
}

/// The published address of an array, with its size in the low bits. Threads read it without a
/// lock.
#[derive(Debug)]
pub(crate) struct Location<const W: usize>(AtomicPtr<Slot<W>>);

impl<const W: usize> Location<W> {
    /// The location of an array without slots.
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(SlotArray::nowhere()))
    }

    fn publish(&self, array: &SlotArray<W>) {
        let size = usize::from(array.size.0);
        self.0.store(array.start.map_addr(|start| start | size), Ordering::Release);
    }

    /// The slots. They may be replaced meanwhile, but are not freed before the pin ends.
    #[inline(always)]
    pub(crate) fn read<'p>(&'p self, _: &'p Pin<'_>) -> &'p [Slot<W>] {
        let (start, size) = split(self.0.load(Ordering::Acquire));
        // SAFETY: `publish` wrote the address and the size of an array together. The array is
        // dropped with its store, which the caller borrows, or as garbage after this pin.
        unsafe { slice::from_raw_parts(start, size.slots()) }
    }

    /// The address of the slots, if they may be outside of the caches. Arrays of one chunk are 4
    /// MiB in a store of 4,096 shards.
    #[inline(always)]
    pub(crate) fn beyond_caches(&self) -> Option<SlotsAt<W>> {
        let (start, size) = split(self.0.load(Ordering::Relaxed));
        (size.0 > 1).then_some(SlotsAt { start, size })
    }
}

/// The address of an array's slots, which may have been freed.
pub(crate) struct SlotsAt<const W: usize> {
    start: *mut Slot<W>,
    size: ArraySize,
}

impl<const W: usize> SlotsAt<W> {
    /// Prefetches the slot whose index `home` computes from the number of slots.
    #[inline(always)]
    pub(crate) fn prefetch(&self, home: impl FnOnce(usize) -> usize) {
        self.prefetch_lines(1, home);
    }

    /// [`prefetch`](Self::prefetch) of `lines` cache lines from that slot on.
    #[inline(always)]
    pub(crate) fn prefetch_lines(&self, lines: usize, home: impl FnOnce(usize) -> usize) {
        let first = self.start.addr() + home(self.size.slots()) * size_of::<Slot<W>>();
        (0..lines).for_each(|line| prefetch(first + line * LINE));
    }
}

#[inline(always)]
fn split<const W: usize>(location: *mut Slot<W>) -> (*mut Slot<W>, ArraySize) {
    let size = ArraySize((location.addr() & (ALIGN - 1)) as u8);
    (location.map_addr(|address| address & !(ALIGN - 1)), size)
}

/// Replaced arrays that pinned threads may still read.
#[derive(Debug)]
pub(crate) struct Garbage(Lock<RetiredArrays>);

/// An array that waits to be dropped.
trait Retired: std::fmt::Debug + Send {}

impl<const W: usize> Retired for SlotArray<W> {}

#[derive(Debug, Default)]
struct RetiredArrays {
    arrays: Vec<Box<dyn Retired>>,
    bytes: usize,
}

impl Garbage {
    pub(crate) fn new() -> Self {
        Self(Lock::new(RetiredArrays::default()))
    }

    /// Frees all arrays if there are many. The caller must hold no lock that a pinned thread may
    /// wait for.
    pub(crate) fn free_some(&self) {
        if lock(&self.0).bytes > GARBAGE_BYTES_MAX {
            self.free_all();
        }
    }

    /// Waits for the readers of all replaced arrays, and frees the arrays.
    pub(crate) fn free_all(&self) {
        let garbage = mem::take(&mut *lock(&self.0));
        if !garbage.arrays.is_empty() && !wait_for_readers() {
            let mut kept = lock(&self.0);
            kept.arrays.extend(garbage.arrays);
            kept.bytes += garbage.bytes;
        }
    }
}
