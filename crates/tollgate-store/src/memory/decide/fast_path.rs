//! The usual case, in one go: a known key whose cell is in words, written under the same numbers.
//! Of several limits some may have theirs in the slab.
//!
//! It does what [`find_and_redate`](Shard::find_dated), [`decide`](Shard::decide) and
//! [`charge`](Shard::charge) do one after the other, without asking three times where the cell is
//! and which algorithm it is of. Whatever is unusual is left to them.

use super::multi::ChargeCell;
use crate::memory::shard::pack::{Inline, SPILLED, by_algorithm};
use crate::memory::shard::{CellPosition, HasTable, Shard, is_wide};
use crate::memory::table::prefetch_hints::{LINE, SlotHint};
use crate::memory::{MemoryStore, ShardContext};
use crate::raw::prefetch::prefetch;
use crate::sync::lock;
use crate::{Answer, Answers, Charge, Origin};
use tollgate_core::{Algorithm, Intent, LimitParams};

/// What a request with several charges will write once all of its limits have spoken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingWrite {
    /// The slot, as long as no cell is added or taken away.
    at: usize,
    /// Its words afterwards; those that the cell does not have are zero. Or the word of a spilled
    /// cell, which is charged then.
    words: [u64; 2],
}

impl PendingWrite {
    pub(crate) const NOTHING: Self = Self { at: usize::MAX, words: [0; 2] };
}

/// What one charge would do to its cell.
struct CellUpdate<const W: usize> {
    at: usize,
    /// The cell's words afterwards.
    words: [u64; W],
    /// Whether the limit alone admits.
    admitted: bool,
}

impl Shard {
    /// Answers a request with one charge, or says that this is not the usual case; then nothing has
    /// changed.
    #[inline(always)]
    pub(crate) fn decide_fast<A: Inline<W>, const W: usize>(
        &mut self,
        algorithm: &A,
        (tag, guess): (u64, SlotHint),
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
        answers: &mut Answers,
    ) -> Option<()>
    where
        Self: HasTable<W>,
    {
        let at = self.table().find_with_hint(guess, tag)?;
        let CellUpdate { at, words, admitted } =
            self.cell_update(algorithm, at, charge, now_us, intent, answers)?;
        self.table_and_slab().0.slot_mut(at).words = words;
        answers.finish(admitted || !charge.mode.is_enforced());
        Some(())
    }

    /// Adds the row of one charge among several, notes what an admission of all would write, and
    /// says whether the limit alone admits.
    #[inline(always)]
    pub(crate) fn plan_fast(
        &mut self,
        (tag, guess): (u64, SlotHint),
        charge: &Charge<'_>,
        now_us: u64,
        answers: &mut Answers,
        pending: &mut PendingWrite,
    ) -> Option<bool> {
        by_algorithm!(
            charge.params,
            algorithm => self.plan_inline(algorithm, (tag, guess), charge, now_us, answers, pending),
            else match self.find(charge.params, tag) {
                CellPosition::Spilled(at) => self.plan_spilled(at, charge, now_us, answers, pending),
                _ => None,
            }
        )
    }

    /// Does what was pending. What a cell in the slab gave for it is in its row only then.
    #[inline]
    pub(crate) fn commit_plan(
        &mut self,
        shared: &ShardContext,
        charge: &Charge<'_>,
        now_us: u64,
        pending: PendingWrite,
        row: &mut Answer,
    ) {
        let PendingWrite { at, words: [first, second] } = pending;
        if first & SPILLED != 0 {
            if charge.cost > 0 {
                let cost = charge.cost;
                row.receipt = Some(self.charge_spilled(shared, first as u32, charge, now_us, cost));
            }
            return;
        }
        match is_wide(charge.params) {
            true => self.wide.slot_mut(at).words = [first, second],
            false => self.narrow.slot_mut(at).words = [first],
        }
    }

    #[inline(never)]
    fn plan_inline<A: Inline<W>, const W: usize>(
        &mut self,
        algorithm: &A,
        (tag, guess): (u64, SlotHint),
        charge: &Charge<'_>,
        now_us: u64,
        answers: &mut Answers,
        pending: &mut PendingWrite,
    ) -> Option<bool>
    where
        Self: HasTable<W>,
    {
        let at = self.table().find_with_hint(guess, tag)?;
        let first = self.table().slot(at).words[0];
        if first & SPILLED != 0 {
            return self.plan_spilled(first as u32, charge, now_us, answers, pending);
        }
        let asked = self.cell_update(algorithm, at, charge, now_us, Intent::Take, answers)?;
        pending.at = asked.at;
        pending.words.iter_mut().zip(asked.words).for_each(|(word, after)| *word = after);
        Some(asked.admitted)
    }

