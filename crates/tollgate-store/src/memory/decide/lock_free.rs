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
    // `conclude` is inlined into each algorithm, where the answer is in registers.
    #[inline(always)]
    pub(crate) fn decide_lock_free<T, F: FnOnce(Answer) -> T>(
        &self,
        address: CellAddress,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        conclude: F,
    ) -> Result<T, F> {
        macro_rules! swap {
            ($params:expr) => {
                match self.swap($params, address, now_us, charge, intent) {
                    Some(answer) => Ok(conclude(answer)),
                    None => Err(conclude),
                }
            };
        }
        match charge.params {
            LimitParams::Gcra(params) => swap!(params),
            LimitParams::SlidingWindow(params) => swap!(params),
            LimitParams::FixedWindow(params) => swap!(params),
            LimitParams::LeakyBucket(params) => swap!(params),
            LimitParams::CalendarWindow(params) => swap!(params),
            _ => Err(conclude),
        }
    }

    #[inline(always)]
    fn swap<A: Inline<1>>(
        &self,
        algorithm: &A,
        address: CellAddress,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
    ) -> Option<Answer> {
        if charge.params_id == ParamsId::default() || charge.mode.owed().is_some() {
            return None;
        }
        let pin = pin();
        let slots = self.shared.locations.narrow.get(address.shard)?.read(&pin);
        let slot = find_exact(slots, with_params_id(address.tag, charge.params_id))?;
        let mut word = slot.words[0].load(Ordering::Acquire);
        loop {
            if !is_inline(word) {
                return None;
            }
            let mut state = algorithm.unpack([word]);
            if algorithm.redate(&mut state, now_us) {
                return None;
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
                        return None;
                    }
                    if !outcome.admitted || intent == Intent::Peek || charge.cost == 0 {
                        return Some(Answer::without_receipt(outcome));
                    }
                    (outcome, algorithm.charge(&mut state, now_us, charge.cost))
                }
            };
            let [after] = algorithm.pack(&state)?;
            let (done, seen) = (Ordering::AcqRel, Ordering::Acquire);
            match slot.words[0].compare_exchange_weak(word, after, done, seen) {
                Ok(_) => return Some(Answer::with_receipt(outcome, receipt)),
                Err(other) => word = other,
            }
        }
    }
}
