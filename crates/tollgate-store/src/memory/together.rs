//! Requests with several charges: all of them or none.

use super::decide::{NoRoom, answer_after_debt, count_violation};
use super::locks::ChargeCell;
use super::room::make_room;
use super::shard::{CellPosition, Shard, is_wide};
use super::{MemoryStore, ShardContext};
use crate::sync::Guard;
use crate::{Answer, Answers, Charge};
use tollgate_core::Intent;

impl MemoryStore {
    /// Decides a request with several charges, or with none.
    pub(super) fn decide_multi(
        &self,
        now_us: u64,
        charges: &[Charge<'_>],
        intent: Intent,
        answers: &mut Answers,
    ) {
        if charges.len() > ChargeCell::INLINE_FEW {
            self.lock_and_decide_multi::<{ ChargeCell::INLINE_MAX }>(
                now_us, charges, intent, answers,
            );
        } else if self.decide_one_key_fast(now_us, charges, intent, answers).is_none() {
            answers.discard_current_rows();
            self.lock_and_decide_multi::<{ ChargeCell::INLINE_FEW }>(
                now_us, charges, intent, answers,
            );
        }
    }

    fn lock_and_decide_multi<const INLINE: usize>(
        &self,
        now_us: u64,
        charges: &[Charge<'_>],
        intent: Intent,
        answers: &mut Answers,
    ) {
        let (mut inline, mut heap) = ([ChargeCell::NOWHERE; INLINE], Vec::new());
        let places = match inline.get_mut(..charges.len()) {
            Some(places) => places,
            None => {
                heap.resize(charges.len(), ChargeCell::NOWHERE);
                &mut heap[..]
            }
        };
        for (place, charge) in places.iter_mut().zip(charges) {
            place.address = self.addresses.address(charge.limit, charge.key);
            self.shared.table_hints.prefetch(place.address, is_wide(charge.params));
        }
        loop {
            let decided = self.with_locks::<INLINE, _>(places, |guards, places| {
                decide_locked(&self.shared, guards, places, charges, now_us, intent, answers)
            });
            match decided {
                Ok(admitted) => return answers.finish(admitted),
                Err(NoRoom) => {
                    answers.discard_current_rows();
                    self.move_to_overflow_cells(places, charges);
                }
            }
        }
    }
}

/// Decides a request with several charges, whose shards are all locked.
fn decide_locked(
    shared: &ShardContext,
    guards: &mut [Option<Guard<'_, Shard>>],
    places: &mut [ChargeCell],
    charges: &[Charge<'_>],
    now_us: u64,
    intent: Intent,
    answers: &mut Answers,
) -> Result<bool, NoRoom> {
    let mut admitted = true;
    for (place, charge) in places.iter_mut().zip(charges) {
        let Some(shard) = &mut guards[place.lock] else { continue };
        place.found = shard.find_and_redate(shared, place.address.tag, charge, now_us);
        let looks = charge.mode.owed().is_some();
        let intent = if looks { Intent::Peek } else { intent };
        let answer = shard.decide(shared, place.found, charge, now_us, intent);
        admitted &= answer.outcome.admitted || !charge.mode.is_enforced();
        answers.push(answer);
    }
    if intent == Intent::Peek {
        return Ok(admitted);
    }
    let rows = answers.current_rows();
    let units = |n: usize, rows: &[Answer]| match charges[n].mode.owed() {
        Some(units) => units,
        None if admitted && rows[n].outcome.admitted => charges[n].cost,
        None => 0,
    };
    let news = |(n, place): (usize, &ChargeCell)| {
        units(n, rows) > 0 && place.found == CellPosition::Absent
    };
    let moved = places.iter().enumerate().any(news);
    if moved {
        make_room(shared, guards, places, now_us, |n| {
            let units = units(n, rows);
            (units > 0).then_some((&charges[n], units))
        })?;
    }
    for (n, (place, charge)) in places.iter().zip(charges).enumerate() {
        let Some(shard) = &mut guards[place.lock] else { continue };
        let (tag, units) = (place.address.tag, units(n, rows));
        if units > 0 {
            let found = if moved { shard.find(charge.params, tag) } else { place.found };
            let receipt = shard.charge(shared, found, tag, charge, now_us, units);
            // What a shared cell took cannot be given back: by then the key may have one of its
            // own. What is owed never is.
            let returnable = !place.overflow && charge.mode.owed().is_none();
            rows[n].receipt = returnable.then_some(receipt);
        }
    }
    for (n, (place, charge)) in places.iter().zip(charges).enumerate() {
        let Some(shard) = &mut guards[place.lock] else { continue };
        let (tag, answer) = (place.address.tag, &mut rows[n]);
        if charge.mode.owed().is_some() {
            *answer = answer_after_debt(shared, shard, tag, charge, now_us, *answer);
        } else if admitted {
            continue;
        } else if answer.outcome.admitted {
            // Nothing was taken after all, so the numbers are those of now.
            let found = shard.find(charge.params, tag);
            *answer = shard.decide(shared, found, charge, now_us, Intent::Peek);
        } else {
            count_violation(shared, shard, tag, charge, now_us, answer);
        }
    }
    Ok(admitted)
}
