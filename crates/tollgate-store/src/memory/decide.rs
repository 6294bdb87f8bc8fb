//! Requests: all of their charges or none.

use super::address::Address;
use super::evict::Want;
use super::shard::{Found, Shard, is_wide, show_block};
use super::{MemoryStore, Shared};
use crate::sync::{MutexGuard, Ordering, lock};
use crate::{Answer, Answers, Charge, Mode};
use tollgate_core::Intent;

/// Charges of one request for which no memory is allocated.
const USUAL: usize = 16;

/// The store has no room for a new key's cell.
#[derive(Debug)]
pub(crate) struct Full;

/// Where one charge of a request is decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) address: Address,
    /// Whether that is an overflow cell.
    pub(crate) overflow: bool,
    /// Which of the request's locks holds it.
    pub(crate) lock: usize,
}

impl Place {
    const NOWHERE: Self = Self::at(Address { shard: 0, tag: 0 });

    pub(super) const fn at(address: Address) -> Self {
        Self { address, overflow: false, lock: 0 }
    }
}

impl MemoryStore {
    /// Decides a request with one charge.
    #[inline]
    pub(super) fn decide_one(
        &self,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) {
        let address = self.addresses.of(charge.limit, charge.key);
        let mut shard = lock(&self.shards[address.shard].0);
        let decided = self.decide_in(&mut shard, address.tag, charge, now_us, intent, answers);
        drop(shard);
        if let Err(Full) = decided {
            self.decide_overflowing(address, charge, now_us, intent, answers);
        }
    }

    /// Decides a request with one charge, whose shard is locked.
    #[inline]
    pub(super) fn decide_in(
        &self,
        shard: &mut Shard,
        tag: u64,
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
        answers: &mut Answers,
    ) -> Result<(), Full> {
        if shard.decide_usual(tag, charge, now_us, intent, answers).is_some() {
            return Ok(());
        }
        let answer = decide_alone(&self.shared, shard, tag, charge, now_us, intent, false)?;
        answers.push(answer);
        answers.finish(answer.outcome.admitted || charge.mode == Mode::Shadow);
        Ok(())
    }

    /// Decides a request for whose new key there is no room, in a cell that such keys share.
    #[cold]
    pub(super) fn decide_overflowing(
        &self,
        address: Address,
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
        answers: &mut Answers,
    ) {
        self.shared.events.overflowed(charge.limit);
        let address = self.addresses.overflow(charge.limit, address);
        let mut shard = lock(&self.shards[address.shard].0);
        let decided =
            decide_alone(&self.shared, &mut shard, address.tag, charge, now_us, intent, true);
        let answer =
            decided.unwrap_or_else(|Full| unreachable!("overflow cells are made beyond the cap"));
        answers.push(answer);
        answers.finish(answer.outcome.admitted || charge.mode == Mode::Shadow);
    }

