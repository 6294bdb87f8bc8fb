//! Eviction: idle state goes first, then state that is nearly unused, never a limited key.

mod sweep;

use super::ShardContext;
use super::shard::pack::unpack_any;
use super::shard::slab::{Slab, SpilledCell};
use super::shard::{CellPosition, HasTable, Shard, is_wide};
use super::table::{Cell, CellTable, same_key};
use crate::Charge;
use crate::raw::slots::ArraySize;
use crate::sync::Ordering;
use EvictionClass::{Idle, Keep, NearlyUnused};
use sweep::idle_cutoff_us;
use tollgate_core::{Algorithm, Intent, LimitParams, LimitState};

/// Slots scanned for idle state before nearly unused state goes.
const IDLE_SCAN_SLOTS: usize = 16;
/// Slots scanned before a new key has to share an overflow cell: on average, since a table is
/// scanned whole.
const SCAN_SLOTS_MAX: usize = 128;
/// A full table evicts this part of its slots at once, so that its array is not replaced for each
/// new key.
const EVICTED_PART: usize = 16;

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
            CellPosition::PackedState(_) => Self { cells: 0, spilled: 1 },
            CellPosition::Absent => Self { cells: 1, spilled: 1 },
        }
    }
}

/// The state of evictions from one table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evictions {
    /// Evicted cells that new keys may replace while the store is over its cap.
    vacated: usize,
    /// Slots that new keys have to pay for before the table is scanned again.
    unpaid_slots: usize,
    /// Cells to skip before the next eviction of nearly unused state.
    hand: usize,
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

    /// Whether [`reserve`](Self::reserve) would make room for a new key's first unit.
    pub(crate) fn has_room(&self, shared: &ShardContext, charge: &Charge<'_>, now_us: u64) -> bool {
        let cells = if is_wide(charge.params) {
            self.has_room_for_cell::<2>(shared, now_us)
        } else {
            self.has_room_for_cell::<1>(shared, now_us)
        };
        cells
            && (!Self::spills(charge, now_us, charge.cost.max(1))
                || self.slab.room() > 0
                || shared.budget.fits((self.slab.capacity() / 4).max(4) * Slab::ENTRY_BYTES)
                || self.slab.iter().any(|spilled| spilled.eviction_class(now_us) != Keep))
    }

    fn has_room_for_cell<const W: usize>(&self, shared: &ShardContext, now_us: u64) -> bool
    where
        Self: HasTable<W>,
    {
        let (table, state, over) = (self.table(), self.evictions[W - 1], shared.budget.is_over());
        let larger = || {
            let chunks = size_for::<W>(table.size().next(), 1)?.chunks() - table.size().chunks();
            Some(chunks * CellTable::<W>::CHUNK_BYTES)
        };
        table.room() > 0 && (!over || state.vacated > 0)
            || !over && larger().is_some_and(|bytes| shared.budget.fits(bytes))
            || state.unpaid_slots <= SCAN_SLOTS_MAX
                && (table.dead() > 0 && !over
                    || table
                        .iter()
                        .any(|cell| eviction_class(shared, &self.slab, &cell, now_us) != Keep))
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
        if want == 0
            || self.table().room() >= want && (force || !over || self.take_vacated::<W>(want))
            || (!over && self.grow::<W>(shared, now_us, want))
        {
            return true;
        }
        self.evict_some::<W>(shared, now_us, want, pinned);
        if force && self.table().room() < want {
            self.rebuild::<W>(shared, want);
        }
        self.table().room() >= want && (force || !over || self.take_vacated::<W>(want))
    }

    /// Takes the place of `cells` evicted cells, if there are as many.
    fn take_vacated<const W: usize>(&mut self, cells: usize) -> bool {
        let vacated = &mut self.evictions[W - 1].vacated;
        let rest = vacated.checked_sub(cells);
        *vacated = rest.unwrap_or(*vacated);
        rest.is_some()
    }

    /// Drops idle cells, and grows by about an eighth if that is not enough. Does nothing if the
    /// cap leaves no room to grow.
    fn grow<const W: usize>(&mut self, shared: &ShardContext, now_us: u64, want: usize) -> bool
    where
        Self: HasTable<W>,
    {
        let size = self.table().size();
        let Some(larger) = size_for::<W>(size.next(), want) else { return false };
        let taken = (larger.chunks() - size.chunks()) * CellTable::<W>::CHUNK_BYTES;
        if !shared.budget.try_take(taken) {
            return false;
        }
        let cells = self.drain_idle::<W>(shared, idle_cutoff_us(shared, now_us));
        if cells.len() + want <= CellTable::<W>::capacity_of(size) * 4 / 5 {
            shared.budget.release(taken);
            self.refill::<W>(shared, &cells, size);
        } else {
            self.refill::<W>(shared, &cells, larger);
        }
        self.table().room() >= want
    }

    /// Makes room for a known key that needs another slot.
    pub(crate) fn make_spare_slot<const W: usize>(&mut self, shared: &ShardContext)
    where
        Self: HasTable<W>,
    {
        if !self.table().has_spare_slot() {
            self.rebuild::<W>(shared, 1);
        }
    }

    /// Replaces the array by one with room for `want` more cells, beyond the cap if need be.
    fn rebuild<const W: usize>(&mut self, shared: &ShardContext, want: usize)
    where
        Self: HasTable<W>,
    {
        let size = self.table().size();
        let cells = self.table_and_slab().0.drain();
        let larger = size_for::<W>(Some(size), cells.len() + want).unwrap_or(size);
        shared.budget.take((larger.chunks() - size.chunks()) * CellTable::<W>::CHUNK_BYTES);
        self.refill::<W>(shared, &cells, larger);
    }

    /// Takes every cell out of the table, and drops those idle at `idle_us`.
    pub(super) fn drain_idle<const W: usize>(
        &mut self,
        shared: &ShardContext,
        idle_us: u64,
    ) -> Vec<Cell<W>>
    where
        Self: HasTable<W>,
    {
        let (table, slab) = self.table_and_slab();
        let mut cells = table.drain();
        cells.retain(|cell| {
            let idle = idle_at_us(shared, slab, cell) <= idle_us;
            if idle {
                forget_spilled(shared, slab, cell);
            }
            !idle
        });
        cells
    }

    pub(super) fn refill<const W: usize>(
        &mut self,
        shared: &ShardContext,
        cells: &[Cell<W>],
        size: ArraySize,
    ) where
        Self: HasTable<W>,
    {
        let location = self.location(shared);
        let (table, _) = self.table_and_slab();
        table.refill(cells, size, |old, new| old.replace(new, location, &shared.garbage));
    }

    /// Evicts cells that may go: all idle ones, and nearly unused ones if that frees too few slots.
    /// `want` and a sixteenth of the slots are enough, so that one scan and one copy of the array
    /// serve as many new keys. A scan that frees less is paid for by later keys without room.
    fn evict_some<const W: usize>(
        &mut self,
        shared: &ShardContext,
        now_us: u64,
        want: usize,
        pinned: &[u64],
    ) where
        Self: HasTable<W>,
    {
        let mut state = self.evictions[W - 1];
        state.unpaid_slots = state.unpaid_slots.saturating_sub(want * SCAN_SLOTS_MAX);
        self.evictions[W - 1] = state;
        if state.unpaid_slots > 0 {
            return;
        }
        let is_pinned = |cell: &Cell<W>| pinned.iter().any(|&tag| same_key(tag, cell.tag));
        let is_idle = |slab: &Slab, cell: &Cell<W>| {
            idle_at_us(shared, slab, cell) <= now_us && !is_pinned(cell)
        };
        let may_go = |slab: &Slab, cell: &Cell<W>| {
            !is_pinned(cell) && eviction_class(shared, slab, cell, now_us) != Keep
        };
        let (size, dead) = (self.table().size(), self.table().dead());
        let mut freed = 0;
        if dead > 0 || self.table().iter().any(|cell| may_go(&self.slab, &cell)) {
            let (table, slab) = self.table_and_slab();
            // Other threads change cells until they are drained, so only now a class is final.
            let mut cells = table.drain();
            let before = cells.len();
            cells.rotate_left(state.hand.checked_rem(before).unwrap_or(0));
            let idle = cells.iter().filter(|cell| is_idle(slab, cell)).count();
            let mut unused = (want + size.slots() / EVICTED_PART).saturating_sub(idle + dead);
            cells.retain(|cell| {
                // What remains of a limit takes a division, so few cells are asked for it.
                let evicted = is_idle(slab, cell)
                    || unused > 0 && may_go(slab, cell) && {
                        unused -= 1;
                        shared.events.evicted.fetch_add(1, Ordering::Relaxed);
                        true
                    };
                if evicted {
                    forget_spilled(shared, slab, cell);
                } else {
                    state.hand += usize::from(unused > 0);
                }
                !evicted
            });
            freed = before - cells.len();
            self.refill::<W>(shared, &cells, size);
        }
        state.unpaid_slots = size.slots().saturating_sub((freed + dead) * SCAN_SLOTS_MAX);
        state.vacated += freed;
        self.evictions[W - 1] = state;
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
        let cell = table.remove(at);
        forget_spilled(shared, slab, &cell);
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
            Idle => return Some((cell, 0)),
            NearlyUnused => candidate = candidate.or(Some((cell, 1))),
            Keep => {}
        }
    }
    candidate
}

