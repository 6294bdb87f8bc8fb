//! Hash tables of cells, the addresses of cells, and the memory budget.
//!
//! A table is one array with open addressing, so a search follows one pointer and misses the cache
//! once. Probing is linear, from the start of a cache line.
//!
//! Threads read and swap words of the narrow table without its lock. These rules keep them exact:
//!
//! * **A tag is written once in the life of an array.** So a word that a thread has read under a
//!   tag is still that key's when the thread swaps it. Removal kills the word; the slot stays
//!   taken.
//! * **Only inline words are swapped without the lock.** The lock's holder takes a word out of the
//!   array by a swap, works on its copy, and stores the result. Meanwhile other threads wait for
//!   the lock.
//! * **Another array begins with a swap of every old word.** A swap by another thread comes before
//!   that and is copied, or fails.

pub(super) mod address;
pub(super) mod budget;
mod key_hash;

use super::params_registry::PARAMS_ID_BITS;
use crate::ParamsId;
use crate::raw::prefetch::LINE;
use crate::raw::slots::{ArraySize, SLOTS, Slot, SlotArray};
use crate::sync::Ordering;
use address::HOME_BITS;

/// The bit that marks a first word as no inline state.
const NOT_INLINE: u64 = 1 << 63;
/// The bits that mark a first word as an index into [`CellTable::held`].
const HELD: u64 = 0b11 << 62;
/// The first word of a slot whose key has no state, and of every slot of an old array.
const DEAD: u64 = u64::MAX;
/// Overhead of a chunk: growing arrays leave holes in the heap, measured at up to 19 %.
const CHUNK_OVERHEAD: usize = 192;
/// Slots that a search compares together: those of a cache line.
const SLOTS_PER_LINE: usize = 4;
const PARAMS_ID_MASK: u64 = (1 << PARAMS_ID_BITS) - 1;

/// A cell: 52 bits of the hash with the params id its words were written under, then the words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<const W: usize> {
    pub(crate) tag: u64,
    pub(crate) words: [u64; W],
}

impl<const W: usize> Cell<W> {
    #[inline]
    pub(crate) const fn params_id(&self) -> ParamsId {
        ParamsId((self.tag & PARAMS_ID_MASK) as u16)
    }

    /// The index in the slab of a spilled state.
    #[inline]
    pub(crate) const fn spilled(&self) -> Option<u32> {
        if self.words[0] & NOT_INLINE == 0 { None } else { Some(self.words[0] as u32) }
    }

    /// A cell whose state is in the slab at `index`.
    pub(crate) const fn spilled_at(tag: u64, index: u32) -> Self {
        let mut words = [0; W];
        words[0] = NOT_INLINE | index as u64;
        Self { tag, words }
    }
}

