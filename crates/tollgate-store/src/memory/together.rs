//! Requests with several charges: all of them or none.

use super::decide::{Full, punish};
use super::fast::Pending;
use super::locks::Place;
use super::room::make_room;
use super::shard::{Found, Shard, is_wide};
use super::{MemoryStore, Shared};
use crate::sync::Guard;
use crate::{Answer, Answers, Charge, Mode};
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
        match charges.len() <= Place::FEW {
            true => self.decide_several::<{ Place::FEW }>(now_us, charges, intent, answers),
            false => self.decide_several::<{ Place::USUAL }>(now_us, charges, intent, answers),
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
    if let Some(admitted) = decide_usual(guards, places, charges, now_us, intent, answers) {
        return Ok(admitted);
    }
    answers.reopen();
    let mut admitted = true;
    for (place, charge) in places.iter_mut().zip(charges) {
        let Some(shard) = &mut guards[place.lock] else { continue };
        place.found = shard.find_dated(shared, place.address.tag, charge, now_us);
        let answer = shard.decide(shared, place.found, charge, now_us, intent);
        admitted &= answer.outcome.admitted || charge.mode == Mode::Shadow;
        answers.push(answer);
    }
    if intent == Intent::Peek {
        return Ok(admitted);
    }
    if admitted {
        let takes = |n: usize, rows: &[Answer]| charges[n].cost > 0 && rows[n].outcome.admitted;
        let rows = answers.open_rows();
        let news = |(n, place): (usize, &Place)| takes(n, rows) && place.found == Found::Absent;
        let moved = places.iter().enumerate().any(news);
        if moved {
            make_room(shared, guards, places, now_us, |n| {
                takes(n, rows).then_some((&charges[n], charges[n].cost))
            })?;
        }
        for (n, (place, charge)) in places.iter().zip(charges).enumerate() {
            let Some(shard) = &mut guards[place.lock] else { continue };
            if takes(n, rows) {
                let tag = place.address.tag;
                let found = if moved { shard.find(charge.numbers, tag) } else { place.found };
                let receipt = shard.charge(shared, found, tag, charge, now_us, charge.cost);
                // What a shared cell took cannot be given back: by then the key may have one of its own.
                rows[n].receipt = (!place.overflow).then_some(receipt);
            }
        }
        return Ok(true);
    }
    for (n, (place, charge)) in places.iter().zip(charges).enumerate() {
        let Some(shard) = &mut guards[place.lock] else { continue };
        let tag = place.address.tag;
        let answer = &mut answers.open_rows()[n];
        if answer.outcome.admitted {
            // Nothing was taken after all, so the numbers are those of now.
            let found = shard.find(charge.numbers, tag);
            *answer = shard.decide(shared, found, charge, now_us, Intent::Peek);
        } else {
            punish(shared, shard, tag, charge, now_us, answer);
        }
    }
    Ok(false)
}

/// Decides a request with a few charges that are all in the [usual case](super::fast), each found and computed once. Otherwise
/// nothing has changed but the rows.
fn decide_usual(
    guards: &mut [Option<Guard<'_, Shard>>],
    places: &[Place],
    charges: &[Charge<'_>],
    now_us: u64,
    intent: Intent,
    answers: &mut Answers,
) -> Option<bool> {
    let mut pending = [Pending::NOTHING; Place::FEW];
    let pending = pending.get_mut(..charges.len())?;
    let mut admitted = true;
    for ((place, charge), pending) in places.iter().zip(charges).zip(&mut *pending) {
        let shard = guards[place.lock].as_ref()?;
        *pending = shard.consider_usual(place.address.tag, charge, now_us, intent, answers)?;
        admitted &= pending.admitted || charge.mode == Mode::Shadow;
    }
    if !admitted {
        // Nothing is taken after all, so the rows have to show the numbers of now.
        return None;
    }
    // Two keys that share all their bits share a cell; what one of them takes must not overwrite what the other does.
    let same = |a: usize, b: usize| {
        places[a].address == places[b].address
            && is_wide(charges[a].numbers) == is_wide(charges[b].numbers)
    };
    if (1..charges.len()).any(|b| (0..b).any(|a| same(a, b))) {
        return None;
    }
    for ((place, charge), &pending) in places.iter().zip(charges).zip(&*pending) {
        guards[place.lock].as_mut()?.write_usual(charge.numbers, pending);
    }
    Some(true)
}
