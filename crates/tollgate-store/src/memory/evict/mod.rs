//! Making room. Idle state goes first; then state of which next to nothing was used; never a key
//! that is limited.

mod sweep;

use super::ShardContext;
use super::shard::pack::{SPILLED, unpack_any};
use super::shard::slab::{Slab, SpilledCell};
use super::shard::{HasTable, Shard, is_wide};
use super::table::{CellTable, Slot, same_key};
use crate::sync::Ordering;
use sweep::idle_cutoff_us;
use tollgate_core::{Algorithm, Intent, LimitParams, LimitState};

/// Slots looked at for idle state before state that is nearly unused goes.
const IDLE_SCAN_SLOTS: usize = 16;
/// Slots looked at before a new key has to share an overflow cell.
const SCAN_SLOTS_MAX: usize = 128;

/// What is lost when a cell is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EvictionClass {
    /// Nothing: its limit is as if never used.
    Idle,
    /// At most a tenth of its limit.
    NearlyUnused,
    /// It would be a way around the limit.
    Keep,
}

/// Room that a request needs in one shard.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoomNeeded {
    /// Cells.
    pub(crate) cells: usize,
    /// Spilled ones among them.
    pub(crate) spilled: usize,
}

impl Shard {
    /// Makes room for cells of these numbers, sparing those of `pinned`. With `force` beyond the
    /// cap if nothing else helps.
    pub(crate) fn reserve(
        &mut self,
        shared: &ShardContext,
        params: &LimitParams,
        now_us: u64,
        want: RoomNeeded,
        pinned: &[u64],
        force: bool,
    ) -> bool {
        let cells = match is_wide(params) {
            true => self.reserve_cells::<2>(shared, now_us, want.cells, pinned, force),
            false => self.reserve_cells::<1>(shared, now_us, want.cells, pinned, force),
        };
        cells && self.reserve_spilled(shared, now_us, want.spilled, pinned, force)
    }

    fn reserve_cells<const W: usize>(
        &mut self,
        shared: &ShardContext,
        now_us: u64,
        want: usize,
        pinned: &[u64],
        force: bool,
    ) -> bool
    where
        Self: HasTable<W>,
    {
        // Overflow cells may have taken the store beyond its cap. The room that came with them is
        // not for new keys.
        let over = shared.budget.is_over();
        let roomy = self.table().room() >= want && (force || !over);
        if roomy || (!over && self.grow::<W>(shared, now_us, want)) {
            return true;
        }
        let evicted = (0..want).take_while(|_| self.evict_one::<W>(shared, now_us, pinned)).count();
        if self.table().room() < want && force {
            let more = want.div_ceil(CellTable::<W>::capacity_of(1));
            shared.budget.take(more * CellTable::<W>::CHUNK_BYTES);
            let cells = self.table_and_slab().0.drain();
            self.refill::<W>(shared, cells, self.table().chunks() + more);
        }
        self.table().room() >= want && (force || evicted == want)
    }

    /// Drops what has been idle for a while, and grows by about an eighth if that is not enough.
    /// Does nothing when the cap leaves no room to grow.
    fn grow<const W: usize>(&mut self, shared: &ShardContext, now_us: u64, want: usize) -> bool
    where
        Self: HasTable<W>,
    {
        let chunks = self.table().chunks();
        let step = (chunks / 8).max(want.div_ceil(CellTable::<W>::capacity_of(1)));
        let bytes = |chunks: usize| chunks * CellTable::<W>::CHUNK_BYTES;
        let taken = match shared.budget.try_take(bytes(step)) {
            true => step,
            false if step > 1 && shared.budget.try_take(bytes(1)) => 1,
            false => return false,
        };
        let cells = self.drain_idle::<W>(shared, idle_cutoff_us(shared, now_us));
        let enough = CellTable::<W>::capacity_of(chunks) * 4 / 5;
        if cells.len() + want <= enough {
            shared.budget.release(bytes(taken));
            self.refill::<W>(shared, cells, chunks);
        } else {
            self.refill::<W>(shared, cells, chunks + taken);
        }
        self.table().room() >= want
    }

    /// Takes every cell out of the table and forgets those that were idle at that instant.
    pub(super) fn drain_idle<const W: usize>(
        &mut self,
        shared: &ShardContext,
        idle_us: u64,
    ) -> Vec<Slot<W>>
    where
        Self: HasTable<W>,
    {
        let (table, slab) = self.table_and_slab();
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
        shared: &ShardContext,
        cells: Vec<Slot<W>>,
        chunks: usize,
    ) where
        Self: HasTable<W>,
    {
        let (table, _) = self.table_and_slab();
        table.resize(chunks);
        let view = table.location();
        for slot in cells {
            table.insert(slot);
        }
        shared.table_hints.publish::<W>(self.number, view);
    }

