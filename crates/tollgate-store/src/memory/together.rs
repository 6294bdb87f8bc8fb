//! Requests with several charges: all of them or none.

use super::decide::{Full, owing, punish};
use super::locks::Place;
use super::room::make_room;
use super::shard::{Found, Shard, is_wide};
use super::{MemoryStore, Shared};
use crate::sync::Guard;
use crate::{Answer, Answers, Charge};
use tollgate_core::Intent;

impl MemoryStore {
    /// Decides a request with several charges, or with none.
    pub(super) fn decide_many(
        &self,
        now_us: u64,
        charges: &[Charge<'_>],
        intent: Intent,
        answers: &mut Answers,
    ) {
        if charges.len() > Place::FEW {
            self.decide_several::<{ Place::USUAL }>(now_us, charges, intent, answers);
        } else if self.decide_on_one_key(now_us, charges, intent, answers).is_none() {
            answers.reopen();
            self.decide_several::<{ Place::FEW }>(now_us, charges, intent, answers);
        }
    }

    fn decide_several<const INLINE: usize>(
        &self,
        now_us: u64,
        charges: &[Charge<'_>],
        intent: Intent,
        answers: &mut Answers,
    ) {
        let (mut inline, mut heap) = ([Place::NOWHERE; INLINE], Vec::new());
        let places = match inline.get_mut(..charges.len()) {
            Some(places) => places,
            None => {
                heap.resize(charges.len(), Place::NOWHERE);
                &mut heap[..]
            }
        };
        for (place, charge) in places.iter_mut().zip(charges) {
            place.address = self.addresses.of(charge.limit, charge.key);
            self.shared.views.prefetch(place.address, is_wide(charge.numbers));
        }
        loop {
            let decided = self.with_locks::<INLINE, _>(places, |guards, places| {
                decide_together(&self.shared, guards, places, charges, now_us, intent, answers)
            });
            match decided {
                Ok(admitted) => return answers.finish(admitted),
                Err(Full) => {
                    answers.reopen();
                    self.move_full(places, charges);
                }
            }
        }
    }
}

/// Decides a request with several charges, whose shards are all locked.
fn decide_together(
    shared: &Shared,
    guards: &mut [Option<Guard<'_, Shard>>],
    places: &mut [Place],
    charges: &[Charge<'_>],
    now_us: u64,
    intent: Intent,
    answers: &mut Answers,
) -> Result<bool, Full> {
    let mut admitted = true;
    for (place, charge) in places.iter_mut().zip(charges) {
        let Some(shard) = &mut guards[place.lock] else { continue };
        place.found = shard.find_dated(shared, place.address.tag, charge, now_us);
        let looks = charge.mode.owed().is_some();
        let intent = if looks { Intent::Peek } else { intent };
        let answer = shard.decide(shared, place.found, charge, now_us, intent);
        admitted &= answer.outcome.admitted || !charge.mode.is_enforced();
        answers.push(answer);
    }
    if intent == Intent::Peek {
        return Ok(admitted);
    }
    let rows = answers.open_rows();
    let units = |n: usize, rows: &[Answer]| match charges[n].mode.owed() {
        Some(units) => units,
        None if admitted && rows[n].outcome.admitted => charges[n].cost,
        None => 0,
    };
    let news = |(n, place): (usize, &Place)| units(n, rows) > 0 && place.found == Found::Absent;
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
            let found = if moved { shard.find(charge.numbers, tag) } else { place.found };
            let receipt = shard.charge(shared, found, tag, charge, now_us, units);
            // What a shared cell took cannot be given back: by then the key may have one of its own. What is owed never is.
            let returnable = !place.overflow && charge.mode.owed().is_none();
            rows[n].receipt = returnable.then_some(receipt);
        }
    }
    for (n, (place, charge)) in places.iter().zip(charges).enumerate() {
        let Some(shard) = &mut guards[place.lock] else { continue };
        let (tag, answer) = (place.address.tag, &mut rows[n]);
        if charge.mode.owed().is_some() {
            *answer = owing(shared, shard, tag, charge, now_us, *answer);
        } else if admitted {
            continue;
        } else if answer.outcome.admitted {
            // Nothing was taken after all, so the numbers are those of now.
            let found = shard.find(charge.numbers, tag);
            *answer = shard.decide(shared, found, charge, now_us, Intent::Peek);
        } else {
            punish(shared, shard, tag, charge, now_us, answer);
        }
    }
    Ok(admitted)
}
