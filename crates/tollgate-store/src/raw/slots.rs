//! Arrays of slots, which threads read without a lock while others replace them.

use super::pin::{Pin, wait_for_readers};
use super::prefetch::prefetch;
use crate::sync::{AtomicPtr, AtomicU64, Lock, Ordering, lock};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::Deref;
use std::{mem, ptr, slice};

/// Slots in a chunk. Loom needs tables that grow within a few steps.
pub(crate) const SLOTS: usize = if cfg!(loom) { 4 } else { 64 };
/// Arrays begin here, so that an address has free bits for a size.
const ALIGN: usize = 128;
/// Replaced arrays that may wait to be freed. Then a thread waits for their readers.
const GARBAGE_BYTES_MAX: usize = 1 << 20;

/// A tag, then the words that belong to it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Slot<const W: usize> {
    pub(crate) tag: AtomicU64,
    pub(crate) words: [AtomicU64; W],
}

/// The size of an array: a float of four bits exponent and three bits mantissa, in chunks. The next
/// size is larger by one chunk, or by an eighth at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArraySize(u8);

impl ArraySize {
    pub(crate) const ZERO: Self = Self(0);
    const MAX: u8 = ALIGN as u8 - 1;

    #[inline(always)]
    pub(crate) const fn chunks(self) -> usize {
        let (exponent, mantissa) = ((self.0 >> 3) as usize, (self.0 & 7) as usize);
        if exponent == 0 { mantissa } else { (8 + mantissa) << (exponent - 1) }
    }

    #[inline(always)]
    pub(crate) const fn slots(self) -> usize {
        self.chunks() * SLOTS
    }

    /// The next larger size, if there is one.
    pub(crate) fn next(self) -> Option<Self> {
        (self.0 < Self::MAX).then_some(Self(self.0 + 1))
    }
}

/// An array of slots. Once published, it leaves its owner only by [`replace`](Self::replace), or
/// with the store, which then has no readers.
#[derive(Debug)]
pub(crate) struct SlotArray<const W: usize> {
    start: *mut Slot<W>,
    size: ArraySize,
}

// SAFETY: it owns its slots, which are atomics.
unsafe impl<const W: usize> Send for SlotArray<W> {}
// SAFETY: as above.
unsafe impl<const W: usize> Sync for SlotArray<W> {}

impl<const W: usize> SlotArray<W> {
    /// Slots that are all zero.
    pub(crate) fn new(size: ArraySize) -> Self {
        let Some(layout) = Self::layout(size) else {
            return Self { start: Self::nowhere(), size };
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
        Self { start, size }
    }

    pub(crate) const fn size(&self) -> ArraySize {
        self.size
    }

    /// Replaces and publishes the array. The old one is freed when no pinned thread can read it.
    pub(crate) fn replace(&mut self, new: Self, location: &Location<W>, garbage: &Garbage) {
        location.publish(&new);
        let bytes = Self::layout(self.size).map_or(0, |layout| layout.size());
        let old = mem::replace(self, new);
        let mut garbage = lock(&garbage.0);
        garbage.arrays.push(Box::new(old));
        garbage.bytes += bytes;
    }

    /// `None` for no slots.
    fn layout(size: ArraySize) -> Option<Layout> {
        let array = Layout::array::<Slot<W>>(size.slots()).ok()?.align_to(ALIGN).ok()?;
        (array.size() > 0).then_some(array)
    }

    /// The address of no slots, aligned like that of some.
    const fn nowhere() -> *mut Slot<W> {
        ptr::without_provenance_mut(ALIGN)
    }
}

impl<const W: usize> Deref for SlotArray<W> {
    type Target = [Slot<W>];

    #[inline(always)]
    fn deref(&self) -> &[Slot<W>] {
        // SAFETY: the array has so many slots, all written by `new`, and lives as long as `self`.
        unsafe { slice::from_raw_parts(self.start, self.size.slots()) }
    }
}

impl<const W: usize> Drop for SlotArray<W> {
    fn drop(&mut self) {
        let Some(layout) = Self::layout(self.size) else { return };
        let slots = ptr::slice_from_raw_parts_mut(self.start, self.size.slots());
        // SAFETY: `new` allocated and wrote these slots. They have no readers: an array is dropped
        // before it was published, with its store, or as garbage after its last reader.
        unsafe {
            ptr::drop_in_place(slots);
            dealloc(self.start.cast(), layout);
        }
    }
}

/// Where threads find an array without a lock: its address, with its size in the low bits.
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

    /// The slots. They may have been replaced meanwhile, but are not freed before the pin ends.
    #[inline(always)]
    pub(crate) fn read<'p>(&'p self, _: &'p Pin<'_>) -> &'p [Slot<W>] {
        let (start, size) = split(self.0.load(Ordering::Acquire));
        // SAFETY: `publish` wrote the address and the size of an array together. The array is
        // dropped with its store, which the caller borrows, or as garbage after this pin.
        unsafe { slice::from_raw_parts(start, size.slots()) }
    }

    /// Prefetches the slot that `home` chooses among so many.
    #[inline(always)]
    pub(crate) fn prefetch(&self, home: impl FnOnce(usize) -> usize) {
        self.slots_at().prefetch(home);
    }

    /// Where the slots are, if they may be outside of the caches: arrays of one chunk are 4 MiB in
    /// a store of 4,096 shards.
    #[inline(always)]
    pub(crate) fn beyond_caches(&self) -> Option<SlotsAt<W>> {
        let slots = self.slots_at();
        (slots.size.0 > 1).then_some(slots)
    }

    #[inline(always)]
    fn slots_at(&self) -> SlotsAt<W> {
        let (start, size) = split(self.0.load(Ordering::Relaxed));
        SlotsAt { start, size }
    }
}

/// Where the slots of an array are, or were.
pub(crate) struct SlotsAt<const W: usize> {
    start: *mut Slot<W>,
    size: ArraySize,
}

impl<const W: usize> SlotsAt<W> {
    /// Prefetches the slot that `home` chooses among so many.
    #[inline(always)]
    pub(crate) fn prefetch(&self, home: impl FnOnce(usize) -> usize) {
        prefetch(self.start.addr() + home(self.size.slots()) * size_of::<Slot<W>>());
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

/// An array that is kept to be dropped later.
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

    /// Frees everything if there is much of it. The caller holds no lock that a pinned thread may
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