    /// Forgets one cell that may be forgotten, if the hand finds one.
    fn evict_one<const W: usize>(
        &mut self,
        shared: &ShardContext,
        now_us: u64,
        pinned: &[u64],
    ) -> bool
    where
        Self: HasTable<W>,
    {
        let (table, slab) = self.table_and_slab();
        let mut candidate = None;
        for looked in 0..SCAN_SLOTS_MAX.min(table.chunks() * super::table::SLOTS) {
            if looked >= IDLE_SCAN_SLOTS && candidate.is_some() {
                break;
            }
            let Some((at, slot)) = table.advance_hand() else {
                continue;
            };
            if pinned.iter().any(|&tag| same_key(tag, slot.tag)) {
                continue;
            }
            match eviction_class(shared, slab, &slot, now_us) {
                EvictionClass::Idle => {
                    let slot = table.remove(at);
                    forget_spilled(shared, slab, &slot);
                    return true;
                }
                EvictionClass::NearlyUnused => candidate = candidate.or(Some(slot.tag)),
                EvictionClass::Keep => {}
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

    /// Room in the slab: free entries, then memory, then what a spilled cell that may be forgotten
    /// leaves.
    pub(crate) fn reserve_spilled(
        &mut self,
        shared: &ShardContext,
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
                shared.budget.release(step * Slab::ENTRY_BYTES);
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

    fn evict_spilled(&mut self, shared: &ShardContext, now_us: u64, pinned: &[u64]) -> bool {
        let mut candidate = None;
        for looked in 0..SCAN_SLOTS_MAX {
            if looked >= IDLE_SCAN_SLOTS && candidate.is_some() {
                break;
            }
            self.slab_hand = self.slab_hand.wrapping_add(1);
            let Some((_, spilled)) = self.slab.get_wrapping(self.slab_hand) else {
                continue;
            };
            if pinned.iter().any(|&tag| same_key(tag, spilled.tag)) {
                continue;
            }
            match spilled.eviction_class(now_us) {
                EvictionClass::Idle => {
                    candidate = Some((spilled.tag, is_wide(&spilled.params), 0));
                    break;
                }
                EvictionClass::NearlyUnused => {
                    candidate = candidate.or(Some((spilled.tag, is_wide(&spilled.params), 1)));
                }
                EvictionClass::Keep => {}
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
    pub(crate) fn forget<const W: usize>(&mut self, shared: &ShardContext, tag: u64) -> bool
    where
        Self: HasTable<W>,
    {
        let (table, slab) = self.table_and_slab();
        let Some(at) = table.find(tag) else {
            return false;
        };
        let slot = table.remove(at);
        forget_spilled(shared, slab, &slot);
        true
    }
}

fn forget_spilled<const W: usize>(shared: &ShardContext, slab: &mut Slab, slot: &Slot<W>) {
    if slot.words[0] & SPILLED != 0
        && let Some(spilled) = slab.remove(slot.words[0] as u32)
    {
        shared.budget.release(spilled.heap_bytes());
    }
}

pub(super) fn idle_at_us<const W: usize>(
    shared: &ShardContext,
    slab: &Slab,
    slot: &Slot<W>,
) -> u64 {
    if slot.words[0] & SPILLED != 0 {
        return slab.get(slot.words[0] as u32).map_or(0, SpilledCell::idle_at_us);
    }
    let params = shared.registry.get(slot.params_id());
    params.map_or(0, |params| params.idle_at_us(&unpack_any(params, &slot.words)))
}

fn eviction_class<const W: usize>(
    shared: &ShardContext,
    slab: &Slab,
    slot: &Slot<W>,
    now_us: u64,
) -> EvictionClass {
    if slot.words[0] & SPILLED != 0 {
        return slab
            .get(slot.words[0] as u32)
            .map_or(EvictionClass::Idle, |spilled| spilled.eviction_class(now_us));
    }
    let Some(params) = shared.registry.get(slot.params_id()) else {
        return EvictionClass::Idle;
    };
    eviction_class_of(params, &unpack_any(params, &slot.words), now_us)
}

fn eviction_class_of(params: &LimitParams, state: &LimitState, now_us: u64) -> EvictionClass {
    if params.idle_at_us(state) <= now_us {
        return EvictionClass::Idle;
    }
    let now = params.decide(state, now_us, 0, Intent::Peek);
    match now.remaining.saturating_mul(10) >= now.limit.saturating_mul(9) {
        true => EvictionClass::NearlyUnused,
        false => EvictionClass::Keep,
    }
}

impl SpilledCell {
    /// A key that was refused and may yet be blocked for it is kept, however much of its limit
    /// remains.
    fn eviction_class(&self, now_us: u64) -> EvictionClass {
        match self.penalty_idle_at_us() <= now_us {
            true => eviction_class_of(&self.params, &self.state, now_us),
            false => EvictionClass::Keep,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
