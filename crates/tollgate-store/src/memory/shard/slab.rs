//! The slab: states that do not fit a cell, with their params, penalties and blocks.

use super::pack::{PackedState, match_packed};
use super::{CellPosition, Shard, is_wide};
use crate::memory::ShardContext;
use crate::memory::table::{Cell, CellTable};
use crate::{Answer, Charge};
use tollgate_core::{Algorithm, Intent, LimitParams, LimitState, Penalty, Receipt, penalty};

/// A state in the slab.
#[derive(Clone, Debug)]
pub(crate) struct SpilledCell {
    /// The tag of the slot that points here.
    pub(crate) tag: u64,
    pub(crate) params: LimitParams,
    pub(crate) state: LimitState,
    pub(crate) penalty: Option<(Penalty, penalty::PenaltyState)>,
    /// The end of an operator's block; zero for none.
    pub(crate) blocked_until_us: u64,
}

impl SpilledCell {
    pub(crate) const fn new(tag: u64, params: LimitParams, state: LimitState) -> Self {
        Self { tag, params, state, penalty: None, blocked_until_us: 0 }
    }

    /// The end of the current block, by the penalty or an operator.
    pub(crate) fn block_us(&self, penalty: Option<&Penalty>, now_us: u64) -> Option<u64> {
        let by_penalty = penalty
            .zip(self.penalty.as_ref())
            .and_then(|(penalty, (_, state))| penalty.blocked_until_us(state, now_us));
        let by_operator = (now_us < self.blocked_until_us).then_some(self.blocked_until_us);
        by_penalty.max(by_operator)
    }

    /// Heap bytes beyond the entry itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.state {
            LimitState::ExpiryLog(log) => log.heap_bytes(),
            _ => 0,
        }
    }

    /// From when on neither the state nor the penalty matters.
    pub(crate) fn idle_at_us(&self) -> u64 {
        let state_us = self.params.idle_at_us(&self.state);
        state_us.max(self.penalty_idle_at_us())
    }

    /// From when on neither a violation nor a block matters.
    pub(crate) fn penalty_idle_at_us(&self) -> u64 {
        let penalty_us =
            self.penalty.as_ref().map_or(0, |(penalty, state)| penalty.idle_at_us(state));
        penalty_us.max(self.blocked_until_us)
    }
}

#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "free entries are few, and a box would miss the cache"
)]
enum SlabEntry {
    Used(SpilledCell),
    /// The next free entry.
    Free(Option<u32>),
}

/// A growing array of spilled cells with a free list.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    entries: Vec<SlabEntry>,
    free: Option<u32>,
    used: u32,
}

impl Slab {
    /// Bytes that an entry counts against the cap.
    pub(crate) const ENTRY_BYTES: usize = size_of::<SlabEntry>();