/// The smallest size from `size` on that has room for `cells` cells.
fn size_for<const W: usize>(mut size: Option<ArraySize>, cells: usize) -> Option<ArraySize> {
    while CellTable::<W>::capacity_of(size?) < cells {
        size = size?.next();
    }
    size
}

fn forget_spilled<const W: usize>(shared: &ShardContext, slab: &mut Slab, cell: &Cell<W>) {
    if let Some(spilled) = cell.spilled().and_then(|index| slab.remove(index)) {
        shared.budget.release(spilled.heap_bytes());
    }
}

pub(super) fn idle_at_us<const W: usize>(
    shared: &ShardContext,
    slab: &Slab,
    cell: &Cell<W>,
) -> u64 {
    if let Some(index) = cell.spilled() {
        return slab.get(index).map_or(0, SpilledCell::idle_at_us);
    }
    let params = shared.registry.get(cell.params_id());
    params.map_or(0, |params| params.idle_at_us(&unpack_any(params, &cell.words)))
}

fn eviction_class<const W: usize>(
    shared: &ShardContext,
    slab: &Slab,
    cell: &Cell<W>,
    now_us: u64,
) -> EvictionClass {
    if let Some(index) = cell.spilled() {
        let spilled = slab.get(index);
        return spilled.map_or(Idle, |spilled| spilled.eviction_class(now_us));
    }
    let Some(params) = shared.registry.get(cell.params_id()) else {
        return Idle;
    };
    eviction_class_of(params, &unpack_any(params, &cell.words), now_us)
}

fn eviction_class_of(params: &LimitParams, state: &LimitState, now_us: u64) -> EvictionClass {
    if params.idle_at_us(state) <= now_us {
        return Idle;
    }
    let now = params.decide(state, now_us, 0, Intent::Peek);
    let nearly_unused = now.remaining.saturating_mul(10) >= now.limit.saturating_mul(9);
    if nearly_unused { NearlyUnused } else { Keep }
}

impl SpilledCell {
    /// A key with violations or a block is kept, however much of its limit remains.
    fn eviction_class(&self, now_us: u64) -> EvictionClass {
        if self.penalty_idle_at_us() > now_us {
            return Keep;
        }
        eviction_class_of(&self.params, &self.state, now_us)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