/// Whether a word holds a state, which a thread may swap without the lock.
#[inline(always)]
pub(crate) const fn is_inline(word: u64) -> bool {
    word & NOT_INLINE == 0
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

/// Where a search for `tag` begins among `len` slots: at the start of a cache line, if slots fill
/// lines.
#[inline(always)]
pub(crate) const fn home<const W: usize>(tag: u64, len: usize) -> usize {
    let at = (tag >> (64 - HOME_BITS)) as usize * len;
    if LINE.is_multiple_of(8 + 8 * W) {
        (at >> (HOME_BITS + SLOTS_PER_LINE.ilog2())) * SLOTS_PER_LINE
    } else {
        at >> HOME_BITS
    }
}

/// Finds the slot of a tag, params id included, without a lock.
#[inline(always)]
pub(crate) fn find_exact<const W: usize>(slots: &[Slot<W>], tag: u64) -> Option<&Slot<W>> {
    find_exact_or(slots, tag, home::<W>(tag, slots.len())).map(|(_, slot)| slot)
}

/// Finds the slot of a tag, params id included, and its index, without a lock. Compares the slot at
/// `guess` first: most guesses are right, or most are wrong, so a branch predictor learns it.
#[inline(always)]
pub(crate) fn find_exact_or<const W: usize>(
    slots: &[Slot<W>],
    tag: u64,
    guess: usize,
) -> Option<(usize, &Slot<W>)> {
    let tag_of = |slot: &Slot<W>| slot.tag.load(Ordering::Acquire);
    if let Some(guessed) = slots.get(guess)
        && tag_of(guessed) == tag
    {
        return Some((guess, guessed));
    }
    let mut at = home::<W>(tag, slots.len());
    if !LINE.is_multiple_of(8 + 8 * W) {
        loop {
            let slot = slots.get(at)?;
            match tag_of(slot) {
                found if found == tag => return Some((at, slot)),
                0 => return None,
                _ => at = if at + 1 == slots.len() { 0 } else { at + 1 },
            }
        }
    }
    // The position in the line is unpredictable, so a line is compared without branches.
    loop {
        let line = slots.get(at..at + SLOTS_PER_LINE)?;
        let [a, b, c, d] = line else { return None };
        let (in_a, in_b, in_c) = (tag_of(a) == tag, tag_of(b) == tag, tag_of(c) == tag);
        let last = tag_of(d);
        let nth = if last == tag { 3 } else { SLOTS_PER_LINE };
        let nth = if in_c { 2 } else { nth };
        let nth = if in_b { 1 } else { nth };
        let nth = if in_a { 0 } else { nth };
        if let Some(slot) = line.get(nth) {
            return Some((at + nth, slot));
        }
        // Slots of a line fill in order.
        if last == 0 {
            return None;
        }
        at = if at + SLOTS_PER_LINE == slots.len() { 0 } else { at + SLOTS_PER_LINE };
    }
}

/// Words that the lock's holder has taken out of a slot.
#[derive(Debug)]
struct HeldWords<const W: usize> {
    at: usize,
    tag: u64,
    words: [u64; W],
}

/// Cells with `W` words of state. Every method needs the shard's lock.
#[derive(Debug)]
pub(crate) struct CellTable<const W: usize> {
    pub(crate) slots: SlotArray<W>,
    /// Cells.
    live: usize,
    /// Slots with a tag: cells, and those that died since the array was made.
    used: usize,
    held: Vec<HeldWords<W>>,
}

impl<const W: usize> CellTable<W> {
    /// Bytes that a chunk counts against the cap.
    pub(crate) const CHUNK_BYTES: usize = 8 * (1 + W) * SLOTS + CHUNK_OVERHEAD;

    pub(crate) fn new() -> Self {
        Self { slots: SlotArray::new(ArraySize::ZERO), live: 0, used: 0, held: Vec::new() }
    }

    pub(crate) const fn len(&self) -> usize {
        self.live
    }

    pub(crate) const fn size(&self) -> ArraySize {
        self.slots.size()
    }

    /// The cells that an array holds before probing gets slow: 85 %.
    pub(crate) const fn capacity_of(size: ArraySize) -> usize {
        size.slots() * 17 / 20
    }

    /// New keys that still fit.
    pub(crate) const fn room(&self) -> usize {
        Self::capacity_of(self.size()).saturating_sub(self.used)
    }

    /// Whether a known key can move to another slot. New keys leave room for that.
    pub(crate) const fn has_spare_slot(&self) -> bool {
        self.used < self.size().slots() / 16 * 15
    }

    /// Slots whose cells have died.
    pub(crate) const fn dead(&self) -> usize {
        self.used - self.live
    }

    /// The cell of a slot.
    #[inline]
    pub(crate) fn cell(&self, at: usize) -> Cell<W> {
        let slot = &self.slots[at];
        let words = std::array::from_fn(|n| slot.words[n].load(Ordering::Acquire));
        Cell { tag: slot.tag.load(Ordering::Relaxed), words: self.resolve(words) }
    }

    /// The words of a slot that holds these: those taken out of it, if any.
    #[inline]
    fn resolve(&self, words: [u64; W]) -> [u64; W] {
        match self.held_at(words[0]) {
            Some(index) => self.held[index].words,
            None => words,
        }
    }

    #[inline]
    const fn held_at(&self, word: u64) -> Option<usize> {
        // Only narrow words are taken out.
        if W == 1 && word & HELD == HELD && word != DEAD {
            Some((word & !HELD) as usize)
        } else {
            None
        }
    }

    /// Finds the cell of a key, and takes its words out of the array until
    /// [`release`](Self::release).
    #[inline(always)]
    pub(crate) fn hold(&mut self, tag: u64) -> Option<(usize, Cell<W>)> {
        let at = self.find(tag)?;
        let slot = &self.slots[at];
        let tag = slot.tag.load(Ordering::Relaxed);
        // Wide cells are read under the lock only.
        if W > 1 || !is_inline(slot.words[0].load(Ordering::Relaxed)) {
            return Some((at, self.cell(at)));
        }
        let marker = HELD | self.held.len() as u64;
        let words = [slot.words[0].swap(marker, Ordering::AcqRel); W];
        self.held.push(HeldWords { at, tag, words });
        Some((at, Cell { tag, words }))
    }

    /// Finds the cell of a key.
    #[inline(always)]
    pub(crate) fn find(&self, tag: u64) -> Option<usize> {
        let mut at = home::<W>(tag, self.slots.len());
        loop {
            let slot = self.slots.get(at)?;
            let found = slot.tag.load(Ordering::Relaxed);
            if same_key(found, tag) {
                let word = slot.words[0].load(Ordering::Relaxed);
                if is_inline(word) || self.cell(at).words[0] != DEAD {
                    return Some(at);
                }
            }
            if found == 0 {
                return None;
            }
            at = self.after(at);
        }
    }

    /// The index in the slab of a state under this tag, params id included.
    #[inline(always)]
    pub(crate) fn spilled_exact(&self, tag: u64) -> Option<u32> {
        let word = find_exact(&self.slots, tag)?.words[0].load(Ordering::Relaxed);
        (word & HELD == NOT_INLINE).then_some(word as u32)
    }

    /// Puts all words back that were taken out.
    #[inline]
    pub(crate) fn release(&mut self) {
        for HeldWords { at, words, .. } in &self.held {
            if let Some(slot) = self.slots.get(*at) {
                slot.words[0].store(words[0], Ordering::Release);
            }
        }
        self.held.clear();
    }

    /// Writes the words of a slot.
    #[inline(always)]
    pub(crate) fn set(&mut self, at: usize, words: [u64; W]) {
        match self.held_at(self.slots[at].words[0].load(Ordering::Relaxed)) {
            Some(index) => self.held[index].words = words,
            None => store(&self.slots[at], words),
        }
    }

    /// Adds a cell for a key without one. There must be [`room`](Self::room): a search ends at an
    /// empty slot.
    pub(crate) fn insert(&mut self, cell: Cell<W>) {
        debug_assert!(self.used + 1 < self.slots.len(), "a table keeps an empty slot");
        let mut at = home::<W>(cell.tag, self.slots.len());
        self.live += 1;
        loop {
            match self.slots[at].tag.load(Ordering::Relaxed) {
                0 => break,
                // The same key was there before, so the slot can be used again.
                dead if dead == cell.tag => return self.set(at, cell.words),
                _ => at = self.after(at),
            }
        }
        self.used += 1;
        store(&self.slots[at], cell.words);
        // After the words: a thread that finds the tag must see them.
        self.slots[at].tag.store(cell.tag, Ordering::Release);
    }

    /// Removes the cell of a slot.
    pub(crate) fn remove(&mut self, at: usize) -> Cell<W> {
        let cell = self.cell(at);
        self.set(at, [DEAD; W]);
        self.live -= 1;
        cell
    }

    /// Takes all cells out of the array for ever. Only [`refill`](Self::refill) may follow.
    pub(crate) fn drain(&mut self) -> Vec<Cell<W>> {
        let mut cells = Vec::with_capacity(self.live);
        for slot in self.slots.iter() {
            let tag = slot.tag.load(Ordering::Relaxed);
            if tag == 0 {
                continue;
            }
            let words = std::array::from_fn(|n| slot.words[n].swap(DEAD, Ordering::AcqRel));
            let words = self.resolve(words);
            if words[0] != DEAD {
                cells.push(Cell { tag, words });
            }
        }
        cells
    }

    /// Puts drained cells into another array, which `publish` puts in the place of the old one.
    /// Held words stay held.
    pub(crate) fn refill(
        &mut self,
        cells: &[Cell<W>],
        size: ArraySize,
        publish: impl FnOnce(&mut SlotArray<W>, SlotArray<W>),
    ) {
        let mut new = Self { slots: SlotArray::new(size), live: 0, used: 0, held: Vec::new() };
        cells.iter().for_each(|&cell| new.insert(cell));
        for (index, held) in self.held.iter_mut().enumerate() {
            let alive = held.words[0] != DEAD;
            held.at = alive.then(|| new.find(held.tag)).flatten().unwrap_or(usize::MAX);
            if let Some(slot) = new.slots.get(held.at) {
                slot.words[0].store(HELD | index as u64, Ordering::Relaxed);
            }
        }
        (self.live, self.used) = (new.live, new.used);
        publish(&mut self.slots, new.slots);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Cell<W>> {
        let tagged = |&at: &usize| self.slots[at].tag.load(Ordering::Relaxed) != 0;
        let cells = (0..self.slots.len()).filter(tagged).map(|at| self.cell(at));
        cells.filter(|cell| cell.words[0] != DEAD)
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }
}

#[inline]
fn store<const W: usize>(slot: &Slot<W>, words: [u64; W]) {
    for (to, word) in slot.words.iter().zip(words) {
        to.store(word, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
