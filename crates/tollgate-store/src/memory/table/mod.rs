//! Open addressing over one array of slots, so that a search follows one pointer and misses the
//! cache once.
//!
//! The array is counted in small chunks, which keeps the memory close to the number of keys: a
//! table grows by an eighth of its chunks, never by doubling. Probing is linear, a new cell
//! displaces those that are nearer to their homes than it is (Robin Hood), and deletion shifts
//! back: no key is unlucky for long, and there are no tombstones.

pub(super) mod address;
pub(super) mod budget;
pub(super) mod prefetch_hints;

use super::params_registry::PARAMS_ID_BITS;
use crate::ParamsId;
use prefetch_hints::{LINE, SlotHint, TableLocation};

/// Slots in a chunk. Loom needs tables that grow within a few steps.
pub(crate) const SLOTS: usize = if cfg!(loom) { 4 } else { 64 };
/// What a chunk of cells costs beside the cells: arrays that grow leave holes in the allocator's
/// heap, measured at up to 19 % of it.
const CHUNK_OVERHEAD: usize = 192;
/// Slots that are looked at together: those of a line, where lines hold a whole number of them.
const SLOTS_PER_LINE: usize = 4;
const TICKET_MASK: u64 = (1 << PARAMS_ID_BITS) - 1;

/// A cell: 52 bits of the key's hash with the ticket of the numbers its words were written under,
/// then the words.
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
        ParamsId((self.tag & TICKET_MASK) as u16)
    }

    /// Stores words written under the numbers of `ticket`.
    #[inline]
    pub(crate) const fn set(&mut self, params_id: ParamsId, words: [u64; W]) {
        self.tag = with_params_id(self.tag, params_id);
        self.words = words;
    }
}

/// The same key's tag under another ticket.
#[inline]
pub(crate) const fn with_params_id(tag: u64, params_id: ParamsId) -> u64 {
    tag & !TICKET_MASK | params_id.0 as u64
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

/// Where a search for `tag` begins among `len` slots: at the beginning of a line, of which
/// `aligned` is the first.
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
    /// Where the search for something to evict goes on.
    hand: usize,
    /// The first slot at the beginning of a cache line, where there are such.
    aligned: usize,
}

impl<const W: usize> CellTable<W> {
    /// Bytes that a chunk counts for.
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

    /// How many cells `chunks` chunks hold before probing gets slow: 85 %.
    pub(crate) const fn capacity_of(chunks: usize) -> usize {
        chunks * SLOTS * 17 / 20
    }

    /// How many more cells fit.
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

    /// Where the cell of `tag`'s key is. A tag has a bit set above its ticket, so it never equals
    /// an empty slot.
    #[inline]
    pub(crate) fn find(&self, tag: u64) -> Option<usize> {
        self.find_from(self.home(tag), tag)
    }

    /// As [`find`](Self::find), for whoever has made a guess where it is.
    #[inline(always)]
    pub(crate) fn find_with_hint(&self, guess: SlotHint, tag: u64) -> Option<usize> {
        match guess.len == self.slots.len() {
            true => self.find_from(guess.home + self.aligned, tag),
            false => self.find(tag),
        }
    }

    #[inline(always)]
    fn find_from(&self, home: usize, tag: u64) -> Option<usize> {
        let mut at = home;
        // A few keys that come often are at home, which can be foreseen. Where in its line another
        // one is cannot be, so the rest of the line is looked at as a whole: guessing wrong would
        // cost more.
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

    /// Adds a cell whose key has none. There must be [`room`](Self::room), or the table will have
    /// no empty slot to end searches at.
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

    /// Takes the cell at `at` out and moves back by one those behind it that are not at home.
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

    /// Takes every cell out, leaving the chunks.
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

    /// Makes it `chunks` long. The table must have been drained.
    pub(crate) fn resize(&mut self, chunks: usize) {
        debug_assert!(self.len == 0, "cells would lose their homes");
        // The old array goes first: the allocator can put the new one where it was.
        self.slots = Vec::new();
        self.slots = vec![Slot::EMPTY; chunks * SLOTS];
        self.hand = 0;
        let before = self.slots.as_ptr().addr().next_multiple_of(LINE) - self.slots.as_ptr().addr();
        self.aligned = if in_lines::<W>() { before / size_of::<Slot<W>>() } else { 0 };
    }

    /// Every cell.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot<W>> {
        self.slots.iter().filter(|slot| slot.tag != 0)
    }

    /// Moves the hand on and answers with the slot it left, if there is a cell in it.
    pub(crate) fn advance_hand(&mut self) -> Option<(usize, Slot<W>)> {
        let at = self.hand;
        let slot = *self.slots.get(at)?;
        self.hand = self.after(at);
        (slot.tag != 0).then_some((at, slot))
    }

    /// Where the slots are.
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

    /// How far `to` lies after `from`.
    const fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.slots.len() - from }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