    pub(crate) const fn new() -> Self {
        Self { entries: Vec::new(), free: None, used: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.used as usize
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// Entries that fit without growing.
    pub(crate) const fn room(&self) -> usize {
        self.entries.capacity() - self.used as usize
    }

    /// Makes room for `more` entries. Returns the growth of the capacity.
    pub(crate) fn grow(&mut self, more: usize) -> usize {
        let before = self.entries.capacity();
        self.entries.reserve_exact(before - self.entries.len() + more);
        self.entries.capacity() - before
    }

    pub(crate) fn get(&self, at: u32) -> Option<&SpilledCell> {
        match self.entries.get(at as usize)? {
            SlabEntry::Used(spilled) => Some(spilled),
            SlabEntry::Free(_) => None,
        }
    }

    pub(crate) fn get_mut(&mut self, at: u32) -> Option<&mut SpilledCell> {
        match self.entries.get_mut(at as usize)? {
            SlabEntry::Used(spilled) => Some(spilled),
            SlabEntry::Free(_) => None,
        }
    }

    /// Adds an entry and returns its index.
    pub(crate) fn insert(&mut self, spilled: SpilledCell) -> u32 {
        self.used += 1;
        if let Some(at) = self.free
            && let Some(entry) = self.entries.get_mut(at as usize)
        {
            if let SlabEntry::Free(next) = *entry {
                self.free = next;
            }
            *entry = SlabEntry::Used(spilled);
            return at;
        }
        self.entries.push(SlabEntry::Used(spilled));
        (self.entries.len() - 1) as u32
    }

    pub(crate) fn remove(&mut self, at: u32) -> Option<SpilledCell> {
        let entry = self.entries.get_mut(at as usize)?;
        if let SlabEntry::Free(_) = entry {
            return None;
        }
        let SlabEntry::Used(spilled) = std::mem::replace(entry, SlabEntry::Free(self.free)) else {
            return None;
        };
        self.free = Some(at);
        self.used -= 1;
        Some(spilled)
    }

    /// Removes all entries and frees the memory.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = SpilledCell> + use<> {
        let entries = std::mem::take(self).entries;
        entries.into_iter().filter_map(|entry| match entry {
            SlabEntry::Used(spilled) => Some(spilled),
            SlabEntry::Free(_) => None,
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &SpilledCell> {
        (0..self.entries.len() as u32).filter_map(|at| self.get(at))
    }

    /// The entry at `at`, modulo the length.
    pub(crate) fn get_wrapping(&self, at: usize) -> Option<(u32, &SpilledCell)> {
        let at = at.checked_rem(self.entries.len())? as u32;
        self.get(at).map(|spilled| (at, spilled))
    }
}

impl Shard {
    /// Counts a violation. Returns the end of a block that it starts. There must be room for a
    /// spilled cell.
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

    /// Blocks the key, or ends its blocks. There must be room for a spilled cell.
    pub(crate) fn set_block(
        &mut self,
        shared: &ShardContext,
        found: CellPosition,
        tag: u64,
        charge: &Charge<'_>,
        until_us: Option<u64>,
    ) {
        let at = match (found, until_us) {
            (CellPosition::Absent | CellPosition::PackedState(_), None) => return,
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

    /// Spills the key's cell if needed. Returns its index in the slab.
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
            CellPosition::PackedState(_) => {
                let state = match_packed!(
                    charge.params,
                    algorithm => widened(algorithm, self.state_of(shared, algorithm, found, charge.params_id)),
                    else LimitState::New
                );
                self.spill(shared, tag, charge, state)
            }
        }
    }

    /// Puts `state` into the slab, and makes the key's slot point there. New keys have reserved
    /// room. Known keys spill by a debt, a penalty or another tier; they may exceed the cap, since
    /// losing their state would let them start afresh.
    pub(crate) fn spill(
        &mut self,
        shared: &ShardContext,
        tag: u64,
        charge: &Charge<'_>,
        state: LimitState,
    ) -> u32 {
        fn typed<const W: usize>(table: &mut CellTable<W>, tag: u64, at: u32) {
            let cell = Cell::spilled_at(tag, at);
            match table.hold(tag) {
                Some((slot, _)) => table.set(slot, cell.words),
                None => table.insert(cell),
            }
        }
        if self.slab.room() == 0 {
            let grown = self.slab.grow((self.slab.capacity() / 4).max(4));
            shared.budget.take(grown * Slab::ENTRY_BYTES);
        }
        let spilled = SpilledCell::new(tag, *charge.params, state);
        shared.budget.take(spilled.heap_bytes());
        let at = self.slab.insert(spilled);
        if is_wide(charge.params) {
            typed(&mut self.wide, tag, at);
        } else {
            typed(&mut self.narrow, tag, at);
        }
        at
    }

    /// The state of a cell, of any algorithm.
    pub(crate) fn read(
        &self,
        shared: &ShardContext,
        found: CellPosition,
        charge: &Charge<'_>,
    ) -> LimitState {
        if let CellPosition::Spilled(at) = found {
            return self.slab.get(at).map(|spilled| spilled.state.clone()).unwrap_or_default();
        }
        match_packed!(
            charge.params,
            algorithm => {
                widened(algorithm, self.state_of(shared, algorithm, found, charge.params_id))
            },
            else LimitState::New
        )
    }

    pub(crate) fn decide_spilled(
        &self,
        at: u32,
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
    ) -> Answer {
        let Charge { params, cost, mode, penalty, .. } = *charge;
        let Some(spilled) = self.slab.get(at) else {
            let outcome = params.decide(&LimitState::New, now_us, cost, intent);
            return Answer::without_receipt(outcome);
        };
        let block_us = if mode.is_enforced() { spilled.block_us(penalty, now_us) } else { None };
        let intent = if block_us.is_some() { Intent::Peek } else { intent };
        let outcome = params.decide(&spilled.state, now_us, cost, intent);
        let mut answer = Answer::without_receipt(outcome);
        if let Some(end_us) = block_us {
            answer.show_block(end_us - now_us);
        }
        answer
    }

    pub(crate) fn charge_spilled(
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
        if let LimitState::ExpiryLog(log) = &mut spilled.state
            && log.len() * size_of::<(u64, u64)>() >= before
            && before > 0
        {
            // The log is about to double its memory.
            if shared.budget.try_take(before) {
                shared.budget.release(before);
            } else {
                log.merge_two_earliest();
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

fn widened<A: PackedState<W>, const W: usize>(_: &A, state: A::State) -> LimitState {
    A::widen(state)
}
