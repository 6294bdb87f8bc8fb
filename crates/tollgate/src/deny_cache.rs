//! Refusals remembered for a moment, so that a flood on a refused key costs a shared store nothing.

mod flight;

pub(crate) use flight::Flight;

use crate::{Row, Rules, Source};
use ahash::RandomState;
use flight::Turn;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tollgate_core::{Algorithm, Numbers, Outcome};
use tollgate_policy::limit::{Counting, Mode};
use tollgate_policy::policy::Selected;
use tollgate_store::{Answer, Charge, Origin, Place};

/// Locks, each with its own part of the entries.
const SHARDS: usize = 16;

/// Remembers for a (limit, key) the cheapest cost that was refused, and until when it will be.
///
/// Of a leased limit the store itself remembers what it was told.
///
/// Once an entry is too old one request asks the store, and others are refused as before until it has been answered.
///
/// It answers only by the rules that the refusal was made under, for the same numbers, and for costs that are not below. It never
/// holds slots, which come back at any moment, nor a limit with a penalty whose key is not blocked yet, since its refusals count.
#[derive(Debug)]
pub struct DenyCache {
    shards: [Mutex<Shard>; SHARDS],
    hashers: [RandomState; 2],
    entries_per_shard: usize,
    max_age_us: u64,
}

#[derive(Debug, Default)]
struct Shard {
    entries: HashMap<u128, Entry, RandomState>,
    /// The names of entries by hashes of what the store calls them: whoever ends another node's reservation knows nothing else.
    places: HashMap<u64, u128, RandomState>,
    /// How often something was forgotten: a refusal from before that must not be learnt after it.
    forgets: u64,
    /// Looking for room again makes no sense until then.
    full_until_us: u64,
}

/// What was forgotten before a request was asked, charge by charge.
pub(crate) type Moment = SmallVec<[u64; 4]>;

#[derive(Clone, Copy, Debug)]
struct Entry {
    place: u64,
    generation: u64,
    numbers: usize,
    cost: u64,
    learnt_us: u64,
    until_us: u64,
    outcome: Outcome,
    /// When the first request left for the store because the entry is too old.
    left_us: Option<u64>,
    /// Whether one is on its way.
    flying: bool,
}

