//! Cells whose state is in the slab: what does not fit into words, and keys with refusals to
//! remember.

use super::ShardContext;
use super::pack::{Inline, SPILLED, by_algorithm};
use super::shard::{CellPosition, Shard, is_wide};
use super::slab::{Slab, SpilledCell};
use super::table::{CellTable, Slot};
use crate::{Answer, Charge, Origin, ParamsId};
use tollgate_core::{Algorithm, Intent, LimitParams, LimitState, Penalty, Receipt};

impl Shard {
    /// Counts a refusal. Returns the end of the block that it starts, if it starts one. Room for
    /// the spilled cell must be there.
    pub(crate) fn count_refusal(
        &mut self,
        shared: &ShardContext,
        found: CellPosition,
        tag: u64,
        charge: &Charge<'_>,
        penalty: &Penalty,
        now_us: u64,
    ) -> Option<u64> {
        let at = self.spill_found(shared, found, tag, charge);
        let spilled = self.slab.get_mut(at)?;
        let (_, mut state) = spilled.penalty.unwrap_or((*penalty, Default::default()));
        let end_us = penalty.count(&mut state, now_us);
        spilled.penalty = Some((*penalty, state));
        end_us
    }

    /// Blocks the key until then, or ends its blocks. Room for the spilled cell must be there.
    pub(crate) fn set_block(
        &mut self,
        shared: &ShardContext,
        found: CellPosition,
        tag: u64,
        charge: &Charge<'_>,
        until_us: Option<u64>,
    ) {
        let at = match (found, until_us) {
            (CellPosition::Absent | CellPosition::Inline(_), None) => return,
            _ => self.spill_found(shared, found, tag, charge),
        };
        if let Some(spilled) = self.slab.get_mut(at) {
            match until_us {
                Some(until_us) => {
                    spilled.blocked_until_us = spilled.blocked_until_us.max(until_us);
                }
                None => (spilled.blocked_until_us, spilled.penalty) = (0, None),
            }
        }
    }

    /// Where the key's cell is in the slab, once it is there.
    fn spill_found(
        &mut self,
        shared: &ShardContext,
        found: CellPosition,
        tag: u64,
        charge: &Charge<'_>,
    ) -> u32 {
        match found {
            CellPosition::Spilled(at) => at,
            CellPosition::Absent => self.spill(shared, tag, charge, LimitState::New),
            CellPosition::Inline(_) => {
                let state = by_algorithm!(
                    charge.params,
                    algorithm => widened(algorithm, self.state_of(shared, algorithm, found, charge.params_id)),
                    else LimitState::New
                );
                self.spill(shared, tag, charge, state)
            }
        }
    }

    /// Puts `state` into the slab and lets the key's slot point there. New keys have asked for room
    /// before. Known ones get here by a debt, a penalty or another tier, and may take memory beyond
    /// the cap for it, since losing their state would let them start afresh.
    pub(super) fn spill(
        &mut self,
        shared: &ShardContext,
        tag: u64,
        charge: &Charge<'_>,
        state: LimitState,
    ) -> u32 {
        fn typed<const W: usize>(table: &mut CellTable<W>, tag: u64, at: u32) {
            let mut words = [0; W];
            words[0] = SPILLED | u64::from(at);
            match table.find(tag) {
                Some(slot) => table.slot_mut(slot).set(ParamsId::default(), words),
                None => table.insert(Slot { tag, words }),
            }
        }
        if self.slab.room() == 0 {
            let grown = self.slab.grow((self.slab.capacity() / 4).max(4));
            shared.budget.take(grown * Slab::ENTRY_BYTES);
        }
        let spilled = SpilledCell::new(tag, *charge.params, state);
        shared.budget.take(spilled.heap_bytes());
        let at = self.slab.insert(spilled);
        match is_wide(charge.params) {
            true => typed(&mut self.wide, tag, at),
            false => typed(&mut self.narrow, tag, at),
        }
        at
    }

    pub(super) fn decide_spilled(
        &self,
        at: u32,
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
    ) -> Answer {
        let Charge { params, cost, mode, penalty, .. } = *charge;
        let Some(spilled) = self.slab.get(at) else {
            let outcome = params.decide(&LimitState::New, now_us, cost, intent);
            return Answer { outcome, blocked: false, receipt: None, origin: Origin::State };
        };
        let block = match mode.is_enforced() {
            true => spilled.block_us(penalty, now_us),
            false => None,
        };
        let intent = if block.is_some() { Intent::Peek } else { intent };
        let mut answer = Answer {
            outcome: params.decide(&spilled.state, now_us, cost, intent),
            blocked: false,
            receipt: None,
            origin: Origin::State,
        };
        if let Some(end_us) = block {
            answer.show_block(end_us - now_us);
        }
        answer
    }

    pub(super) fn charge_spilled(
        &mut self,
        shared: &ShardContext,
        at: u32,
        charge: &Charge<'_>,
        now_us: u64,
        units: u64,
    ) -> Receipt {
        let Some(spilled) = self.slab.get_mut(at) else {
            return Receipt::default();
        };
        let before = spilled.heap_bytes();
        if let LimitState::ExpiryLog(ledger) = &mut spilled.state
            && ledger.len() * size_of::<(u64, u64)>() >= before
            && before > 0
        {
            match shared.budget.try_take(before) {
                true => shared.budget.release(before),
                false => ledger.merge_two_earliest(),
            }
        }
        let receipt = charge.params.charge(&mut spilled.state, now_us, units);
        spilled.params = *charge.params;
        let after = spilled.heap_bytes();
        shared.budget.take(after.saturating_sub(before));
        shared.budget.release(before.saturating_sub(after));
        receipt
    }
}

fn widened<A: Inline<W>, const W: usize>(_: &A, state: A::State) -> LimitState {
    A::widen(state)
}
