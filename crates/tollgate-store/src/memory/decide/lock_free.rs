//! Decides a known key without its lock: one read for a refusal or a peek, one swap for a charge.

use crate::memory::MemoryStore;
use crate::memory::shard::pack::Inline;
use crate::memory::table::address::CellAddress;
use crate::memory::table::{find_exact, is_inline, with_params_id};
use crate::raw::pin::pin;
use crate::sync::Ordering;
use crate::{Answer, Charge, ParamsId};
use tollgate_core::{Intent, LimitParams};

impl MemoryStore {
    /// Decides a request with one charge and calls `conclude`; returns `conclude`, with nothing
    /// changed, if that needs the lock: for a new key, state beyond one word, other params, a debt,
    /// a violation, or a word that the lock's holder has taken.
    #[inline(always)]
    pub(crate) fn decide_lock_free<T, F: FnOnce(Answer) -> T>(
        &self,
        address: CellAddress,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        conclude: F,
    ) -> Result<T, F> {
        match charge.params {
            LimitParams::Gcra(params) => {
                self.swap(params, address, now_us, charge, intent, conclude)
            }
            LimitParams::SlidingWindow(params) => {
                self.swap(params, address, now_us, charge, intent, conclude)
            }
            LimitParams::FixedWindow(params) => {
                self.swap(params, address, now_us, charge, intent, conclude)
            }
            LimitParams::LeakyBucket(params) => {
                self.swap(params, address, now_us, charge, intent, conclude)
            }
            LimitParams::CalendarWindow(params) => {
                self.swap(params, address, now_us, charge, intent, conclude)
            }
            _ => Err(conclude),
        }
    }

    // `conclude` is called at every exit, not after them: answers that meet in one place go through
    // memory, with receipts that most callers drop.
    #[inline(always)]
    fn swap<A: Inline<1>, T, F: FnOnce(Answer) -> T>(
        &self,
        algorithm: &A,
        address: CellAddress,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        conclude: F,
    ) -> Result<T, F> {
        if charge.params_id == ParamsId::default() || charge.mode.owed().is_some() {
            return Err(conclude);
        }
        let pin = pin();
        let Some(location) = self.shared.locations.narrow.get(address.shard) else {
            return Err(conclude);
        };
        let tag = with_params_id(address.tag, charge.params_id);
        let Some(slot) = find_exact(location.read(&pin), tag) else { return Err(conclude) };
        let mut word = slot.words[0].load(Ordering::Acquire);
        loop {
            if !is_inline(word) {
                return Err(conclude);
            }
            let mut state = algorithm.unpack([word]);
            if algorithm.redate(&mut state, now_us) {
                return Err(conclude);
            }
            let taken = match intent {
                Intent::Take => algorithm.take(&mut state, now_us, charge.cost),
                Intent::Peek => None,
            };
            let (outcome, receipt) = match taken {
                Some(taken) => taken,
                None => {
                    let outcome = algorithm.decide(&state, now_us, charge.cost, intent);
                    if intent == Intent::Take && !outcome.admitted && charge.penalty.is_some() {
                        return Err(conclude);
                    }
                    if !outcome.admitted || intent == Intent::Peek || charge.cost == 0 {
                        drop(pin);
                        return Ok(conclude(Answer::without_receipt(outcome)));
                    }
                    (outcome, algorithm.charge(&mut state, now_us, charge.cost))
                }
            };
            let Some([after]) = algorithm.pack(&state) else { return Err(conclude) };
            let (done, seen) = (Ordering::AcqRel, Ordering::Acquire);
            match slot.words[0].compare_exchange_weak(word, after, done, seen) {
                Ok(_) => {
                    drop(pin);
                    return Ok(conclude(Answer::with_receipt(outcome, receipt)));
                }
                Err(other) => word = other,
            }
        }
    }
}
