//! Decides limits on one known key with the one lock of its shard: several limits together, or
//! state beyond a word.
//!
//! Words of grouped limits are read and written under the lock only. So their holder charges one
//! after the other, and gives all words back if a later limit refuses: no other thread sees a part.

use crate::memory::MemoryStore;
use crate::memory::shard::Shard;
use crate::memory::shard::pack::{PackedState, WordsTaken, match_one_word, match_packed};
use crate::memory::shard::slab::SpilledCell;
use crate::memory::table::{find_exact, find_exact_or, home, is_inline};
use crate::raw::slots::Slot;
use crate::sync::{Ordering, lock, unlikely};
use crate::{Answer, Clock, ParamsId, RegisteredLimit};
use tollgate_core::algorithm::Taken;
use tollgate_core::header::tightness;
use tollgate_core::{LimitParams, LimitState, Outcome};

/// A cell that a request has charged, and its word before.
type ChargedSlot<'a> = (Option<&'a Slot<1>>, u64);

/// The limit that the answer to an admission shows.
struct Tightest {
    limit: u64,
    remaining: u64,
    reset_after_us: u64,
}

/// Cache lines that the cells of a group take, mostly.
const GROUP_LINES: usize = 3;
/// Limits of most groups: few, so that little stack is cleared.
const GROUP_FEW: usize = 4;
/// Limits of a group, at most.
const GROUP_MAX: usize = 16;

impl MemoryStore {
    /// See [`Store::decide_together`](crate::Store::decide_together).
    #[inline]
    pub(crate) fn decide_known<T>(
        &self,
        clock: impl Clock,
        key: &[u8],
        cost: u64,
        limits: &[RegisteredLimit],
        conclude: impl FnOnce(Answer) -> T,
    ) -> Option<T> {
        match limits {
            [limit] => self.take_locked(clock.now_us(), key, cost, limit).map(conclude),
            few if few.len() <= GROUP_FEW => {
                self.take_together::<GROUP_FEW, T>(clock, key, cost, few, conclude)
            }
            many => self.take_together::<GROUP_MAX, T>(clock, key, cost, many, conclude),
        }
    }

    /// Takes `cost` from all limits, or from none.
    #[inline(always)]
    fn take_together<const MAX: usize, T>(
        &self,
        clock: impl Clock,
        key: &[u8],
        cost: u64,
        limits: &[RegisteredLimit],
        conclude: impl FnOnce(Answer) -> T,
    ) -> Option<T> {
        // Limits without a key are in different shards.
        if key.is_empty() || limits.len() > MAX {
            return None;
        }
        let hashed = self.addresses.hash(key);
        let home_shard = self.addresses.shard_hashed(hashed);
        let tag_of = |limit: &RegisteredLimit| {
            let address = self.addresses.address_hashed(limit.id, key, hashed);
            address.tag_with(limit.params_id)
        };
        if let Some(slots) = self.shared.locations.narrow[home_shard].beyond_caches() {
            // Before the lock, so that cache misses overlap. Limits on one key have one home.
            slots.prefetch_lines(GROUP_LINES, |len| home::<1>(hashed, len));
        }
        let now_us = clock.now_us();
        let shard = lock(&self.shards[home_shard].0);
        let slots = &*shard.narrow.slots;
        let mut charged: [ChargedSlot<'_>; MAX] = [(None, 0); MAX];
        let mut tightest = Tightest { limit: 0, remaining: u64::MAX, reset_after_us: 0 };
        let mut guess = home::<1>(hashed, slots.len());
        for (limit, kept) in limits.iter().zip(&mut charged) {
            let taken = find_exact_or(slots, tag_of(limit), guess).and_then(|(at, slot)| {
                // Cells that were added together are side by side.
                guess = at + 1;
                let word = slot.words[0].load(Ordering::Relaxed);
                let outcome = take_word(slot, word, limit, now_us, cost)?;
                *kept = (Some(slot), word);
                Some(outcome)
            });
            match taken {
                Some(outcome) if outcome.admitted => {
                    if outcome.remaining < tightest.remaining {
                        // Otherwise, figures of both branches are moved in every turn of the loop.
                        unlikely();
                        let Outcome { limit, remaining, reset_after_us, .. } = outcome;
                        tightest = Tightest { limit, remaining, reset_after_us };
                    }
                }
                taken => {
                    undo(&charged);
                    taken?;
                    return refuse_together(now_us, cost, limits, slots, tag_of).map(conclude);
                }
            }
        }
        drop(shard);
        let Tightest { limit, remaining, reset_after_us } = tightest;
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
            let tag = address.tag_with(*params_id);
            return shard.take_two_words(bucket, tag, now_us, cost);
        }
        let at = shard.narrow.spilled_exact(address.tag())?;
        let spilled = shard.slab.get_mut(at)?;
        if spilled.penalty.is_some() || spilled.blocked_until_us > 0 {
            return None;
        }
        let SpilledCell { params: written, state, .. } = spilled;
        match_packed!(
            params,
            algorithm => take_typed(algorithm, written, state, now_us, cost),
            else None
        )
    }
}

