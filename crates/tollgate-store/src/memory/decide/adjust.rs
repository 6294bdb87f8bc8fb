//! Applies adjustments: settlements, refunds, debts and blocks.

use super::locked::{ChargeCell, ChargeCells, NoRoom, look_for_room, make_room};
use crate::memory::evict::RoomNeeded;
use crate::memory::shard::{CellPosition, LockedShard, Shard};
use crate::memory::{MemoryStore, ShardContext};
use crate::{Adjustment, Answer, Answers, Change, Charge};
use tollgate_core::{Intent, LimitParams, Receipt};

impl MemoryStore {
    pub(crate) fn adjust_all(
        &self,
        now_us: u64,
        adjustments: &[Adjustment<'_>],
        answers: &mut Answers,
    ) {
        let cell = |Adjustment { charge, change }: &Adjustment<'_>| {
            let mut cell = ChargeCell::at(self.addresses.address(charge.limit, charge.key));
            // By now the key may have its own cell, where the charge never was.
            cell.overflow = is_given_back_to_shared_state(change);
            if cell.overflow {
                cell.address = self.addresses.overflow(charge.limit, cell.address);
            }
            cell
        };
        let mut cells: ChargeCells = adjustments.iter().map(cell).collect();
        loop {
            let applied = self.with_locks(&mut cells, |shards, cells| {
                apply(&self.shared, shards, cells, now_us, adjustments, answers)
            });
            match applied {
                Ok(()) => break,
                Err(NoRoom) => {
                    let charges = adjustments.iter().map(|one| &one.charge);
                    self.move_to_overflow_cells(&mut cells, charges);
                }
            }
        }
        self.shared.garbage.free_some();
        answers.finish(true);
    }
}

impl Shard {
    /// Blocks a key, even in a full store: an operator asked for it.
    fn block(
        &mut self,
        shared: &ShardContext,
        found: CellPosition,
        tag: u64,
        charge: &Charge<'_>,
        now_us: u64,
        until_us: u64,
    ) {
        let needed = RoomNeeded::to_spill(found);
        self.reserve(shared, charge.params, now_us, needed, &[tag], true);
        let found = self.find(charge.params, tag);
        self.set_block(shared, found, tag, charge, Some(until_us));
    }
}

/// Whether the change gives back a charge of an overflow cell.
fn is_given_back_to_shared_state(change: &Change) -> bool {
    matches!(change, Change::GiveBack { receipt: Receipt { is_shared: true, .. }, .. })
}

fn apply(
    shared: &ShardContext,
    shards: &mut [LockedShard<'_>],
    cells: &mut [ChargeCell],
    now_us: u64,
    adjustments: &[Adjustment<'_>],
    answers: &mut Answers,
) -> Result<(), NoRoom> {
    make_room(shared, shards, cells, now_us, |n| match &adjustments[n] {
        Adjustment { charge, change: Change::Owe { units } } if *units > 0 => {
            Some((charge, *units))
        }
        _ => None,
    })?;
    look_for_room(shared, shards, cells, now_us, |n| match &adjustments[n] {
        Adjustment { charge, change: Change::GiveBack { .. } | Change::Owe { units: 0 } } => {
            Some(charge)
        }
        _ => None,
    })?;
    for (cell, Adjustment { charge, change }) in cells.iter_mut().zip(adjustments) {
        let shard = &mut shards[cell.lock];
        let tag = cell.address.tag();
        let found = cell.position(shard, charge.params, adjustments.len());
        let mut owed = None;
        match change {
            // The cell of the charge is gone, and others count in this one.
            Change::GiveBack { receipt, .. } if cell.overflow && !receipt.is_shared => {}
            // A slot is found again by its own end; one that stays taken would lock the key.
            Change::GiveBack { receipt, .. }
                if !matches!(charge.params, LimitParams::Concurrency(_))
                    && shared.resets.is_reset_since(cell.address, receipt.at_us, now_us) => {}
            Change::GiveBack { units, receipt, charged_params } => {
                shard.give_back(shared, found, tag, charge, now_us, charged_params, *units, receipt)
            }
            Change::Owe { units: 0 } => {}
            Change::Owe { units } => {
                let receipt = shard.charge(shared, found, tag, charge, now_us, *units);
                owed = Some(Receipt { is_shared: cell.overflow, ..receipt });
            }
            Change::Block { until_us } => {
                shard.block(shared, found, tag, charge, now_us, *until_us)
            }
            Change::Unblock => shard.set_block(shared, found, tag, charge, None),
        }
        let mut answer = Answer::PLACEHOLDER;
        shard.answer(shared, cell, charge, now_us, (Intent::Peek, false), &mut answer);
        answer.receipt = owed;
        answers.push(answer);
    }
    Ok(())
}
