//! Making room. Idle state goes first; then state of which next to nothing was used; never a key that is limited.

use super::Shared;
use super::pack::{SPILLED, unpack_any};
use super::shard::{Shard, Tables, is_wide};
use super::slab::{Slab, Spilled};
use super::sweep::spared_since;
use super::table::{Slot, Table, same_key};
use crate::sync::Ordering;
use tollgate_core::{Algorithm, Intent, Numbers, State};

/// Slots looked at for idle state before state that is nearly unused goes.
const LOOK: usize = 16;
/// Slots looked at before a new key has to share an overflow cell.
const LOOK_MAX: usize = 128;

/// What is lost when a cell is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worth {
    /// Nothing: its limit is as if never used.
    Idle,
    /// At most a tenth of its limit.
    Little,
    /// It would be a way around the limit.
    Keep,
}

/// Room that a request needs in one shard.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Want {
    /// Cells.
    pub(crate) cells: usize,
    /// Spilled ones among them.
    pub(crate) spilled: usize,
}

impl Shard {
    /// Makes room for cells of these numbers, sparing those of `pinned`. With `force` beyond the cap if nothing else helps.
    pub(crate) fn reserve(
        &mut self,
        shared: &Shared,
        numbers: &Numbers,
        now_us: u64,
        want: Want,
        pinned: &[u64],
        force: bool,
    ) -> bool {
        let cells = match is_wide(numbers) {
            true => self.reserve_cells::<2>(shared, now_us, want.cells, pinned, force),
            false => self.reserve_cells::<1>(shared, now_us, want.cells, pinned, force),
        };
        cells && self.reserve_spilled(shared, now_us, want.spilled, pinned, force)
    }

    fn reserve_cells<const W: usize>(
        &mut self,
        shared: &Shared,
        now_us: u64,
        want: usize,
        pinned: &[u64],
        force: bool,
    ) -> bool
    where
        Self: Tables<W>,
    {
        // Overflow cells may have taken the store beyond its cap. The room that came with them is not for new keys.
        let over = shared.budget.is_over();
        let roomy = self.table().room() >= want && (force || !over);
        if roomy || (!over && self.grow::<W>(shared, now_us, want)) {
            return true;
        }
        let evicted = (0..want).take_while(|_| self.evict_one::<W>(shared, now_us, pinned)).count();
        if self.table().room() < want && force {
            let more = want.div_ceil(Table::<W>::capacity_of(1));
            shared.budget.take(more * Table::<W>::CHUNK_BYTES);
            let cells = self.parts().0.drain();
            self.refill::<W>(shared, cells, self.table().chunks() + more);
        }
        self.table().room() >= want && (force || evicted == want)
    }

    /// Drops what has been idle for a while, and grows by about an eighth if that is not enough. Does nothing when the cap leaves no room to grow.
    fn grow<const W: usize>(&mut self, shared: &Shared, now_us: u64, want: usize) -> bool
    where
        Self: Tables<W>,
    {
        let chunks = self.table().chunks();
        let step = (chunks / 8).max(want.div_ceil(Table::<W>::capacity_of(1)));
        let bytes = |chunks: usize| chunks * Table::<W>::CHUNK_BYTES;
        let taken = match shared.budget.try_take(bytes(step)) {
            true => step,
            false if step > 1 && shared.budget.try_take(bytes(1)) => 1,
            false => return false,
        };
        let cells = self.drain_idle::<W>(shared, spared_since(shared, now_us));
        let enough = Table::<W>::capacity_of(chunks) * 4 / 5;
        if cells.len() + want <= enough {
            shared.budget.give(bytes(taken));
            self.refill::<W>(shared, cells, chunks);
        } else {
            self.refill::<W>(shared, cells, chunks + taken);
        }
        self.table().room() >= want
    }

    /// Takes every cell out of the table and forgets those that were idle at that instant.
    pub(super) fn drain_idle<const W: usize>(
        &mut self,
        shared: &Shared,
        idle_us: u64,
    ) -> Vec<Slot<W>>
    where
        Self: Tables<W>,
    {
        let (table, slab) = self.parts();
        let mut cells = table.drain();
        cells.retain(|slot| {
            let idle = idle_at_us(shared, slab, slot) <= idle_us;
            if idle {
                forget_spilled(shared, slab, slot);
            }
            !idle
        });
        cells
    }

    pub(super) fn refill<const W: usize>(
        &mut self,
        shared: &Shared,
        cells: Vec<Slot<W>>,
        chunks: usize,
    ) where
        Self: Tables<W>,
    {
        let (table, _) = self.parts();
        table.resize(chunks);
        let view = table.view();
        for slot in cells {
            table.insert(slot);
        }
        shared.views.publish::<W>(self.number, view);
    }

