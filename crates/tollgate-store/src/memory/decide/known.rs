//! Decides limits on one known key with the one lock of its shard: several limits together, or
//! state beyond a word.
//!
//! Words of grouped limits are read and written under the lock only. So their holder plans all of
//! them on plain copies, and stores the copies if all limits admit: no other thread sees a part.

use crate::memory::MemoryStore;
use crate::memory::shard::Shard;
use crate::memory::shard::pack::{Inline, WordsTaken, by_algorithm, by_one_word};
use crate::memory::shard::slab::SpilledCell;
use crate::memory::table::{find_exact, home, is_inline, with_params_id};
use crate::raw::slots::Slot;
use crate::sync::{Ordering, lock};
use crate::{Answer, ParamsId, RegisteredLimit};
use std::ptr;
use tollgate_core::algorithm::Taken;
use tollgate_core::header::tightness;
use tollgate_core::{LimitParams, LimitState, Outcome};

/// What a request does to the cell of one limit.
#[derive(Clone, Copy)]
struct SlotPlan<'a> {
    slot: Option<&'a Slot<1>>,
    /// The slot's word; later the word after the request.
    word: u64,
    /// Figures of the outcome.
    limit: u64,
    remaining: u64,
    reset_after_us: u64,
}

impl SlotPlan<'_> {
    const NONE: Self = Self { slot: None, word: 0, limit: 0, remaining: 0, reset_after_us: 0 };

    /// Plans to take `cost`. Whether the limit admits; `None` if only the locked path can tell.
    #[inline(always)]
    fn take(&mut self, algorithm: &impl Inline<1>, now_us: u64, cost: u64) -> Option<bool> {
        let (outcome, after) = plan_word(algorithm, self.word, now_us, cost)?;
        self.word = after;
        self.limit = outcome.limit;
        self.remaining = outcome.remaining;
        self.reset_after_us = outcome.reset_after_us;
        Some(outcome.admitted)
    }
}

/// Limits of most groups: few, so that little stack is cleared.
const GROUP_FEW: usize = 4;
/// Limits of a group, at most.
const GROUP_MAX: usize = 16;

impl MemoryStore {
    /// See [`Store::decide_together`](crate::Store::decide_together).
    #[inline]
    pub(crate) fn decide_known<T>(
        &self,
        now_us: u64,
        key: &[u8],
        cost: u64,
        limits: &[RegisteredLimit],
        conclude: impl FnOnce(Answer) -> T,
    ) -> Option<T> {
        match limits {
            [limit] => self.take_locked(now_us, key, cost, limit).map(conclude),
            few if few.len() <= GROUP_FEW => {
                self.take_together::<GROUP_FEW, T>(now_us, key, cost, few, conclude)
            }
            many => self.take_together::<GROUP_MAX, T>(now_us, key, cost, many, conclude),
        }
    }

    /// Takes `cost` from all limits, or from none.
    // Three short loops, which keep their values in registers.
    #[inline(always)]
    fn take_together<const MAX: usize, T>(
        &self,
        now_us: u64,
        key: &[u8],
        cost: u64,
        limits: &[RegisteredLimit],
        conclude: impl FnOnce(Answer) -> T,
    ) -> Option<T> {
        // Limits without a key are in different shards.
        if key.is_empty() {
            return None;
        }
        let hashed = self.addresses.hash(key);
        let home_shard = self.addresses.shard_hashed(hashed);
        let tag_of = |limit: &RegisteredLimit| {
            let address = self.addresses.address_hashed(limit.id, key, hashed);
            with_params_id(address.tag, limit.params_id)
        };
        if let Some(slots) = self.shared.locations.narrow[home_shard].beyond_caches() {
            // All cells at once, and before the lock, so that cache misses overlap.
            limits.iter().for_each(|limit| slots.prefetch(|len| home::<1>(tag_of(limit), len)));
        }
        let shard = lock(&self.shards[home_shard].0);
        let slots = &*shard.narrow.slots;
        let mut plans = [SlotPlan::NONE; MAX];
        let plans = plans.get_mut(..limits.len())?;
        let (mut seen, mut repeated) = (0_u64, 0);
        for (plan, limit) in plans.iter_mut().zip(limits) {
            let slot = find_exact(slots, tag_of(limit))?;
            plan.slot = Some(slot);
            plan.word = slot.words[0].load(Ordering::Relaxed);
            // One bit of the slot's address, which mostly shows that no two slots are one.
            let bit = 1 << (ptr::from_ref(slot).addr() / size_of::<Slot<1>>() % 64);
            repeated |= seen & bit;
            seen |= bit;
        }
        // Limits with the same hash share a slot, and one plan must not overwrite the other.
        if repeated != 0 && has_shared_slot(plans) {
            return None;
        }
        for (plan, limit) in plans.iter_mut().zip(limits) {
            if !limit.params_id.is_grouped() {
                return None;
            }
            let admitted = by_one_word!(
                &limit.params,
                params => plan.take(params, now_us, cost)?,
                else return None
            );
            if !admitted {
                return refuse_together(now_us, cost, limits, plans).map(conclude);
            }
        }
        let (mut tightest, mut least) = (0, u64::MAX);
        for (n, plan) in plans.iter().enumerate() {
            plan.slot?.words[0].store(plan.word, Ordering::Release);
            if plan.remaining < least {
                (tightest, least) = (n, plan.remaining);
            }
        }
        let SlotPlan { limit, remaining, reset_after_us, .. } = *plans.get(tightest)?;
        drop(shard);
        let mut outcome = Outcome::admitting(limit);
        (outcome.remaining, outcome.reset_after_us) = (remaining, reset_after_us);
        Some(conclude(Answer::without_receipt(outcome)))
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
        let slot = find_exact(&self.wide.slots, tag)?;
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

/// Whether two plans are for one slot.
#[cold]
fn has_shared_slot(plans: &[SlotPlan<'_>]) -> bool {
    let address = |plan: &SlotPlan<'_>| plan.slot.map(ptr::from_ref);
    let shared = |(n, plan)| plans[..n].iter().any(|before| address(before) == address(plan));
    plans.iter().enumerate().any(shared)
}

/// The answer if one of the limits refuses. Its figures are those of the tightest.
#[cold]
#[inline(never)]
fn refuse_together(
    now_us: u64,
    cost: u64,
    limits: &[RegisteredLimit],
    plans: &[SlotPlan<'_>],
) -> Option<Answer> {
    let mut tightest: Option<Outcome> = None;
    for (limit, plan) in limits.iter().zip(plans) {
        let word = plan.slot?.words[0].load(Ordering::Relaxed);
        let (outcome, _) = by_one_word!(
            &limit.params,
            params => plan_word(params, word, now_us, cost)?,
            else return None
        );
        if tightest.is_none_or(|before| rank(&outcome) < rank(&before)) {
            tightest = Some(outcome);
        }
    }
    tightest.map(Answer::without_receipt)
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

fn rank(outcome: &Outcome) -> impl Ord + use<> {
    tightness(!outcome.admitted, outcome.retry_after_us, outcome.remaining)
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
