//! Open addressing over a slot array made of small chunks of one size.
//!
//! Small equal chunks are what keeps the allocator from fragmenting and the memory close to the number of keys: a table grows by a
//! quarter of its chunks, never by doubling. Probing is linear, a new cell displaces those that are nearer to their homes than it is
//! (Robin Hood), and deletion shifts back: no key is unlucky for long, and there are no tombstones.

use super::registry::TICKET_BITS;
use crate::Ticket;

/// Slots in a chunk. Loom needs tables that grow within a few steps.
pub(crate) const SLOTS: usize = if cfg!(loom) { 4 } else { 64 };
/// What the allocator and the list of chunks add to a chunk.
const CHUNK_OVERHEAD: usize = 16 + size_of::<usize>();
const TICKET_MASK: u64 = (1 << TICKET_BITS) - 1;

/// A cell: 52 bits of the key's hash with the ticket of the numbers its words were written under, then the words.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Slot<const W: usize> {
    pub(crate) tag: u64,
    pub(crate) words: [u64; W],
}

impl<const W: usize> Slot<W> {
    const EMPTY: Self = Self { tag: 0, words: [0; W] };

    #[inline]
    pub(crate) const fn ticket(&self) -> Ticket {
        Ticket((self.tag & TICKET_MASK) as u16)
    }

    /// Stores words written under the numbers of `ticket`.
    #[inline]
    pub(crate) const fn set(&mut self, ticket: Ticket, words: [u64; W]) {
        self.tag = with_ticket(self.tag, ticket);
        self.words = words;
    }
}

/// The same key's tag under another ticket.
#[inline]
pub(crate) const fn with_ticket(tag: u64, ticket: Ticket) -> u64 {
    tag & !TICKET_MASK | ticket.0 as u64
}

/// Whether two tags are of one key.
#[inline]
pub(crate) const fn same_key(a: u64, b: u64) -> bool {
    (a ^ b) >> TICKET_BITS == 0
}

type Chunk<const W: usize> = [Slot<W>; SLOTS];

/// Cells with `W` words of state.
#[derive(Debug, Default)]
pub(crate) struct Table<const W: usize> {
    chunks: Vec<Box<Chunk<W>>>,
    slots: usize,
    len: usize,
    /// Where the search for something to evict goes on.
    hand: usize,
}

impl<const W: usize> Table<W> {
    /// Bytes that a chunk counts for.
    pub(crate) const CHUNK_BYTES: usize = size_of::<Chunk<W>>() + CHUNK_OVERHEAD;

    pub(crate) const fn new() -> Self {
        Self { chunks: Vec::new(), slots: 0, len: 0, hand: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// How many cells `chunks` chunks hold before probing gets slow: 85 %.
    pub(crate) const fn capacity_of(chunks: usize) -> usize {
        chunks * SLOTS * 17 / 20
    }

    /// How many more cells fit.
    pub(crate) const fn room(&self) -> usize {
        Self::capacity_of(self.chunks.len()).saturating_sub(self.len)
    }

    #[inline]
    pub(crate) fn slot(&self, at: usize) -> &Slot<W> {
        &self.chunks[at / SLOTS][at % SLOTS]
    }

    #[inline]
    pub(crate) fn slot_mut(&mut self, at: usize) -> &mut Slot<W> {
        &mut self.chunks[at / SLOTS][at % SLOTS]
    }

    /// Where the cell of `tag`'s key is. A tag has a bit set above its ticket, so it never equals an empty slot.
    #[inline]
    pub(crate) fn find(&self, tag: u64) -> Option<usize> {
        if self.slots == 0 {
            return None;
        }
        let home = self.home(tag);
        let (mut chunk, mut from) = (home / SLOTS, home % SLOTS);
        loop {
            for (n, slot) in self.chunks[chunk][from..].iter().enumerate() {
                if same_key(slot.tag, tag) {
                    return Some(chunk * SLOTS + from + n);
                }
                if slot.tag == 0 {
                    return None;
                }
            }
            (chunk, from) = (chunk + 1, 0);
            if chunk == self.chunks.len() {
                chunk = 0;
            }
        }
    }

    /// The slot that a search for `tag` looks at first.
    pub(crate) fn first(&self, tag: u64) -> Option<&Slot<W>> {
        (self.slots > 0).then(|| self.slot(self.home(tag)))
    }

    /// Adds a cell whose key has none. There must be [`room`](Self::room), or the table will have no empty slot to end searches at.
    pub(crate) fn insert(&mut self, slot: Slot<W>) {
        debug_assert!(self.len + 1 < self.slots, "a table keeps an empty slot");
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
        for slot in self.chunks.iter_mut().flat_map(|chunk| chunk.iter_mut()) {
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
        if chunks < self.chunks.len() {
            self.chunks.truncate(chunks);
            self.chunks.shrink_to(chunks);
        } else {
            self.chunks.reserve_exact(chunks - self.chunks.len());
            while self.chunks.len() < chunks {
                self.chunks.push(Box::new([Slot::EMPTY; SLOTS]));
            }
        }
        self.slots = chunks * SLOTS;
        self.hand = 0;
    }

    /// Every cell.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot<W>> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).filter(|slot| slot.tag != 0)
    }

    /// Moves the hand on and answers with the slot it left, if there is a cell in it.
    pub(crate) fn turn(&mut self) -> Option<(usize, Slot<W>)> {
        if self.slots == 0 {
            return None;
        }
        let at = self.hand;
        self.hand = self.after(at);
        let slot = *self.slot(at);
        (slot.tag != 0).then_some((at, slot))
    }

    #[inline]
    fn home(&self, tag: u64) -> usize {
        ((tag >> 32) as usize * self.slots) >> 32
    }

    #[inline]
    const fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots { 0 } else { at + 1 }
    }

    /// How far `to` lies after `from`.
    const fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.slots - from }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
