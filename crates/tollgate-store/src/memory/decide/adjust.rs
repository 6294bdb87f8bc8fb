//! Settlements, cancellations and refunds.

use super::NoRoom;
use super::multi::{ChargeCell, make_room};
use crate::memory::evict::RoomNeeded;
use crate::memory::shard::{CellPosition, Shard};
use crate::memory::{MemoryStore, ShardContext};
use crate::sync::Guard;
use crate::{Adjustment, Answers, Change, Charge};
use tollgate_core::Intent;

impl MemoryStore {
    pub(crate) fn adjust_all(
        &self,
        now_us: u64,
        adjustments: &[Adjustment<'_>],
        answers: &mut Answers,
    ) {
        let mut places: Vec<_> = adjustments
            .iter()
            .map(|Adjustment { charge, .. }| {
                ChargeCell::at(self.addresses.address(charge.limit, charge.key))
            })
            .collect();
        let charges: Vec<_> = adjustments.iter().map(|adjustment| adjustment.charge).collect();
        loop {
            let applied = self
                .with_locks::<{ ChargeCell::INLINE_MAX }, _>(&mut places, |guards, places| {
                    apply(&self.shared, guards, places, now_us, adjustments, answers)
                });
            match applied {
                Ok(()) => return answers.finish(true),
                Err(NoRoom) => self.move_to_overflow_cells(&mut places, &charges),
            }
        }
    }
}

impl Shard {
    /// An operator's word counts even in a store that is full.
    fn block(
        &mut self,
        shared: &ShardContext,
        found: CellPosition,
        tag: u64,
        charge: &Charge<'_>,
        now_us: u64,
        until_us: u64,
    ) {
        let want = match found {
            CellPosition::Spilled(_) => RoomNeeded::default(),
            CellPosition::Inline(_) => RoomNeeded { cells: 0, spilled: 1 },
            CellPosition::Absent => RoomNeeded { cells: 1, spilled: 1 },
        };
        self.reserve(shared, charge.params, now_us, want, &[tag], true);
        let found = self.find(charge.params, tag);
        self.set_block(shared, found, tag, charge, Some(until_us));
    }
}

fn apply(
    shared: &ShardContext,
    guards: &mut [Option<Guard<'_, Shard>>],
    places: &mut [ChargeCell],
    now_us: u64,
    adjustments: &[Adjustment<'_>],
    answers: &mut Answers,
) -> Result<(), NoRoom> {
    make_room(shared, guards, places, now_us, |n| match &adjustments[n] {
        Adjustment { charge, change: Change::Owe { units } } if *units > 0 => {
            Some((charge, *units))
        }
        _ => None,
    })?;
    for (place, Adjustment { charge, change }) in places.iter().zip(adjustments) {
        let Some(shard) = &mut guards[place.lock] else { continue };
        let tag = place.address.tag;
        let found = shard.find(charge.params, tag);
        let receipt = match change {
            Change::GiveBack { units, receipt, charged_params: under } => {
                shard.give_back(shared, found, tag, charge, now_us, under, *units, receipt);
                None
            }
            Change::Owe { units: 0 } => None,
            Change::Block { until_us } => {
                shard.block(shared, found, tag, charge, now_us, *until_us);
                None
            }
            Change::Unblock => {
                shard.set_block(shared, found, tag, charge, None);
                None
            }
            Change::Owe { units } => Some(shard.charge(shared, found, tag, charge, now_us, *units)),
        };
        let found = shard.find_and_redate(shared, tag, charge, now_us);
        let mut answer = shard.decide(shared, found, charge, now_us, Intent::Peek);
        answer.receipt = receipt;
        answers.push(answer);
    }
    Ok(())
}
