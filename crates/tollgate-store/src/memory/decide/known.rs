//! Decides limits on one known key with the one lock of its shard: several limits together, or
//! state beyond a word.
//!
//! Words of grouped limits are read and written under the lock only. So their holder plans all of
//! them on plain copies, and stores the copies if all limits admit: no other thread sees a part.

use crate::memory::MemoryStore;
use crate::memory::shard::Shard;
use crate::memory::shard::pack::{Inline, WordsTaken, by_algorithm};
use crate::memory::shard::slab::SpilledCell;
use crate::memory::table::{find_exact, is_inline, with_params_id};
use crate::sync::{Ordering, lock};
use crate::{Answer, ParamsId, RegisteredLimit};
use tollgate_core::algorithm::Taken;
use tollgate_core::header::tightness;
use tollgate_core::{LimitParams, LimitState, Outcome};

/// The tag of a limit's cell; then its slot, and its word after the request.
#[derive(Clone, Copy)]
struct SlotPlan {
    tag: u64,
    at: usize,
    after: u64,
}

/// Limits of most groups: few, so that little stack is cleared.
const GROUP_FEW: usize = 4;
/// Limits of a group, at most.
const GROUP_MAX: usize = 16;

impl MemoryStore {
    /// See [`Store::decide_together`](crate::Store::decide_together).
    #[inline]
    pub(crate) fn decide_known(
        &self,
        now_us: u64,
        key: &[u8],
        cost: u64,
        limits: &[RegisteredLimit],
    ) -> Option<Answer> {
        match limits {
            [limit] => self.take_locked(now_us, key, cost, limit),
            few if few.len() <= GROUP_FEW => {
                self.take_together::<GROUP_FEW>(now_us, key, cost, few)
            }
            many => self.take_together::<GROUP_MAX>(now_us, key, cost, many),
        }
    }

    /// Takes `cost` from all limits, or from none.
    fn take_together<const MAX: usize>(
        &self,
        now_us: u64,
        key: &[u8],
        cost: u64,
        limits: &[RegisteredLimit],
    ) -> Option<Answer> {
        let hashed = self.addresses.hash(key);
        // Limits without a key are in different shards.
        if key.is_empty() {
            return None;
        }
        let mut plans = [SlotPlan { tag: 0, at: 0, after: 0 }; MAX];
        let plans = plans.get_mut(..limits.len())?;
        let mut home = 0;
        for (plan, limit) in plans.iter_mut().zip(limits) {
            if !limit.params_id.is_grouped() {
                return None;
            }
            let address = self.addresses.address_hashed(limit.id, key, hashed);
            // All cells at once, so that cache misses overlap.
            self.shared.locations.prefetch(address, &limit.params);
            plan.tag = with_params_id(address.tag, limit.params_id);
            home = address.shard;
        }
        let mut tightest = None;
        let shard = lock(&self.shards[home].0);
        let slots = &*shard.narrow.slots;
        for (n, limit) in limits.iter().enumerate() {
            let at = find_exact(slots, plans[n].tag)?;
            // Limits with the same hash share a slot, and one plan must not overwrite the other.
            for before in &plans[..n] {
                if before.at == at {
                    return None;
                }
            }
            let word = slots.get(at)?.words[0].load(Ordering::Relaxed);
            let (outcome, after) = match &limit.params {
                LimitParams::Gcra(params) => plan_word(params, word, now_us, cost)?,
                LimitParams::SlidingWindow(params) => plan_word(params, word, now_us, cost)?,
                LimitParams::FixedWindow(params) => plan_word(params, word, now_us, cost)?,
                LimitParams::LeakyBucket(params) => plan_word(params, word, now_us, cost)?,
                LimitParams::CalendarWindow(params) => plan_word(params, word, now_us, cost)?,
                _ => return None,
            };
            (plans[n].at, plans[n].after) = (at, after);
            if tightest.is_none_or(|before| is_tighter(&outcome, &before)) {
                tightest = Some(outcome);
            }
        }
        let tightest = tightest?;
        if tightest.admitted {
            for plan in plans {
                slots.get(plan.at)?.words[0].store(plan.after, Ordering::Release);
            }
        }
        Some(Answer::without_receipt(tightest))
    }

