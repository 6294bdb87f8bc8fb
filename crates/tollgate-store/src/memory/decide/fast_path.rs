//! The fast path: a known key with an inline cell, written under the same params.
//!
//! It combines [`find_and_redate`](Shard::find_and_redate), [`decide`](Shard::decide) and
//! [`charge`](Shard::charge), so that the cell and the algorithm are found once. Everything else is
//! left to these three. Among several limits, some may be in the slab.

use super::multi::ChargeCell;
use crate::memory::shard::pack::{Inline, SPILLED, by_algorithm};
use crate::memory::shard::{CellPosition, HasTable, Shard, is_wide};
use crate::memory::table::prefetch_hints::{LINE, SlotHint};
use crate::memory::{MemoryStore, ShardContext};
use crate::raw::prefetch::prefetch;
use crate::sync::lock;
use crate::{Answer, Answers, Charge, Origin};
use tollgate_core::{Algorithm, Intent, LimitParams};

/// What a charge writes once all limits of its request have admitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingWrite {
    /// The slot, until a cell is added or removed.
    at: usize,
    /// The words to write, or the word of a spilled cell to charge.
    words: [u64; 2],
}

impl PendingWrite {
    pub(crate) const NOTHING: Self = Self { at: usize::MAX, words: [0; 2] };
}

/// The effect of one charge on its cell.
struct CellUpdate<const W: usize> {
    at: usize,
    /// The cell's words afterwards.
    words: [u64; W],
    /// Whether the limit alone admits.
    admitted: bool,
}

impl Shard {
    /// Decides a request with one charge; `None`, with nothing changed, if the fast path does not
    /// apply.
    #[inline(always)]
    pub(crate) fn decide_fast<A: Inline<W>, const W: usize>(
        &mut self,
        algorithm: &A,
        (tag, hint): (u64, SlotHint),
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
        answers: &mut Answers,
    ) -> Option<()>
    where
        Self: HasTable<W>,
    {
        let at = self.table().find_with_hint(hint, tag)?;
        let CellUpdate { at, words, admitted } =
            self.cell_update(algorithm, at, charge, now_us, intent, answers)?;
        self.table_and_slab().0.slot_mut(at).words = words;
        answers.finish(admitted || !charge.mode.is_enforced());
        Some(())
    }

    /// Adds the row of one charge among several, and plans its write. Returns whether the limit
    /// alone admits.
    #[inline(always)]
    pub(crate) fn plan_fast(
        &mut self,
        (tag, hint): (u64, SlotHint),
        charge: &Charge<'_>,
        now_us: u64,
        answers: &mut Answers,
        pending: &mut PendingWrite,
    ) -> Option<bool> {
        by_algorithm!(
            charge.params,
            algorithm => self.plan_inline(algorithm, (tag, hint), charge, now_us, answers, pending),
            else match self.find(charge.params, tag) {
                CellPosition::Spilled(at) => self.plan_spilled(at, charge, now_us, answers, pending),
                _ => None,
            }
        )
    }

    /// Writes what was planned. A spilled cell is charged only now, so its row gets the receipt
    /// here.
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
        if is_wide(charge.params) {
            self.wide.slot_mut(at).words = [first, second];
        } else {
            self.narrow.slot_mut(at).words = [first];
        }
    }

    #[inline(never)]
    fn plan_inline<A: Inline<W>, const W: usize>(
        &mut self,
        algorithm: &A,
        (tag, hint): (u64, SlotHint),
        charge: &Charge<'_>,
        now_us: u64,
        answers: &mut Answers,
        pending: &mut PendingWrite,
    ) -> Option<bool>
    where
        Self: HasTable<W>,
    {
        let at = self.table().find_with_hint(hint, tag)?;
        let first = self.table().slot(at).words[0];
        if first & SPILLED != 0 {
            return self.plan_spilled(first as u32, charge, now_us, answers, pending);
        }
        let update = self.cell_update(algorithm, at, charge, now_us, Intent::Take, answers)?;
        pending.at = update.at;
        pending.words.iter_mut().zip(update.words).for_each(|(word, after)| *word = after);
        Some(update.admitted)
    }

    /// Plans the charge of a spilled cell; `None` unless its limit admits.
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

    /// Adds the row of a charge and returns the words to write. Changes no cell.
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
        // Pushed here, where its fields are in registers: returning it would copy it three times.
        let receipt = Some(receipt);
        answers.push(Answer { outcome, blocked: false, receipt, origin: Origin::State });
        Some(CellUpdate { at, words, admitted: true })
    }
}

/// Adds the row of a charge that [`Algorithm::take`] does not take: it is refused, costs nothing,
/// or has uncommon params.
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
    /// Decides a request with a few charges on one key, if the fast path applies to all and all
    /// admit. `None` otherwise; then only rows were added.
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
        // The shard's second cache line has the header of the wide table.
        let line = std::ptr::from_ref(shard).addr();
        prefetch(line);
        prefetch(line + LINE);
        let mut cells = [(0, SlotHint::default()); ChargeCell::INLINE_FEW];
        for (cell, charge) in cells.iter_mut().zip(charges) {
            if !std::ptr::eq(charge.key, key) && charge.key != key {
                return None;
            }
            let address = self.addresses.address_hashed(charge.limit, key, &hashed);
            let hint = self.shared.table_hints.prefetch(address, is_wide(charge.params));
            *cell = (address.tag, hint);
        }
        let mut shard = lock(&shard.0);
        let mut pending = [PendingWrite::NOTHING; ChargeCell::INLINE_FEW];
        for (n, ((pending, &cell), charge)) in
            pending.iter_mut().zip(&cells).zip(charges).enumerate()
        {
            let admitted = shard.plan_fast(cell, charge, now_us, answers, pending)?;
            // After a refusal nothing is taken, so rows would show wrong numbers. Two limits with
            // the same hash share a cell, and one write must not overwrite the other.
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
