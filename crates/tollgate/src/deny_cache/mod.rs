//! Deny cache: remembers refusals, so that a flood on a refused key does not reach the store.

mod entry;
mod single_flight;

pub(crate) use single_flight::SingleFlight;

use crate::engine::{Row, Rules, Source};
use crate::gate::{DecisionRequest, FromAnswer, RequestedLimit};
use crate::limiter::micros;
use crate::sync::lock;
use ahash::RandomState;
use entry::{CachedAnswer, CachedRow, DenyEntry, EntryRole, MissBudget};
use single_flight::FlightRole;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;
use tollgate_core::LimitParams;
use tollgate_policy::limit::{Counting, Mode};
use tollgate_policy::policy::Selected;
use tollgate_store::{Answer, Charge, Origin, StateKey};

/// The number of shards, each with its own lock.
const SHARDS: usize = 16;

/// Caches the store's row for each (limit, key) of a refused request, for `max_age` at most.
///
/// The cache refuses a request if a cached refusal applies and all other rows are cached. The
/// verdict has the same rows as without the cache. A refusal applies under the same rules, to the
/// same parameters, and to costs that are not lower.
///
/// The cache never refuses for three kinds of limits. Slots can return at any moment. Leased limits
/// remember refusals themselves. Penalties that have not blocked the key yet must count refusals.
///
/// When an entry is too old, one request calls the store. Others are refused until it is answered.
#[derive(Debug)]
pub struct DenyCache {
    shards: [Mutex<Shard>; SHARDS],
    hashers: [RandomState; 2],
    entries_per_shard: usize,
    max_age_us: u64,
}

#[derive(Debug, Default)]
struct Shard {
    entries: HashMap<u128, DenyEntry, RandomState>,
    /// The names of entries by the hash of the store's key: the end of another node's reservation
    /// has only this key.
    names_by_state: HashMap<u64, u128, RandomState>,
    /// Grows when an entry is dropped. A refusal from an earlier epoch must not be cached.
    epoch: u64,
    /// The time before which the shard does not look for room again.
    full_until_us: u64,
}

/// The epoch of each charge's shard before the store call.
pub(crate) type InvalidationEpochs = SmallVec<[u64; 4]>;

/// The output rows, the index of each row's limit, and the index of the first limit.
pub(crate) type RowSink<'t, R> = (&'t mut Vec<R>, &'t mut SmallVec<[usize; 4]>, usize);