impl Shard {
    fn take_two_words(
        &mut self,
        algorithm: &impl PackedState<2>,
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

/// Takes `cost` from one limit. `None`, with nothing changed, if only the locked path can tell.
#[inline(always)]
fn take_word(
    slot: &Slot<1>,
    word: u64,
    limit: &RegisteredLimit,
    now_us: u64,
    cost: u64,
) -> Option<Outcome> {
    if !limit.params_id.is_grouped() {
        return None;
    }
    let (outcome, after) = match &limit.params {
        LimitParams::Gcra(params) => plan_word(params, word, now_us, cost)?,
        LimitParams::SlidingWindow(params) => plan_word(params, word, now_us, cost)?,
        params => plan_any_word(params, word, now_us, cost)?,
    };
    slot.words[0].store(after, Ordering::Release);
    Some(outcome)
}

/// Gives the cells their words back: backwards, since limits with the same hash share one.
#[cold]
#[inline(never)]
fn undo(charged: &[ChargedSlot<'_>]) {
    for (slot, word) in charged.iter().rev() {
        if let Some(slot) = slot {
            slot.words[0].store(*word, Ordering::Release);
        }
    }
}

/// The answer if one of the limits refuses. Its figures are those of the tightest. `None` if each
/// would admit by itself: then limits share a cell.
#[inline(never)]
fn refuse_together(
    now_us: u64,
    cost: u64,
    limits: &[RegisteredLimit],
    slots: &[Slot<1>],
    tag_of: impl Fn(&RegisteredLimit) -> u64,
) -> Option<Answer> {
    let mut tightest: Option<Outcome> = None;
    for limit in limits {
        let word = find_exact(slots, tag_of(limit))?.words[0].load(Ordering::Relaxed);
        let (outcome, _) = plan_any_word(&limit.params, word, now_us, cost)?;
        if tightest.is_none_or(|before| rank(&outcome) < rank(&before)) {
            tightest = Some(outcome);
        }
    }
    tightest.filter(|outcome| !outcome.admitted).map(Answer::without_receipt)
}

/// [`plan_word`] of any algorithm.
// Not inlined: code of all algorithms would not leave enough registers for the loop around it.
#[inline(never)]
fn plan_any_word(
    params: &LimitParams,
    word: u64,
    now_us: u64,
    cost: u64,
) -> Option<(Outcome, u64)> {
    match_one_word!(params, params => plan_word(params, word, now_us, cost), else None)
}

/// The outcome of a limit, and its word after the charge.
#[inline(always)]
fn plan_word(
    algorithm: &impl PackedState<1>,
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
fn take_typed<A: PackedState<W>, const W: usize>(
    algorithm: &A,
    written: &mut LimitParams,
    state: &mut LimitState,
    now_us: u64,
    cost: u64,
) -> Option<Answer> {
    let (written, state) = (A::of_mut(written)?, A::state_of(state)?);
    let taken = match algorithm.take_fast(state, now_us, cost) {
        Some(taken) => taken,
        None => take_slow(algorithm, state, now_us, cost)?,
    };
    let outcome = match taken {
        Taken::Charged(outcome, _) => {
            *written = *algorithm;
            outcome
        }
        Taken::Refused(outcome) => outcome,
    };
    Some(Answer::without_receipt(without_more(outcome)))
}

/// Takes what [`PackedState::take_fast`] leaves.
#[cold]
#[inline(never)]
fn take_slow<A: PackedState<W>, const W: usize>(
    algorithm: &A,
    state: &mut A::State,
    now_us: u64,
    cost: u64,
) -> Option<Taken> {
    algorithm.redate(state, now_us);
    algorithm.take(state, now_us, cost)
}

/// The outcome without a figure that costs a division and that limiters do not show.
#[inline(always)]
const fn without_more(mut outcome: Outcome) -> Outcome {
    outcome.more_after_us = None;
    outcome
}
