//! Hash tables of cells, the addresses of cells, prefetching, and the memory budget.
//!
//! A table is one array with open addressing, so a search follows one pointer and misses the cache
//! once. It grows by an eighth, in small chunks, so memory stays close to the number of keys.
//! Probing is linear, insertion is Robin Hood, and deletion shifts back: no key is far from home,
//! and there are no tombstones.

pub(super) mod address;
pub(super) mod budget;
pub(super) mod prefetch_hints;

use super::params_registry::PARAMS_ID_BITS;
use crate::ParamsId;
use prefetch_hints::{LINE, SlotHint, TableLocation};

/// Slots in a chunk. Loom needs tables that grow within a few steps.
pub(crate) const SLOTS: usize = if cfg!(loom) { 4 } else { 64 };
/// Overhead of a chunk: growing arrays leave holes in the heap, measured at up to 19 %.
const CHUNK_OVERHEAD: usize = 192;
/// Slots that a search compares together: those of a cache line.
const SLOTS_PER_LINE: usize = 4;
const PARAMS_ID_MASK: u64 = (1 << PARAMS_ID_BITS) - 1;

/// A cell: 52 bits of the hash with the params id its words were written under, then the words.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Slot<const W: usize> {
    pub(crate) tag: u64,
    pub(crate) words: [u64; W],
}

impl<const W: usize> Slot<W> {
    const EMPTY: Self = Self { tag: 0, words: [0; W] };

    #[inline]
    pub(crate) const fn params_id(&self) -> ParamsId {
        ParamsId((self.tag & PARAMS_ID_MASK) as u16)
    }

    /// Stores words written under the params of `params_id`.
    #[inline]
    pub(crate) const fn set(&mut self, params_id: ParamsId, words: [u64; W]) {
        self.tag = with_params_id(self.tag, params_id);
        self.words = words;
    }
}

/// A key's tag with another params id.
#[inline]
pub(crate) const fn with_params_id(tag: u64, params_id: ParamsId) -> u64 {
    tag & !PARAMS_ID_MASK | params_id.0 as u64
}

/// Whether two tags are of one key.
#[inline]
pub(crate) const fn same_key(a: u64, b: u64) -> bool {
    (a ^ b) >> PARAMS_ID_BITS == 0
}

/// Whether a cache line holds a whole number of cells.
const fn in_lines<const W: usize>() -> bool {
    LINE.is_multiple_of(size_of::<Slot<W>>())
}

/// Where a search for `tag` begins among `len` slots: at the start of a cache line, the first of
/// which is at `aligned`.
#[inline(always)]
pub(crate) const fn home<const W: usize>(tag: u64, len: usize, aligned: usize) -> usize {
    let at = ((tag >> 32) as usize * len) >> 32;
    if in_lines::<W>() { (at & !(SLOTS_PER_LINE - 1)) + aligned } else { at }
}

/// Cells with `W` words of state.
#[derive(Debug, Default)]
pub(crate) struct CellTable<const W: usize> {
    slots: Vec<Slot<W>>,
    len: usize,
    /// The clock hand of evictions.
    hand: usize,
    /// The first slot at the start of a cache line, if slots fill lines.
    aligned: usize,
}