impl DenyCache {
    /// Creates a cache of at most `entries` rows, each for at most `max_age`.
    pub fn new(entries: usize, max_age: Duration) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hashers: [RandomState::new(), RandomState::new()],
            entries_per_shard: entries.div_ceil(SHARDS),
            max_age_us: micros(max_age),
        }
    }

    /// The epochs before the store call. A request that only leases decide is not cached.
    pub(crate) fn epochs(
        &self,
        rules: &Rules,
        limits: &[RequestedLimit<'_>],
        charges: &[Charge<'_>],
    ) -> InvalidationEpochs {
        if limits.iter().all(|limit| rules.is_leased(&limit.selected)) {
            return charges.iter().map(|_| 0).collect();
        }
        let shard = |charge: &Charge<'_>| self.locate(charge.limit, charge.key).0;
        charges.iter().map(|charge| lock(&self.shards[shard(charge)]).epoch).collect()
    }

    /// Adds the rows of a request that a cached refusal refuses. `None`: the request must call the
    /// store, and `flight` has the entries for which it calls on behalf of others.
    ///
    /// A row is left out only if it is not cached and the refused key has used up its misses.
    pub(crate) fn lookup<'c, 'r, R: FromAnswer<'r>>(
        &'c self,
        &DecisionRequest { rules, now_us, .. }: &DecisionRequest<'_, 'r>,
        limits: &[RequestedLimit<'_>],
        charges: &[Charge<'_>],
        (rows, indices, first): RowSink<'_, R>,
        flight: &mut SingleFlight<'c>,
    ) -> Option<()> {
        let cached = limits
            .iter()
            .zip(charges)
            .map(|(limit, charge)| self.lookup_charge(rules, now_us, &limit.selected, charge));
        let cached: SmallVec<[CachedAnswer; 4]> = cached.collect();
        let refusing = cached.iter().position(CachedAnswer::refuses)?;
        if cached.iter().any(|answer| matches!(answer, CachedAnswer::Counts)) {
            return None;
        }
        let mut known = cached.iter().filter_map(CachedAnswer::row);
        let max_age_us = if known.any(|row| row.refuses && row.age_us < self.max_age_us) {
            self.max_age_us
        } else if self.waits_for_refresh(now_us, charges, &cached, flight) {
            // While another request calls the store, all rows stay valid.
            u64::MAX
        } else {
            return None;
        };
        let is_exact = |row: &CachedRow| row.exact && row.age_us < max_age_us;
        // Answers never show the slots of the fleet.
        let is_hidden = |limit: &RequestedLimit<'_>| limit.selected.limit.selector.is_shed();
        let shown = || limits.iter().zip(&cached).filter(|(limit, _)| !is_hidden(limit));
        let all_exact = shown().all(|(_, answer)| answer.row().is_some_and(is_exact));
        if !all_exact && self.may_miss(now_us, &charges[refusing]) {
            return None;
        }
        for (index, (limit, answer)) in shown().enumerate() {
            if let Some(row) = answer.row().filter(|row| row.refuses || row.age_us < max_age_us) {
                rows.push(cached_row(rules, &limit.selected, row).into());
                indices.push(first + index);
            }
        }
        Some(())
    }

    fn lookup_charge(
        &self,
        rules: &Rules,
        now_us: u64,
        one: &Selected<'_>,
        charge: &Charge<'_>,
    ) -> CachedAnswer {
        if one.missing {
            return CachedAnswer::Row(CachedRow::of_missing(charge, now_us));
        }
        let (shard, name) = self.locate(charge.limit, charge.key);
        let shard = lock(&self.shards[shard]);
        shard.entries.get(&name).map_or(CachedAnswer::Unknown, |entry| {
            entry.recall(rules, now_us, self.max_age_us, one, charge)
        })
    }

    /// Lets one request call the store when a refusal is too old. Returns whether this request is
    /// refused while another one calls.
    fn waits_for_refresh<'c>(
        &'c self,
        now_us: u64,
        charges: &[Charge<'_>],
        cached: &[CachedAnswer],
        flight: &mut SingleFlight<'c>,
    ) -> bool {
        let (mut leads, mut follows) = (SingleFlight::default(), false);
        for (charge, _) in charges.iter().zip(cached).filter(|(_, answer)| answer.refuses()) {
            let (shard, name) = self.locate(charge.limit, charge.key);
            if flight.is_for(shard, name) || leads.is_for(shard, name) {
                continue;
            }
            let mut entries = lock(&self.shards[shard]);
            let Some(entry) = entries.entries.get_mut(&name) else { continue };
            // Another thread may have replaced the entry.
            let is_fresh = now_us.saturating_sub(entry.learnt_us) < self.max_age_us;
            match if is_fresh { FlightRole::Follower } else { entry.flight_role(now_us) } {
                FlightRole::Leader => leads.add(self, shard, name),
                FlightRole::Follower => follows = true,
                FlightRole::TimedOut => {}
            }
        }
        // A follower does not call the store, so it gives up the entries that it leads.
        if !follows {
            flight.merge(leads);
        }
        follows
    }

    /// Whether a request that this key refuses may call the store for uncached rows.
    fn may_miss(&self, now_us: u64, charge: &Charge<'_>) -> bool {
        let (shard, name) = self.locate(charge.limit, charge.key);
        let mut shard = lock(&self.shards[shard]);
        shard.entries.get_mut(&name).is_none_or(|entry| entry.misses.take(now_us))
    }

    /// Caches the rows of a request that an enforced limit refused, unless the shard's epoch
    /// changed since the store call.
    pub(crate) fn learn(
        &self,
        &DecisionRequest { rules, now_us, .. }: &DecisionRequest<'_, '_>,
        limits: &[RequestedLimit<'_>],
        charges: &[Charge<'_>],
        answers: &[Answer],
        state_key: impl Fn(&Charge<'_>) -> StateKey,
        epochs: &[u64],
    ) {
        let rows = limits.iter().map(|limit| limit.selected).zip(charges).zip(answers);
        let role = |((one, charge), answer): ((Selected<'_>, &Charge<'_>), &Answer)| {
            role(rules, &one, charge, answer)
        };
        // Rows are shown only with a cached refusal.
        if !rows.clone().any(|row| role(row) == EntryRole::Refuses) {
            return;
        }
        for (((one, charge), answer), epoch) in rows.zip(epochs.iter().copied()) {
            // In the grace period after a failover, the row is not the limit's state.
            let is_hidden = one.limit.selector.is_shed();
            if one.missing || is_hidden || answer.origin == Origin::GracePeriod {
                continue;
            }
            // A cost that never fits is refused for the longest time.
            let wait_us = match answer.outcome {
                outcome if outcome.admitted => self.max_age_us,
                outcome => outcome.retry_after_us.unwrap_or(self.max_age_us).min(self.max_age_us),
            };
            let entry = DenyEntry {
                state_hash: self.state_hash(&state_key(charge)),
                generation: rules.generation(),
                params_index: one.params_index,
                enforced: charge.mode.is_enforced(),
                cost: charge.cost,
                learnt_us: now_us,
                expires_us: now_us.saturating_add(wait_us),
                outcome: answer.outcome,
                blocked: answer.blocked,
                role: role(((one, charge), answer)),
                spent: false,
                refresh_started_us: None,
                is_refreshing: false,
                misses: MissBudget::default(),
                other_waits: [None; 3],
            };
            self.insert(charge, entry, epoch);
        }
    }

    fn insert(&self, charge: &Charge<'_>, mut entry: DenyEntry, learnt_epoch: u64) {
        let (shard, name) = self.locate(charge.limit, charge.key);
        let mut shard = lock(&self.shards[shard]);
        let Shard { entries, names_by_state, epoch, full_until_us } = &mut *shard;
        if *epoch != learnt_epoch {
            return;
        }
        let now_us = entry.learnt_us;
        if let Some(old) = entries.get(&name) {
            entry.inherit(old);
        } else if entries.len() >= self.entries_per_shard {
            // A row that does not fit costs a call to the store, as without a cache.
            if entry.role != EntryRole::Refuses || now_us < *full_until_us {
                return;
            }
            // A refusal saves a call; other rows only complete an answer.
            entries.retain(|_, old| now_us < old.expires_us && old.role == EntryRole::Refuses);
            names_by_state.retain(|_, name| entries.contains_key(name));
            if entries.len() >= self.entries_per_shard {
                *full_until_us = now_us.saturating_add(self.max_age_us / 8);
                return;
            }
        }
        entries.insert(name, entry);
        names_by_state.insert(entry.state_hash, name);
    }

    /// Drops the rows of a key, because units were given back to it.
    pub(crate) fn forget(&self, limit: u64, key: &[u8]) {
        let (shard, name) = self.locate(limit, key);
        let mut shard = lock(&self.shards[shard]);
        shard.epoch += 1;
        shard.forget(name);
    }

    /// Marks the rows of charged keys. A limit with a penalty may refuse next, and that refusal
    /// must reach the store.
    pub(crate) fn mark_spent(&self, charges: &[Charge<'_>]) {
        for charge in charges.iter().filter(|charge| charge.penalty.is_some()) {
            let (shard, name) = self.locate(charge.limit, charge.key);
            if let Some(entry) = lock(&self.shards[shard]).entries.get_mut(&name) {
                entry.spent = true;
            }
        }
    }

    /// Drops the rows of a key, given by its key in the store.
    pub(crate) fn forget_state(&self, state_key: &StateKey) {
        let state_hash = self.state_hash(state_key);
        for shard in &self.shards {
            let mut shard = lock(shard);
            // The shard of a refusal in flight is unknown, so every epoch grows.
            shard.epoch += 1;
            if let Some(name) = shard.names_by_state.get(&state_hash).copied() {
                shard.forget(name);
            }
        }
    }

    fn state_hash(&self, state_key: &StateKey) -> u64 {
        self.hashers[0].hash_one(state_key)
    }

    /// The shard and the name of a key: two keyed hashes, so that clients cannot cause collisions.
    fn locate(&self, limit: u64, key: &[u8]) -> (usize, u128) {
        let [high, low] = self.hashers.each_ref().map(|hasher| hasher.hash_one((limit, key)));
        (low as usize % SHARDS, u128::from(high) << 64 | u128::from(low))
    }
}

impl Shard {
    fn forget(&mut self, name: u128) {
        if let Some(entry) = self.entries.remove(&name) {
            self.names_by_state.remove(&entry.state_hash);
        }
    }
}

/// The permitted use of a row. Slots can return at any moment, and a lease remembers refusals
/// itself. Inline limits, and limits that count refusals, need the store each time.
fn role(rules: &Rules, one: &Selected<'_>, charge: &Charge<'_>, answer: &Answer) -> EntryRole {
    let refuses = charge.mode.is_enforced() && !answer.outcome.admitted;
    let is_slots = matches!(charge.params, LimitParams::Concurrency(_));
    let needs_store = one.index == usize::MAX || one.limit.counting == Counting::Requested;
    if refuses && charge.penalty.is_some() && !answer.blocked {
        EntryRole::Counts
    } else if refuses && !(is_slots || needs_store || one.missing || rules.is_leased(one)) {
        EntryRole::Refuses
    } else {
        EntryRole::Shows
    }
}

fn cached_row<'r>(rules: &'r Rules, one: &Selected<'_>, row: &CachedRow) -> Row<'r> {
    let CachedRow { outcome, blocked, .. } = *row;
    let answer = Answer { outcome, blocked, receipt: None, origin: Origin::CachedRefusal };
    let source = match one.limit.mode {
        Mode::Shadow if !outcome.admitted => Source::Shadow,
        _ => Source::DenyCache,
    };
    rules.row_from(one, &answer, source)
}