    /// Forgets one cell that may be forgotten, if the hand finds one.
    fn evict_one<const W: usize>(&mut self, shared: &Shared, now_us: u64, pinned: &[u64]) -> bool
    where
        Self: Tables<W>,
    {
        let (table, slab) = self.parts();
        let mut candidate = None;
        for looked in 0..LOOK_MAX.min(table.chunks() * super::table::SLOTS) {
            if looked >= LOOK && candidate.is_some() {
                break;
            }
            let Some((at, slot)) = table.turn() else {
                continue;
            };
            if pinned.iter().any(|&tag| same_key(tag, slot.tag)) {
                continue;
            }
            match worth(shared, slab, &slot, now_us) {
                Worth::Idle => {
                    let slot = table.remove(at);
                    forget_spilled(shared, slab, &slot);
                    return true;
                }
                Worth::Little => candidate = candidate.or(Some(slot.tag)),
                Worth::Keep => {}
            }
        }
        let Some(at) = candidate.and_then(|tag| table.find(tag)) else {
            return false;
        };
        let slot = table.remove(at);
        forget_spilled(shared, slab, &slot);
        shared.events.evicted.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Room in the slab: free entries, then memory, then what a spilled cell that may be forgotten leaves.
    pub(crate) fn reserve_spilled(
        &mut self,
        shared: &Shared,
        now_us: u64,
        want: usize,
        pinned: &[u64],
        force: bool,
    ) -> bool {
        while self.slab.room() < want {
            let step = (self.slab.capacity() / 4).max(want).max(4);
            if shared.budget.try_take(step * Slab::ENTRY_BYTES) {
                let grown = self.slab.grow(step);
                // The allocator may have given more or less than was asked for.
                shared.budget.take(grown * Slab::ENTRY_BYTES);
                shared.budget.give(step * Slab::ENTRY_BYTES);
            } else if !self.evict_spilled(shared, now_us, pinned) {
                if force {
                    let grown = self.slab.grow(want);
                    shared.budget.take(grown * Slab::ENTRY_BYTES);
                }
                break;
            }
        }
        self.slab.room() >= want
    }

    fn evict_spilled(&mut self, shared: &Shared, now_us: u64, pinned: &[u64]) -> bool {
        let mut candidate = None;
        for looked in 0..LOOK_MAX {
            if looked >= LOOK && candidate.is_some() {
                break;
            }
            self.slab_hand = self.slab_hand.wrapping_add(1);
            let Some((_, spilled)) = self.slab.around(self.slab_hand) else {
                continue;
            };
            if pinned.iter().any(|&tag| same_key(tag, spilled.tag)) {
                continue;
            }
            match spilled.worth(now_us) {
                Worth::Idle => {
                    candidate = Some((spilled.tag, is_wide(&spilled.numbers), 0));
                    break;
                }
                Worth::Little => {
                    candidate = candidate.or(Some((spilled.tag, is_wide(&spilled.numbers), 1)));
                }
                Worth::Keep => {}
            }
        }
        let Some((tag, wide, lost)) = candidate else {
            return false;
        };
        shared.events.evicted.fetch_add(lost, Ordering::Relaxed);
        match wide {
            true => self.forget::<2>(shared, tag),
            false => self.forget::<1>(shared, tag),
        }
    }

    /// Forgets the key of `tag`. Returns whether it was there.
    pub(crate) fn forget<const W: usize>(&mut self, shared: &Shared, tag: u64) -> bool
    where
        Self: Tables<W>,
    {
        let (table, slab) = self.parts();
        let Some(at) = table.find(tag) else {
            return false;
        };
        let slot = table.remove(at);
        forget_spilled(shared, slab, &slot);
        true
    }
}

fn forget_spilled<const W: usize>(shared: &Shared, slab: &mut Slab, slot: &Slot<W>) {
    if slot.words[0] & SPILLED != 0
        && let Some(spilled) = slab.remove(slot.words[0] as u32)
    {
        shared.budget.give(spilled.heap_bytes());
    }
}

pub(super) fn idle_at_us<const W: usize>(shared: &Shared, slab: &Slab, slot: &Slot<W>) -> u64 {
    if slot.words[0] & SPILLED != 0 {
        return slab.get(slot.words[0] as u32).map_or(0, Spilled::idle_at_us);
    }
    let numbers = shared.registry.get(slot.ticket());
    numbers.map_or(0, |numbers| numbers.idle_at_us(&unpack_any(numbers, &slot.words)))
}

fn worth<const W: usize>(shared: &Shared, slab: &Slab, slot: &Slot<W>, now_us: u64) -> Worth {
    if slot.words[0] & SPILLED != 0 {
        return slab.get(slot.words[0] as u32).map_or(Worth::Idle, |spilled| spilled.worth(now_us));
    }
    let Some(numbers) = shared.registry.get(slot.ticket()) else {
        return Worth::Idle;
    };
    worth_of(numbers, &unpack_any(numbers, &slot.words), now_us)
}

fn worth_of(numbers: &Numbers, state: &State, now_us: u64) -> Worth {
    if numbers.idle_at_us(state) <= now_us {
        return Worth::Idle;
    }
    let now = numbers.decide(state, now_us, 0, Intent::Peek);
    match now.remaining.saturating_mul(10) >= now.limit.saturating_mul(9) {
        true => Worth::Little,
        false => Worth::Keep,
    }
}

impl Spilled {
    /// A key that was refused and may yet be blocked for it is kept, however much of its limit remains.
    fn worth(&self, now_us: u64) -> Worth {
        match self.penalty_idle_at_us() <= now_us {
            true => worth_of(&self.numbers, &self.state, now_us),
            false => Worth::Keep,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
