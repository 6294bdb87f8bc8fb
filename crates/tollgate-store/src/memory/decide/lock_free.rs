//! Decides a known key without its lock: one read for a refusal or a peek, one swap for a charge.

use crate::memory::MemoryStore;
use crate::memory::shard::pack::{PackedState, WordsTaken, match_one_word};
use crate::memory::table::address::CellAddress;
use crate::memory::table::{find_exact, is_inline};
use crate::raw::pin::pin;
use crate::raw::slots::Slot;
use crate::sync::Ordering;
use crate::{Answer, Charge, Clock};
use tollgate_core::{Intent, LimitParams};

impl MemoryStore {
    /// Decides a request with one charge and calls `conclude`. Calls `otherwise`, with nothing
    /// changed, if that needs the lock: for a new key, state beyond one word, other params, a debt,
    /// a violation, or a word that the lock's holder has taken.
    // One of the two is called at every exit, not after them: answers that meet in one place go
    // through memory, with figures that most callers drop.
    #[inline(always)]
    pub(crate) fn decide_lock_free<T, F: FnOnce(Answer) -> T>(
        &self,
        address: CellAddress,
        clock: impl Clock,
        charge: &Charge<'_>,
        intent: Intent,
        conclude: F,
        otherwise: impl FnOnce(F) -> T,
    ) -> T {
        match_one_word!(
            charge.params,
            params => self.swap(params, address, clock, charge, intent, conclude, otherwise),
            else otherwise(conclude)
        )
    }

    #[expect(clippy::too_many_arguments, reason = "an algorithm decides the whole charge")]
    #[inline(always)]
    fn swap<A: PackedState<1>, T, F: FnOnce(Answer) -> T>(
        &self,
        algorithm: &A,
        address: CellAddress,
        clock: impl Clock,
        charge: &Charge<'_>,
        intent: Intent,
        conclude: F,
        otherwise: impl FnOnce(F) -> T,
    ) -> T {
        let (cost, counts_refusals) = (charge.cost, charge.penalty.is_some());
        if !charge.params_id.is_lock_free() || charge.mode.owed().is_some() {
            return otherwise(conclude);
        }
        let pin = pin();
        let Some(location) = self.shared.locations.narrow.get(address.shard) else {
            drop(pin);
            return otherwise(conclude);
        };
        let tag = address.tag_with(charge.params_id);
        let slots = location.read(&pin);
        let Some(slot) = find_exact(slots, tag) else {
            drop(pin);
            return otherwise(conclude);
        };
        let mut word = slot.words[0].load(Ordering::Acquire);
        // After the load, so that the two overlap: neither depends on the other.
        let now_us = clock.now_us();
        // Tried once. In a loop, the compiler would keep the params on the stack for the next turn;
        // `decide_slow` has the loop.
        if intent == Intent::Take && is_inline(word) {
            match algorithm.take_words_fast([word], now_us, cost) {
                Some(WordsTaken::Charged([after], outcome, receipt)) => {
                    match swap_word(slot, word, after) {
                        Ok(_) => {
                            drop(pin);
                            return conclude(Answer::with_receipt(outcome, receipt));
                        }
                        Err(other) => word = other,
                    }
                }
                Some(WordsTaken::Refused(outcome)) if !counts_refusals => {
                    drop(pin);
                    return conclude(Answer::without_receipt(outcome));
                }
                _ => {}
            }
        }
        let decided = decide_slow(algorithm, slot, word, now_us, cost, intent);
        drop(pin);
        match decided {
            Some(answer)
                if answer.outcome.admitted || !counts_refusals || intent == Intent::Peek =>
            {
                conclude(answer)
            }
            _ => otherwise(conclude),
        }
    }
}

/// Decides what [`PackedState::take_words_fast`] leaves: the first request of a window, a peek, a
/// delay, a cost of zero or beyond the capacity, and a word that another thread has swapped.
#[cold]
#[inline(never)]
fn decide_slow<A: PackedState<1>>(
    algorithm: &A,
    slot: &Slot<1>,
    mut word: u64,
    now_us: u64,
    cost: u64,
    intent: Intent,
) -> Option<Answer> {
    loop {
        if !is_inline(word) {
            return None;
        }
        if intent == Intent::Take
            && let Some(taken) = algorithm.take_words([word], now_us, cost)
        {
            match taken {
                WordsTaken::Charged([after], outcome, receipt) => {
                    match swap_word(slot, word, after) {
                        Ok(_) => return Some(Answer::with_receipt(outcome, receipt)),
                        Err(other) => word = other,
                    }
                }
                WordsTaken::Refused(outcome) => return Some(Answer::without_receipt(outcome)),
            }
            continue;
        }
        let mut state = algorithm.unpack([word]);
        if algorithm.redate(&mut state, now_us) {
            return None;
        }
        let outcome = algorithm.decide(&state, now_us, cost, intent);
        if !outcome.admitted || intent == Intent::Peek || cost == 0 {
            return Some(Answer::without_receipt(outcome));
        }
        let receipt = algorithm.charge(&mut state, now_us, cost);
        let [after] = algorithm.pack(&state)?;
        match swap_word(slot, word, after) {
            Ok(_) => return Some(Answer::with_receipt(outcome, receipt)),
            Err(other) => word = other,
        }
    }
}

#[inline(always)]
fn swap_word(slot: &Slot<1>, before: u64, after: u64) -> Result<u64, u64> {
    slot.words[0].compare_exchange_weak(before, after, Ordering::AcqRel, Ordering::Acquire)
}
