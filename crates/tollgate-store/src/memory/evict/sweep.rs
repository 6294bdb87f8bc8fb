//! Sweeps a shard: drops idle cells and gives memory back.

use super::idle_at_us;
use crate::memory::ShardContext;
use crate::memory::shard::slab::Slab;
use crate::memory::shard::{HasTable, Shard, is_wide};
use crate::memory::table::{Cell, CellTable};
use crate::raw::slots::ArraySize;

/// How long an idle cell is kept while memory is not short. Most clients return soon, and a new
/// cell costs more than a kept one.
const IDLE_KEPT_US: u64 = 10_000_000;

/// Cells that were idle at this instant may go.
pub(crate) fn idle_cutoff_us(shared: &ShardContext, now_us: u64) -> u64 {
    let kept_us = if shared.budget.is_nearly_full() { 0 } else { IDLE_KEPT_US };
    now_us.saturating_sub(kept_us)
}

impl Shard {
    /// Drops cells that have been idle for a while, or idle at all if memory is short, and frees
    /// memory.
    pub(crate) fn sweep(&mut self, shared: &ShardContext, now_us: u64) {
        let before_us = idle_cutoff_us(shared, now_us);
        self.sweep_table::<1>(shared, before_us);
        self.sweep_table::<2>(shared, before_us);
        if self.slab.capacity() > 2 * self.slab.len() {
            self.compact_slab(shared);
        }
    }

    fn sweep_table<const W: usize>(&mut self, shared: &ShardContext, idle_us: u64)
    where
        Self: HasTable<W>,
    {
        let (table, size) = (self.table(), self.table().size());
        let idle =
            table.iter().filter(|cell| idle_at_us(shared, &self.slab, cell) <= idle_us).count();
        let useless = idle + table.dead();
        let needed = roomy_size::<W>(table.len() - idle);
        if useless * 8 < table.len().max(1) && needed.chunks() >= size.chunks() {
            return;
        }
        let cells = self.drain_idle::<W>(shared, idle_us);
        let chunks = size.chunks();
        let size = match roomy_size::<W>(cells.len()) {
            needed if needed.chunks() < chunks => needed,
            _ => size,
        };
        self.refill::<W>(shared, &cells, size);
        shared.budget.release((chunks - size.chunks()) * CellTable::<W>::CHUNK_BYTES);
    }

    fn compact_slab(&mut self, shared: &ShardContext) {
        let before = self.slab.capacity();
        let mut kept = Slab::new();
        kept.grow(self.slab.len());
        for spilled in self.slab.drain() {
            let (tag, wide) = (spilled.tag, is_wide(&spilled.params));
            let index = kept.insert(spilled);
            if wide {
                repoint(&mut self.wide, tag, index);
            } else {
                repoint(&mut self.narrow, tag, index);
            }
        }
        self.slab = kept;
        shared.budget.take(self.slab.capacity() * Slab::ENTRY_BYTES);
        shared.budget.release(before * Slab::ENTRY_BYTES);
    }
}

/// The size for so many cells. A fifth of the room stays free, so that the next key does not grow
/// the table again.
fn roomy_size<const W: usize>(cells: usize) -> ArraySize {
    let mut size = ArraySize::ZERO;
    while CellTable::<W>::capacity_of(size) * 4 / 5 < cells
        && let Some(next) = size.next()
    {
        size = next;
    }
    size
}

fn repoint<const W: usize>(table: &mut CellTable<W>, tag: u64, index: u32) {
    if let Some(at) = table.find(tag) {
        table.set(at, Cell::spilled_at(tag, index).words);
    }
}
