//! The usual case, in one go: a known key whose cell is in words, written under the same numbers.
//!
//! It does what [`find_dated`](Shard::find_dated), [`decide`](Shard::decide) and [`charge`](Shard::charge) do one after the other,
//! without asking three times where the cell is and which algorithm it is of. Whatever is unusual is left to them.

use super::pack::{Inline, SPILLED, by_algorithm};
use super::shard::{Shard, Tables};
use crate::{Answer, Answers, Charge, Mode};
use tollgate_core::{Intent, Numbers};

impl Shard {
    /// Answers the request, or says that this is not the usual case; then nothing has changed.
    #[inline(always)]
    pub(super) fn decide_usual(
        &mut self,
        tag: u64,
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
        answers: &mut Answers,
    ) -> Option<()> {
        by_algorithm!(
            charge.numbers,
            algorithm => self.usual(algorithm, tag, charge, now_us, intent, answers),
            else None
        )
    }

    #[inline(never)]
    fn usual<A: Inline<W>, const W: usize>(
        &mut self,
        algorithm: &A,
        tag: u64,
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
        answers: &mut Answers,
    ) -> Option<()>
    where
        Self: Tables<W>,
    {
        let (table, _) = self.parts();
        let at = table.find(tag)?;
        let slot = table.slot_mut(at);
        if slot.words[0] & SPILLED != 0 || slot.ticket() != charge.ticket {
            return None;
        }
        let mut state = algorithm.unpack(slot.words);
        if algorithm.redate(&mut state, now_us) {
            return None;
        }
        let outcome = algorithm.decide(&state, now_us, charge.cost, intent);
        let mut receipt = None;
        if outcome.admitted {
            if intent == Intent::Take && charge.cost > 0 {
                receipt = Some(algorithm.charge(&mut state, now_us, charge.cost));
                slot.words = algorithm.pack(&state)?;
            }
        } else if charge.penalty.is_some() {
            return None;
        }
        // Here, where its parts are still in registers: handing it up would copy it field by field three times.
        answers.push(Answer { outcome, blocked: false, receipt });
        answers.finish(outcome.admitted || charge.mode == Mode::Shadow);
        Some(())
    }
}