impl<const W: usize> CellTable<W> {
    /// Bytes that a chunk counts against the cap.
    pub(crate) const CHUNK_BYTES: usize = size_of::<Slot<W>>() * SLOTS + CHUNK_OVERHEAD;

    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), len: 0, hand: 0, aligned: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn chunks(&self) -> usize {
        self.slots.len() / SLOTS
    }

    /// The cells that `chunks` chunks hold before probing gets slow: 85 %.
    pub(crate) const fn capacity_of(chunks: usize) -> usize {
        chunks * SLOTS * 17 / 20
    }

    /// Cells that still fit.
    pub(crate) const fn room(&self) -> usize {
        Self::capacity_of(self.chunks()).saturating_sub(self.len)
    }

    #[inline]
    pub(crate) fn slot(&self, at: usize) -> &Slot<W> {
        &self.slots[at]
    }

    #[inline]
    pub(crate) fn slot_mut(&mut self, at: usize) -> &mut Slot<W> {
        &mut self.slots[at]
    }

    /// Finds the slot of a tag. A tag has a bit set above its params id, so it never equals an
    /// empty slot.
    #[inline]
    pub(crate) fn find(&self, tag: u64) -> Option<usize> {
        self.find_from(self.home(tag), tag)
    }

    /// [`find`](Self::find) with a hint where the search begins.
    #[inline(always)]
    pub(crate) fn find_with_hint(&self, hint: SlotHint, tag: u64) -> Option<usize> {
        if hint.len == self.slots.len() {
            self.find_from(hint.home + self.aligned, tag)
        } else {
            self.find(tag)
        }
    }

    #[inline(always)]
    fn find_from(&self, home: usize, tag: u64) -> Option<usize> {
        let mut at = home;
        // Busy keys are mostly at home, which the branch predictor learns. The position of others
        // in the line is unpredictable, so the rest of the line is compared without branches.
        if let Some([a, b, c, d]) = self.slots.get(at..at + SLOTS_PER_LINE) {
            if same_key(a.tag, tag) {
                return Some(at);
            }
            let nth = if same_key(d.tag, tag) { 3 } else { SLOTS_PER_LINE };
            let nth = if same_key(c.tag, tag) { 2 } else { nth };
            let nth = if same_key(b.tag, tag) { 1 } else { nth };
            if nth < SLOTS_PER_LINE {
                return Some(at + nth);
            }
        }
        loop {
            let found = self.slots.get(at)?.tag;
            if same_key(found, tag) {
                return Some(at);
            }
            if found == 0 {
                return None;
            }
            at = self.after(at);
        }
    }

    /// Adds a cell for a key without one. There must be [`room`](Self::room): a search ends at an
    /// empty slot.
    pub(crate) fn insert(&mut self, slot: Slot<W>) {
        debug_assert!(self.len + 1 < self.slots.len(), "a table keeps an empty slot");
        let (mut slot, mut at, mut away) = (slot, self.home(slot.tag), 0);
        while self.slot(at).tag != 0 {
            let here = self.distance(self.home(self.slot(at).tag), at);
            if here < away {
                std::mem::swap(&mut slot, self.slot_mut(at));
                away = here;
            }
            (at, away) = (self.after(at), away + 1);
        }
        *self.slot_mut(at) = slot;
        self.len += 1;
    }

    /// Removes the cell at `at`, and shifts back those behind it that are not at home.
    pub(crate) fn remove(&mut self, at: usize) -> Slot<W> {
        let removed = *self.slot(at);
        let (mut hole, mut next) = (at, self.after(at));
        while self.slot(next).tag != 0 && self.home(self.slot(next).tag) != next {
            *self.slot_mut(hole) = *self.slot(next);
            (hole, next) = (next, self.after(next));
        }
        *self.slot_mut(hole) = Slot::EMPTY;
        self.len -= 1;
        removed
    }

    /// Removes all cells, and keeps the chunks.
    pub(crate) fn drain(&mut self) -> Vec<Slot<W>> {
        let mut cells = Vec::with_capacity(self.len);
        for slot in &mut self.slots {
            if slot.tag != 0 {
                cells.push(*slot);
                *slot = Slot::EMPTY;
            }
        }
        self.len = 0;
        cells
    }

    /// Resizes the table to `chunks`. It must be empty.
    pub(crate) fn resize(&mut self, chunks: usize) {
        debug_assert!(self.len == 0, "cells would lose their homes");
        // The old array is freed first, so that the allocator can reuse its memory.
        self.slots = Vec::new();
        self.slots = vec![Slot::EMPTY; chunks * SLOTS];
        self.hand = 0;
        let before = self.slots.as_ptr().addr().next_multiple_of(LINE) - self.slots.as_ptr().addr();
        self.aligned = if in_lines::<W>() { before / size_of::<Slot<W>>() } else { 0 };
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot<W>> {
        self.slots.iter().filter(|slot| slot.tag != 0)
    }

    /// Advances the clock hand. Returns the slot it left, if it has a cell.
    pub(crate) fn advance_hand(&mut self) -> Option<(usize, Slot<W>)> {
        let at = self.hand;
        let slot = *self.slots.get(at)?;
        self.hand = self.after(at);
        (slot.tag != 0).then_some((at, slot))
    }

    pub(crate) fn location(&self) -> TableLocation {
        TableLocation::new(self.slots.as_ptr().addr(), self.slots.len())
    }

    #[inline]
    fn home(&self, tag: u64) -> usize {
        home::<W>(tag, self.slots.len(), self.aligned)
    }

    #[inline]
    const fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }

    const fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.slots.len() - from }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