impl DenyCache {
    /// At most `entries` refusals, none of them for longer than `max_age`.
    pub fn new(entries: usize, max_age: Duration) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hashers: [RandomState::new(), RandomState::new()],
            entries_per_shard: entries.div_ceil(SHARDS),
            max_age_us: u64::try_from(max_age.as_micros()).unwrap_or(u64::MAX),
        }
    }

    /// Adds a row for every limit that is known to refuse, and says whether there is one. If there is none, the request asks the store, in
    /// `flight` for others too.
    pub(crate) fn refuses<'a, 'c, 'r: 'a>(
        &'c self,
        rules: &'r Rules,
        now_us: u64,
        selected: impl Iterator<Item = Selected<'a>> + Clone,
        charges: &[Charge<'_>],
        rows: &mut Vec<Row<'r>>,
        flight: &mut Flight<'c>,
    ) -> bool {
        let (before, mut is_old) = (rows.len(), false);
        for (one, charge) in selected.clone().zip(charges) {
            if rules.is_leased(&one) {
                continue;
            }
            let (shard, name) = self.place(charge.limit, charge.key);
            let Some(entry) = lock(&self.shards[shard]).entries.get(&name).copied() else {
                continue;
            };
            match self.answer(&entry, rules, now_us, &one, charge.cost) {
                Some((outcome, true)) => rows.push(row(rules, &one, outcome)),
                known => is_old |= known.is_some(),
            }
        }
        if rows.len() == before && is_old {
            self.leave(rules, now_us, selected, charges, rows, flight);
        }
        rows.len() > before
    }

    /// Of requests that meet an entry that is too old, one asks the store and the others are refused meanwhile.
    fn leave<'a, 'c, 'r: 'a>(
        &'c self,
        rules: &'r Rules,
        now_us: u64,
        selected: impl Iterator<Item = Selected<'a>>,
        charges: &[Charge<'_>],
        rows: &mut Vec<Row<'r>>,
        flight: &mut Flight<'c>,
    ) {
        let mut leaves = Flight::default();
        let before = rows.len();
        for (one, charge) in selected.zip(charges).filter(|(one, _)| !rules.is_leased(one)) {
            let (shard, name) = self.place(charge.limit, charge.key);
            if flight.is_for(shard, name) || leaves.is_for(shard, name) {
                continue;
            }
            let mut entries = lock(&self.shards[shard]);
            let Some(entry) = entries.entries.get_mut(&name) else { continue };
            let Some((outcome, fresh)) = self.answer(entry, rules, now_us, &one, charge.cost)
            else {
                continue;
            };
            // It may have been replaced meanwhile.
            let turn = if fresh { Turn::Refused } else { entry.turn(now_us) };
            match turn {
                Turn::Leaves => leaves.leave(self, shard, name),
                Turn::Refused => rows.push(row(rules, &one, outcome)),
                Turn::Asks => {}
            }
        }
        // Whoever is refused asks for nobody.
        if rows.len() == before {
            flight.join(leaves);
        }
    }

    /// What the entry says about this request, if it says anything, and whether it is young enough to be relied on.
    fn answer(
        &self,
        entry: &Entry,
        rules: &Rules,
        now_us: u64,
        one: &Selected<'_>,
        cost: u64,
    ) -> Option<(Outcome, bool)> {
        let age_us = now_us.checked_sub(entry.learnt_us)?;
        let fits = entry.generation == rules.generation()
            && entry.numbers == one.numbers_index
            && one.limit.mode == Mode::Enforce
            && is_remembered(one)
            && cost >= entry.cost
            && now_us < entry.until_us;
        let mut outcome = entry.outcome;
        outcome.reset_after_us = outcome.reset_after_us.saturating_sub(age_us);
        outcome.more_after_us = outcome.more_after_us.map(|us| us.saturating_sub(age_us));
        outcome.retry_after_us = match cost <= one.numbers.capacity() {
            true => outcome.retry_after_us.map(|us| us.saturating_sub(age_us)),
            false => None,
        };
        fits.then_some((outcome, age_us < self.max_age_us))
    }

    /// The moment before the store is asked.
    pub(crate) fn moment<'a>(
        &self,
        rules: &Rules,
        selected: impl Iterator<Item = Option<Selected<'a>>>,
        charges: &[Charge<'_>],
    ) -> Moment {
        let forgets = |(one, charge): (Option<Selected<'a>>, &Charge<'_>)| match one {
            // Nothing will be learnt of it.
            Some(one) if rules.is_leased(&one) => 0,
            _ => lock(&self.shards[self.place(charge.limit, charge.key).0]).forgets,
        };
        selected.zip(charges).map(forgets).collect()
    }

    /// Remembers the enforced limits that refused, unless something was forgotten since the `moment` before they were asked.
    #[expect(clippy::too_many_arguments, reason = "a request, its answer, and when it was asked")]
    pub(crate) fn learn<'a>(
        &self,
        rules: &Rules,
        now_us: u64,
        selected: impl Iterator<Item = Selected<'a>>,
        charges: &[Charge<'_>],
        answers: &[Answer],
        place: impl Fn(&Charge<'_>) -> Place,
        moment: &Moment,
    ) {
        for (((one, charge), answer), forgets) in
            selected.zip(charges).zip(answers).zip(moment.iter().copied())
        {
            let refused = one.limit.mode == Mode::Enforce && !answer.outcome.admitted;
            let counts = charge.penalty.is_some() && !answer.blocked;
            let slots = matches!(charge.numbers, Numbers::Concurrency(_));
            let remembered = is_remembered(&one) && !rules.is_leased(&one);
            if !refused || counts || slots || one.missing || !remembered {
                continue;
            }
            // What never fits is refused for as long as anything is remembered.
            let wait_us = answer.outcome.retry_after_us.unwrap_or(self.max_age_us);
            self.keep(
                charge,
                Entry {
                    place: self.hash(&place(charge)),
                    generation: rules.generation(),
                    numbers: one.numbers_index,
                    cost: charge.cost,
                    learnt_us: now_us,
                    until_us: now_us.saturating_add(wait_us),
                    outcome: answer.outcome,
                    left_us: None,
                    flying: false,
                },
                forgets,
            );
        }
    }

    fn keep(&self, charge: &Charge<'_>, entry: Entry, forgets: u64) {
        let (shard, name) = self.place(charge.limit, charge.key);
        let mut shard = lock(&self.shards[shard]);
        let Shard { entries, places, forgets: now_forgets, full_until_us } = &mut *shard;
        if *now_forgets != forgets {
            return;
        }
        let now_us = entry.learnt_us;
        if entries.len() >= self.entries_per_shard && !entries.contains_key(&name) {
            // All of them still hold, so the flood is wide: what is left out is asked of the store, as without a cache.
            if now_us < *full_until_us {
                return;
            }
            entries.retain(|_, old| {
                now_us < old.until_us && now_us.saturating_sub(old.learnt_us) < self.max_age_us
            });
            places.retain(|_, name| entries.contains_key(name));
            if entries.len() >= self.entries_per_shard {
                *full_until_us = now_us.saturating_add(self.max_age_us / 8);
                return;
            }
        }
        entries.insert(name, entry);
        places.insert(entry.place, name);
    }

    /// Forgets the refusals of one key: something was given back to it.
    pub(crate) fn forget(&self, limit: u64, key: &[u8]) {
        let (shard, name) = self.place(limit, key);
        let mut shard = lock(&self.shards[shard]);
        shard.forgets += 1;
        shard.forget(name);
    }

    /// The same for whoever knows only what the store calls it.
    pub(crate) fn forget_at(&self, place: &Place) {
        let place = self.hash(place);
        for shard in &self.shards {
            let mut shard = lock(shard);
            // Which shard a refusal on its way belongs to is not known here.
            shard.forgets += 1;
            if let Some(name) = shard.places.get(&place).copied() {
                shard.forget(name);
            }
        }
    }

    fn hash(&self, place: &Place) -> u64 {
        self.hashers[0].hash_one(place)
    }

    /// 128 bits of two keyed hashes name a key: nobody can make two collide.
    fn place(&self, limit: u64, key: &[u8]) -> (usize, u128) {
        let [high, low] = self.hashers.each_ref().map(|hasher| hasher.hash_one((limit, key)));
        (low as usize % SHARDS, u128::from(high) << 64 | u128::from(low))
    }
}

/// A refusal that was remembered.
fn row<'a, 'r: 'a>(rules: &'r Rules, one: &Selected<'a>, outcome: Outcome) -> Row<'r> {
    let answer = Answer { outcome, blocked: false, receipt: None, origin: Origin::Refusal };
    rules.row_from(one, &answer, Source::DenyCache)
}

/// Whether the numbers are the policy's, and a refusal takes nothing.
fn is_remembered(one: &Selected<'_>) -> bool {
    one.index != usize::MAX && one.limit.counting != Counting::Asked
}

impl Shard {
    fn forget(&mut self, name: u128) {
        if let Some(entry) = self.entries.remove(&name) {
            self.places.remove(&entry.place);
        }
    }
}

/// A panic elsewhere leaves the entries whole, or a place without one: each change is a single insertion or removal.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
