//! Settlements, cancellations and refunds.

use super::decide::Full;
use super::locks::Place;
use super::room::make_room;
use super::{MemoryStore, Shared, shard::Shard};
use crate::sync::Guard;
use crate::{Adjustment, Answers, Change};
use tollgate_core::Intent;

impl MemoryStore {
    pub(super) fn adjust_all(
        &self,
        now_us: u64,
        adjustments: &[Adjustment<'_>],
        answers: &mut Answers,
    ) {
        let mut places: Vec<_> = adjustments
            .iter()
            .map(|Adjustment { charge, .. }| Place::at(self.addresses.of(charge.limit, charge.key)))
            .collect();
        let charges: Vec<_> = adjustments.iter().map(|adjustment| adjustment.charge).collect();
        loop {
            let applied = self.with_locks::<{ Place::USUAL }, _>(&mut places, |guards, places| {
                apply(&self.shared, guards, places, now_us, adjustments, answers)
            });
            match applied {
                Ok(()) => return answers.finish(true),
                Err(Full) => self.move_full(&mut places, &charges),
            }
        }
    }
}

fn apply(
    shared: &Shared,
    guards: &mut [Option<Guard<'_, Shard>>],
    places: &mut [Place],
    now_us: u64,
    adjustments: &[Adjustment<'_>],
    answers: &mut Answers,
) -> Result<(), Full> {
    make_room(shared, guards, places, now_us, |n| match &adjustments[n] {
        Adjustment { charge, change: Change::Owe { units } } if *units > 0 => {
            Some((charge, *units))
        }
        _ => None,
    })?;
    for (place, Adjustment { charge, change }) in places.iter().zip(adjustments) {
        let Some(shard) = &mut guards[place.lock] else { continue };
        let tag = place.address.tag;
        let found = shard.find(charge.numbers, tag);
        let receipt = match change {
            Change::GiveBack { units, receipt, under } => {
                shard.give_back(shared, found, tag, charge, now_us, under, *units, receipt);
                None
            }
            Change::Owe { units: 0 } => None,
            Change::Owe { units } => Some(shard.charge(shared, found, tag, charge, now_us, *units)),
        };
        let found = shard.find_dated(shared, tag, charge, now_us);
        let mut answer = shard.decide(shared, found, charge, now_us, Intent::Peek);
        answer.receipt = receipt;
        answers.push(answer);
    }
    Ok(())
}
