//! Eviction: idle state goes first, then state that is nearly unused, never a limited key.

mod sweep;

use super::ShardContext;
use super::shard::pack::{SPILLED, unpack_any};
use super::shard::slab::{Slab, SpilledCell};
use super::shard::{CellPosition, HasTable, Shard, is_wide};
use super::table::{CellTable, Slot, same_key};
use crate::sync::Ordering;
use sweep::idle_cutoff_us;
use tollgate_core::{Algorithm, Intent, LimitParams, LimitState};

/// Slots scanned for idle state before nearly unused state goes.
const IDLE_SCAN_SLOTS: usize = 16;
/// Slots scanned before a new key has to share an overflow cell.
const SCAN_SLOTS_MAX: usize = 128;

/// What the eviction of a cell loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EvictionClass {
    /// Nothing: the limit is as if never used.
    Idle,
    /// At most a tenth of the limit.
    NearlyUnused,
    /// Too much: eviction would be a way around the limit.
    Keep,
}

/// Room that a request needs in one shard.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoomNeeded {
    /// New cells.
    pub(crate) cells: usize,
    /// New spilled cells.
    pub(crate) spilled: usize,
}

impl RoomNeeded {
    /// The room that a cell needs to move to the slab.
    pub(crate) const fn to_spill(found: CellPosition) -> Self {
        match found {
            CellPosition::Spilled(_) => Self { cells: 0, spilled: 0 },
            CellPosition::Inline(_) => Self { cells: 0, spilled: 1 },
            CellPosition::Absent => Self { cells: 1, spilled: 1 },
        }
    }
}

impl Shard {
    /// Makes room for cells of these params, without evicting `pinned` tags. With `force`, beyond
    /// the cap if need be.
    pub(crate) fn reserve(
        &mut self,
        shared: &ShardContext,
        params: &LimitParams,
        now_us: u64,
        needed: RoomNeeded,
        pinned: &[u64],
        force: bool,
    ) -> bool {
        let cells = if is_wide(params) {
            self.reserve_cells::<2>(shared, now_us, needed.cells, pinned, force)
        } else {
            self.reserve_cells::<1>(shared, now_us, needed.cells, pinned, force)
        };
        cells && self.reserve_spilled(shared, now_us, needed.spilled, pinned, force)
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
        // Overflow cells may exceed the cap; the room that came with them is not for new keys.
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

    /// Drops idle cells, and grows by about an eighth if that is not enough. Does nothing if the
    /// cap leaves no room to grow.
    fn grow<const W: usize>(&mut self, shared: &ShardContext, now_us: u64, want: usize) -> bool
    where
        Self: HasTable<W>,
    {
        let chunks = self.table().chunks();
        let step = (chunks / 8).max(want.div_ceil(CellTable::<W>::capacity_of(1)));
        let bytes = |chunks: usize| chunks * CellTable::<W>::CHUNK_BYTES;
        let taken = if shared.budget.try_take(bytes(step)) {
            step
        } else if step > 1 && shared.budget.try_take(bytes(1)) {
            1
        } else {
            return false;
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

    /// Takes every cell out of the table, and drops those idle at `idle_us`.
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
        let location = table.location();
        for slot in cells {
            table.insert(slot);
        }
        shared.table_hints.publish::<W>(self.number, location);
    }

    /// Evicts one cell, if the clock hand finds one that may go.
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
        let slots = SCAN_SLOTS_MAX.min(table.chunks() * super::table::SLOTS);
        let candidate = scan(slots, pinned, || {
            let (at, slot) = table.advance_hand()?;
            Some((at, slot.tag, eviction_class(shared, slab, &slot, now_us)))
        });
        let Some((at, lost)) = candidate else { return false };
        let slot = table.remove(at);
        forget_spilled(shared, slab, &slot);
        shared.events.evicted.fetch_add(lost, Ordering::Relaxed);
        true
    }

    /// Makes room in the slab: free entries, then new memory, then evictions.
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
                // The capacity may grow by more or less than `step`.
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
        let (slab, hand) = (&self.slab, &mut self.slab_hand);
        let candidate = scan(SCAN_SLOTS_MAX, pinned, || {
            *hand = hand.wrapping_add(1);
            let (_, spilled) = slab.get_wrapping(*hand)?;
            let key = (spilled.tag, is_wide(&spilled.params));
            Some((key, spilled.tag, spilled.eviction_class(now_us)))
        });
        let Some(((tag, wide), lost)) = candidate else { return false };
        shared.events.evicted.fetch_add(lost, Ordering::Relaxed);
        if wide { self.forget::<2>(shared, tag) } else { self.forget::<1>(shared, tag) }
    }

    /// Drops the cell of a tag. Returns whether there was one.
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

/// Scans up to `slots` slots for a cell to evict, sparing `pinned` tags: an idle one, else the
/// first that is nearly unused. `next` returns a cell, its tag and its class. Returns the cell, and
/// the number of evictions that this counts as: an idle cell is no loss.
fn scan<T>(
    slots: usize,
    pinned: &[u64],
    mut next: impl FnMut() -> Option<(T, u64, EvictionClass)>,
) -> Option<(T, u64)> {
    let mut candidate = None;
    for scanned in 0..slots {
        if scanned >= IDLE_SCAN_SLOTS && candidate.is_some() {
            break;
        }
        let Some((cell, tag, class)) = next() else { continue };
        if pinned.iter().any(|&pinned| same_key(pinned, tag)) {
            continue;
        }
        match class {
            EvictionClass::Idle => return Some((cell, 0)),
            EvictionClass::NearlyUnused => candidate = candidate.or(Some((cell, 1))),
            EvictionClass::Keep => {}
        }
    }
    candidate
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
    let nearly_unused = now.remaining.saturating_mul(10) >= now.limit.saturating_mul(9);
    if nearly_unused { EvictionClass::NearlyUnused } else { EvictionClass::Keep }
}

impl SpilledCell {
    /// A key with violations or a block is kept, however much of its limit remains.
    fn eviction_class(&self, now_us: u64) -> EvictionClass {
        if self.penalty_idle_at_us() > now_us {
            return EvictionClass::Keep;
        }
        eviction_class_of(&self.params, &self.state, now_us)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