    /// Decides a request with several charges, or with none.
    pub(super) fn decide_many(
        &self,
        now_us: u64,
        charges: &[Charge<'_>],
        intent: Intent,
        answers: &mut Answers,
    ) {
        let (mut inline, mut heap) = ([Place::NOWHERE; USUAL], Vec::new());
        let places = match inline.get_mut(..charges.len()) {
            Some(places) => places,
            None => {
                heap.resize(charges.len(), Place::NOWHERE);
                &mut heap[..]
            }
        };
        for (place, charge) in places.iter_mut().zip(charges) {
            place.address = self.addresses.of(charge.limit, charge.key);
        }
        loop {
            let decided = self.with_locks(places, |guards, places| {
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

    /// Sends every charge that was found to have no room to its overflow cell.
    pub(super) fn move_full(&self, places: &mut [Place], charges: &[Charge<'_>]) {
        for (place, charge) in places.iter_mut().zip(charges) {
            if place.overflow && place.lock == usize::MAX {
                place.address = self.addresses.overflow(charge.limit, place.address);
                self.shared.events.overflowed(charge.limit);
            }
        }
    }

    /// Locks the shards of `places`, each once and in ascending order, so that two requests cannot wait for each other.
    pub(super) fn with_locks<T>(
        &self,
        places: &mut [Place],
        work: impl FnOnce(&mut [Option<MutexGuard<'_, Shard>>], &mut [Place]) -> T,
    ) -> T {
        let mut inline = [const { None }; USUAL];
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

/// Decides a request with one charge, whatever the state of its cell.
#[cold]
fn decide_alone(
    shared: &Shared,
    shard: &mut Shard,
    tag: u64,
    charge: &Charge<'_>,
    now_us: u64,
    intent: Intent,
    force: bool,
) -> Result<Answer, Full> {
    let found = shard.find_dated(shared, tag, charge, now_us);
    let mut answer = shard.decide(shared, found, charge, now_us, intent);
    if intent == Intent::Peek {
        return Ok(answer);
    }
    if !answer.outcome.admitted {
        punish(shared, shard, tag, charge, now_us, &mut answer);
    } else if charge.cost > 0 {
        if found == Found::Absent {
            let spilled = usize::from(Shard::spills(charge, now_us, charge.cost));
            let want = Want { cells: 1, spilled };
            if !shard.reserve(shared, charge.numbers, now_us, want, &[tag], force) {
                return Err(Full);
            }
        }
        answer.receipt = Some(shard.charge(shared, found, tag, charge, now_us, charge.cost));
    }
    Ok(answer)
}

/// Decides a request with several charges, whose shards are all locked.
fn decide_together(
    shared: &Shared,
    guards: &mut [Option<MutexGuard<'_, Shard>>],
    places: &mut [Place],
    charges: &[Charge<'_>],
    now_us: u64,
    intent: Intent,
    answers: &mut Answers,
) -> Result<bool, Full> {
    let mut admitted = true;
    for (place, charge) in places.iter().zip(charges) {
        let Some(shard) = &mut guards[place.lock] else { continue };
        let found = shard.find_dated(shared, place.address.tag, charge, now_us);
        let answer = shard.decide(shared, found, charge, now_us, intent);
        admitted &= answer.outcome.admitted || charge.mode == Mode::Shadow;
        answers.push(answer);
    }
    if intent == Intent::Peek {
        return Ok(admitted);
    }
    if admitted {
        let takes = |n: usize, rows: &[Answer]| charges[n].cost > 0 && rows[n].outcome.admitted;
        let rows = answers.open_rows();
        make_room(shared, guards, places, now_us, |n| {
            takes(n, rows).then_some((&charges[n], charges[n].cost))
        })?;
        for (n, (place, charge)) in places.iter().zip(charges).enumerate() {
            let Some(shard) = &mut guards[place.lock] else { continue };
            if takes(n, rows) {
                let tag = place.address.tag;
                let found = shard.find(charge.numbers, tag);
                let receipt = shard.charge(shared, found, tag, charge, now_us, charge.cost);
                rows[n].receipt = Some(receipt);
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

/// Makes room for the cells that charges will add. Those that find none are marked, to be moved to overflow cells.
pub(super) fn make_room<'a>(
    shared: &Shared,
    guards: &mut [Option<MutexGuard<'_, Shard>>],
    places: &mut [Place],
    now_us: u64,
    takes: impl Fn(usize) -> Option<(&'a Charge<'a>, u64)>,
) -> Result<(), Full> {
    let absent = |guards: &[Option<MutexGuard<'_, Shard>>], place: &Place, charge: &Charge<'_>| {
        guards[place.lock]
            .as_ref()
            .is_some_and(|shard| shard.find(charge.numbers, place.address.tag) == Found::Absent)
    };
    if !places
        .iter()
        .enumerate()
        .any(|(n, place)| takes(n).is_some_and(|(charge, _)| absent(guards, place, charge)))
    {
        return Ok(());
    }
    let mut pinned_inline = [0; USUAL];
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
        let mut want = Want::default();
        for (m, place) in places.iter().enumerate() {
            if let Some((other, units)) = takes(m)
                && place.lock == places[n].lock
            {
                want.cells += usize::from(is_wide(other.numbers) == is_wide(charge.numbers));
                want.spilled += usize::from(Shard::spills(other, now_us, units));
            }
        }
        let place = &mut places[n];
        if let Some(shard) = &mut guards[place.lock]
            && !shard.reserve(shared, charge.numbers, now_us, want, pinned, place.overflow)
        {
            place.overflow = true;
            place.lock = usize::MAX;
            full = true;
        }
    }
    if full { Err(Full) } else { Ok(()) }
}

/// Counts a refusal against the key, and lets the answer show the block that this starts.
fn punish(
    shared: &Shared,
    shard: &mut Shard,
    tag: u64,
    charge: &Charge<'_>,
    now_us: u64,
    answer: &mut Answer,
) {
    let (Mode::Enforce, Some(penalty), false) = (charge.mode, charge.penalty, answer.blocked)
    else {
        return;
    };
    let found = shard.find(charge.numbers, tag);
    let want = match found {
        Found::Spilled(_) => Want::default(),
        Found::Inline(_) => Want { cells: 0, spilled: 1 },
        Found::Absent => Want { cells: 1, spilled: 1 },
    };
    if !shard.reserve(shared, charge.numbers, now_us, want, &[tag], false) {
        shared.events.uncounted.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let found = shard.find(charge.numbers, tag);
    if let Some(end_us) = shard.count_refusal(shared, found, tag, charge, penalty, now_us) {
        show_block(answer, end_us.saturating_sub(now_us));
    }
}