    /// Takes `cost` of a state that is beyond one word: in two words, or in the slab.
    fn take_locked(
        &self,
        now_us: u64,
        key: &[u8],
        cost: u64,
        limit: &RegisteredLimit,
    ) -> Option<Answer> {
        let RegisteredLimit { params, params_id, .. } = limit;
        let address = self.addresses.address(limit.id, key);
        let mut shard = lock(&self.shards[address.shard].0);
        if *params_id != ParamsId::default() {
            let LimitParams::TokenBucket(bucket) = params else { return None };
            let tag = with_params_id(address.tag, *params_id);
            return shard.take_two_words(bucket, tag, now_us, cost);
        }
        let at = shard.narrow.spilled_exact(address.tag)?;
        let spilled = shard.slab.get_mut(at)?;
        if spilled.penalty.is_some() || spilled.blocked_until_us > 0 {
            return None;
        }
        let SpilledCell { params: written, state, .. } = spilled;
        by_algorithm!(
            params,
            algorithm => take_typed(algorithm, written, state, now_us, cost),
            else None
        )
    }
}

impl Shard {
    fn take_two_words(
        &mut self,
        algorithm: &impl Inline<2>,
        tag: u64,
        now_us: u64,
        cost: u64,
    ) -> Option<Answer> {
        let slot = self.wide.slots.get(find_exact(&self.wide.slots, tag)?)?;
        let [first, second] = &slot.words;
        let words = [first.load(Ordering::Relaxed), second.load(Ordering::Relaxed)];
        if !is_inline(words[0]) {
            return None;
        }
        let outcome = match algorithm.take_words(words, now_us, cost)? {
            WordsTaken::Charged(words, outcome, _) => {
                first.store(words[0], Ordering::Relaxed);
                second.store(words[1], Ordering::Relaxed);
                outcome
            }
            WordsTaken::Refused(outcome) => outcome,
        };
        Some(Answer::without_receipt(without_more(outcome)))
    }
}

/// The outcome of a limit, and its word after the charge.
#[inline(always)]
fn plan_word(
    algorithm: &impl Inline<1>,
    word: u64,
    now_us: u64,
    cost: u64,
) -> Option<(Outcome, u64)> {
    if !is_inline(word) {
        return None;
    }
    Some(match algorithm.take_words([word], now_us, cost)? {
        WordsTaken::Charged([after], outcome, _) => (without_more(outcome), after),
        WordsTaken::Refused(outcome) => (without_more(outcome), word),
    })
}

#[inline(always)]
fn is_tighter(one: &Outcome, before: &Outcome) -> bool {
    if one.admitted && before.admitted {
        return one.remaining < before.remaining;
    }
    let rank = |one: &Outcome| tightness(!one.admitted, one.retry_after_us, one.remaining);
    rank(one) < rank(before)
}

/// Takes `cost` of a state that was written under params of the same algorithm.
#[inline(always)]
fn take_typed<A: Inline<W>, const W: usize>(
    algorithm: &A,
    written: &mut LimitParams,
    state: &mut LimitState,
    now_us: u64,
    cost: u64,
) -> Option<Answer> {
    let (written, state) = (A::of_mut(written)?, A::state_of(state)?);
    algorithm.redate(state, now_us);
    let outcome = match algorithm.take(state, now_us, cost)? {
        Taken::Charged(outcome, _) => {
            *written = *algorithm;
            outcome
        }
        Taken::Refused(outcome) => outcome,
    };
    Some(Answer::without_receipt(without_more(outcome)))
}

/// The outcome without a figure that costs a division and that limiters do not show.
#[inline(always)]
const fn without_more(mut outcome: Outcome) -> Outcome {
    outcome.more_after_us = None;
    outcome
}
