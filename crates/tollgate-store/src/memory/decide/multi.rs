//! Requests with several charges: all of them or none.

use super::{NoRoom, answer_after_debt, count_violation};
use crate::memory::evict::RoomNeeded;
use crate::memory::shard::{CellPosition, Shard, is_wide};
use crate::memory::table::address::CellAddress;
use crate::memory::{MemoryStore, ShardContext};
use crate::sync::{Guard, lock};
use crate::{Answer, Answers, Charge};
use tollgate_core::Intent;

impl MemoryStore {
    /// Decides a request with several charges, or with none.
    pub(crate) fn decide_multi(
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

/// Where one charge of a request is decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChargeCell {
    pub(crate) address: CellAddress,
    /// Whether that is an overflow cell.
    pub(crate) overflow: bool,
    /// Which of the request's locks holds it; none after there was no room for it.
    pub(crate) lock: usize,
    /// The cell, as long as none is added or taken away.
    pub(crate) found: CellPosition,
}

impl ChargeCell {
    /// As many charges as most requests have: for them little stack is cleared.
    pub(crate) const INLINE_FEW: usize = 4;
    /// Charges of one request for which no memory is allocated.
    pub(crate) const INLINE_MAX: usize = 16;
    pub(crate) const NOWHERE: Self = Self::at(CellAddress { shard: 0, tag: 0 });

    pub(crate) const fn at(address: CellAddress) -> Self {
        Self { address, overflow: false, lock: 0, found: CellPosition::Absent }
    }
}

impl MemoryStore {
    /// Locks the shards of `places`, each once and in ascending order, so that two requests cannot
    /// wait for each other. More than `INLINE` take memory.
    #[inline]
    pub(crate) fn with_locks<const INLINE: usize, T>(
        &self,
        places: &mut [ChargeCell],
        work: impl FnOnce(&mut [Option<Guard<'_, Shard>>], &mut [ChargeCell]) -> T,
    ) -> T {
        let mut inline = [const { None }; INLINE];
        let mut heap = Vec::new();
        let guards = match inline.get_mut(..places.len()) {
            Some(guards) => guards,
            None => {
                heap.resize_with(places.len(), || None);
                &mut heap[..]
            }
        };
        let mut next = places.iter().map(|place| place.address.shard).min();
        let mut locked = 0;
        while let Some(shard) = next {
            guards[locked] = Some(lock(&self.shards[shard].0));
            next = None;
            for place in &mut *places {
                if place.address.shard == shard {
                    place.lock = locked;
                } else if place.address.shard > shard {
                    next = Some(next.map_or(place.address.shard, |n| place.address.shard.min(n)));
                }
            }
            locked += 1;
        }
        work(&mut guards[..locked], places)
    }
}

impl MemoryStore {
    /// Sends every charge that was found to have no room to its overflow cell.
    pub(crate) fn move_to_overflow_cells(&self, places: &mut [ChargeCell], charges: &[Charge<'_>]) {
        for (place, charge) in places.iter_mut().zip(charges) {
            if place.overflow && place.lock == usize::MAX {
                place.address = self.addresses.overflow(charge.limit, place.address);
                self.shared.events.overflowed(charge.limit);
            }
        }
    }
}

/// Makes room for the cells that charges will add. Those that find none are marked, to be moved to
/// overflow cells.
pub(crate) fn make_room<'a>(
    shared: &ShardContext,
    guards: &mut [Option<Guard<'_, Shard>>],
    places: &mut [ChargeCell],
    now_us: u64,
    takes: impl Fn(usize) -> Option<(&'a Charge<'a>, u64)>,
) -> Result<(), NoRoom> {
    let absent = |guards: &[Option<Guard<'_, Shard>>], place: &ChargeCell, charge: &Charge<'_>| {
        guards[place.lock].as_ref().is_some_and(|shard| {
            shard.find(charge.params, place.address.tag) == CellPosition::Absent
        })
    };
    let mut pinned_inline = [0; ChargeCell::INLINE_MAX];
    let pinned_heap: Vec<u64>;
    let pinned = match pinned_inline.get_mut(..places.len()) {
        Some(pinned) => {
            pinned.iter_mut().zip(&*places).for_each(|(tag, place)| *tag = place.address.tag);
            &*pinned
        }
        None => {
            pinned_heap = places.iter().map(|place| place.address.tag).collect();
            &pinned_heap[..]
        }
    };
    let mut full = false;
    for n in 0..places.len() {
        let Some((charge, _)) = takes(n) else { continue };
        if !absent(guards, &places[n], charge) {
            continue;
        }
        // Room for as many as this request could add to the same table, this one included.
        let mut want = RoomNeeded::default();
        for (m, place) in places.iter().enumerate() {
            if let Some((other, units)) = takes(m)
                && place.lock == places[n].lock
            {
                want.cells += usize::from(is_wide(other.params) == is_wide(charge.params));
                want.spilled += usize::from(Shard::spills(other, now_us, units));
            }
        }
        let place = &mut places[n];
        if let Some(shard) = &mut guards[place.lock]
            && !shard.reserve(shared, charge.params, now_us, want, pinned, place.overflow)
        {
            place.overflow = true;
            place.lock = usize::MAX;
            full = true;
        }
    }
    if full { Err(NoRoom) } else { Ok(()) }
}