    /// The same for a cell in the slab, where the limit admits.
    fn plan_spilled(
        &mut self,
        at: u32,
        charge: &Charge<'_>,
        now_us: u64,
        answers: &mut Answers,
        pending: &mut PendingWrite,
    ) -> Option<bool> {
        if charge.mode.owed().is_some() {
            return None;
        }
        charge.params.redate(&mut self.slab.get_mut(at)?.state, now_us);
        let answer = self.decide_spilled(at, charge, now_us, Intent::Take);
        if !answer.outcome.admitted {
            return None;
        }
        answers.push(answer);
        pending.words[0] = SPILLED | u64::from(at);
        Some(true)
    }

    /// Adds the row, and says what it would write. Changes nothing else.
    #[inline(always)]
    fn cell_update<A: Inline<W>, const W: usize>(
        &self,
        algorithm: &A,
        at: usize,
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
        answers: &mut Answers,
    ) -> Option<CellUpdate<W>>
    where
        Self: HasTable<W>,
    {
        if intent == Intent::Peek || charge.mode.owed().is_some() {
            return None;
        }
        let table = self.table();
        let words = table.slot(at).words;
        if words[0] & SPILLED != 0 || table.slot(at).params_id() != charge.params_id {
            return None;
        }
        let mut state = algorithm.unpack(words);
        if algorithm.redate(&mut state, now_us) {
            return None;
        }
        let Some((outcome, receipt)) = algorithm.take(&mut state, now_us, charge.cost) else {
            let (words, admitted) =
                decide_without_take(algorithm, state, words, charge, now_us, answers)?;
            return Some(CellUpdate { at, words, admitted });
        };
        let words = algorithm.pack(&state)?;
        // Here, where its parts are still in registers: handing it up would copy it field by field
        // three times.
        answers.push(Answer {
            outcome,
            blocked: false,
            receipt: Some(receipt),
            origin: Origin::State,
        });
        Some(CellUpdate { at, words, admitted: true })
    }
}

/// Adds the row of a charge that cannot be taken in one go: it is refused, has to wait, or has
/// unwieldy numbers.
#[inline(never)]
fn decide_without_take<A: Inline<W>, const W: usize>(
    algorithm: &A,
    mut state: A::State,
    mut words: [u64; W],
    charge: &Charge<'_>,
    now_us: u64,
    answers: &mut Answers,
) -> Option<([u64; W], bool)> {
    let outcome = algorithm.decide(&state, now_us, charge.cost, Intent::Take);
    let mut receipt = None;
    if !outcome.admitted && charge.penalty.is_some() {
        return None;
    }
    if outcome.admitted && charge.cost > 0 {
        receipt = Some(algorithm.charge(&mut state, now_us, charge.cost));
        words = algorithm.pack(&state)?;
    }
    answers.push(Answer { outcome, blocked: false, receipt, origin: Origin::State });
    Some((words, outcome.admitted))
}

impl MemoryStore {
    /// Decides a request with a few charges on one key that are all in the [usual
    /// case](super::fast_path) and all admitted, each found and computed once. Otherwise nothing has
    /// changed but the rows.
    #[inline(never)]
    pub(crate) fn decide_one_key_fast(
        &self,
        now_us: u64,
        charges: &[Charge<'_>],
        intent: Intent,
        answers: &mut Answers,
    ) -> Option<()> {
        let key = charges.first()?.key;
        if key.is_empty() || charges.len() > ChargeCell::INLINE_FEW || intent == Intent::Peek {
            return None;
        }
        let hashed = self.addresses.hash(key);
        let shard = &self.shards[self.addresses.shard(&hashed)];
        // Its second line has the header of the other table.
        let line = std::ptr::from_ref(shard).addr();
        prefetch(line);
        prefetch(line + LINE);
        let mut cells = [(0, SlotHint::default()); ChargeCell::INLINE_FEW];
        for (cell, charge) in cells.iter_mut().zip(charges) {
            if !std::ptr::eq(charge.key, key) && charge.key != key {
                return None;
            }
            let address = self.addresses.address_hashed(charge.limit, key, &hashed);
            let guess = self.shared.table_hints.prefetch(address, is_wide(charge.params));
            *cell = (address.tag, guess);
        }
        let mut shard = lock(&shard.0);
        let mut pending = [PendingWrite::NOTHING; ChargeCell::INLINE_FEW];
        for (n, ((pending, &cell), charge)) in
            pending.iter_mut().zip(&cells).zip(charges).enumerate()
        {
            let admitted = shard.plan_fast(cell, charge, now_us, answers, pending)?;
            // After a refusal nothing is taken, so the rows have to show the numbers of now. And
            // two limits that share all their bits share a cell: what one of them takes must not
            // overwrite what the other does.
            let refused = !admitted && charge.mode.is_enforced();
            if refused || cells[..n].iter().any(|other| other.0 == cell.0) {
                return None;
            }
        }
        let rows = answers.current_rows();
        for ((charge, &pending), row) in charges.iter().zip(&pending).zip(rows) {
            shard.commit_plan(&self.shared, charge, now_us, pending, row);
        }
        answers.finish(true);
        Some(())
    }
}
