//! Decides requests with their shards locked, all charges or none.

use crate::charge::GroupVerdicts;
use crate::memory::evict::RoomNeeded;
use crate::memory::shard::pack::{PackedState, WordsTaken, match_packed};
use crate::memory::shard::{CellPosition, HasTable, LockedShard, Shard, is_wide, unpack};
use crate::memory::table::address::CellAddress;
use crate::memory::{MemoryStore, ShardContext};
use crate::sync::{Ordering, lock};
use crate::{Answer, Charge};
use std::array::from_fn;
use tollgate_core::{Algorithm, Intent, LimitParams};

/// The store has no room for a new key's cell.
#[derive(Debug)]
pub(super) struct NoRoom;

/// The cell that decides one charge of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChargeCell {
    pub(crate) address: CellAddress,
    /// Whether it is an overflow cell.
    pub(super) overflow: bool,
    /// The index of its shard's lock; `usize::MAX` after there was no room for it.
    pub(super) lock: usize,
    /// Its position, until a cell is added or removed.
    found: CellPosition,
    /// Its words after the charge, if they are known before the request is admitted.
    planned: Option<[u64; 2]>,
}

impl ChargeCell {
    /// Charges of most requests: few, so that little stack is cleared.
    pub(super) const INLINE_FEW: usize = 4;
    /// Charges of one request without allocation, at most.
    pub(super) const INLINE_MAX: usize = 16;
    pub(super) const NOWHERE: Self = Self::at(CellAddress { shard: 0, tag: 0 });

    pub(super) const fn at(address: CellAddress) -> Self {
        let found = CellPosition::Absent;
        Self { address, overflow: false, lock: 0, found, planned: None }
    }
}

impl MemoryStore {
    /// Decides a request, and fills a row for each charge. Returns whether it is admitted.
    pub(super) fn decide_locked<const INLINE: usize>(
        &self,
        cells: &mut [ChargeCell],
        now_us: u64,
        charges: &[Charge<'_>],
        intent: Intent,
        rows: &mut [Answer],
    ) -> bool {
        let admitted = loop {
            let decided = self.with_locks::<INLINE, _>(cells, |shards, cells| {
                decide_cells(&self.shared, shards, cells, charges, now_us, intent, rows)
            });
            match decided {
                Ok(admitted) => break admitted,
                Err(NoRoom) => self.move_to_overflow_cells(cells, charges),
            }
        };
        self.shared.garbage.free_some();
        admitted
    }

    /// Locks the shards of `cells`, each once and in ascending order, so that two requests cannot
    /// deadlock. More than `INLINE` cells are allocated.
    #[inline]
    pub(super) fn with_locks<const INLINE: usize, T>(
        &self,
        cells: &mut [ChargeCell],
        work: impl FnOnce(&mut [Option<LockedShard<'_>>], &mut [ChargeCell]) -> T,
    ) -> T {
        let mut inline = [const { None }; INLINE];
        let mut heap = Vec::new();
        let shards = match inline.get_mut(..cells.len()) {
            Some(shards) => shards,
            None => {
                heap.resize_with(cells.len(), || None);
                &mut heap[..]
            }
        };
        let mut next = cells.iter().map(|cell| cell.address.shard).min();
        let mut locked = 0;
        while let Some(shard) = next {
            shards[locked] = Some(LockedShard(lock(&self.shards[shard].0)));
            next = None;
            for cell in &mut *cells {
                if cell.address.shard == shard {
                    cell.lock = locked;
                } else if cell.address.shard > shard {
                    next = Some(next.map_or(cell.address.shard, |n| cell.address.shard.min(n)));
                }
            }
            locked += 1;
        }
        work(&mut shards[..locked], cells)
    }

    /// Moves every charge without room to its overflow cell.
    pub(super) fn move_to_overflow_cells<'c>(
        &self,
        cells: &mut [ChargeCell],
        charges: impl IntoIterator<Item = &'c Charge<'c>>,
    ) {
        for (cell, charge) in cells.iter_mut().zip(charges) {
            if cell.overflow && cell.lock == usize::MAX {
                cell.address = self.addresses.overflow(charge.limit, cell.address);
                self.shared.events.overflowed(charge.limit);
            }
        }
    }
}

/// Decides a request whose shards are all locked.
fn decide_cells(
    shared: &ShardContext,
    shards: &mut [Option<LockedShard<'_>>],
    cells: &mut [ChargeCell],
    charges: &[Charge<'_>],
    now_us: u64,
    intent: Intent,
    rows: &mut [Answer],
) -> Result<bool, NoRoom> {
    let (mut verdicts, mut all_planned) = (GroupVerdicts::ADMITTED, true);
    for ((cell, charge), row) in cells.iter_mut().zip(charges).zip(&mut *rows) {
        let Some(shard) = &mut shards[cell.lock] else { continue };
        let owes = charge.mode.owed().is_some();
        let intent = if owes { Intent::Peek } else { intent };
        cell.planned = None;
        shard.plan(shared, cell, charge, now_us, intent, row);
        verdicts.add(charge.mode, row.outcome.admitted, row.blocked);
        all_planned &= cell.planned.is_some() && !cell.overflow;
    }
    let admitted = verdicts.admitted;
    if intent == Intent::Peek || !admitted {
        look_for_room(shared, shards, cells, now_us, |n| Some(&charges[n]))?;
    }
    if intent == Intent::Peek {
        return Ok(admitted);
    }
    // Two limits with the same hash share a cell, and one plan must not overwrite the other.
    let shared_cell = |n: usize| cells[..n].iter().any(|one| one.address == cells[n].address);
    if all_planned && !(1..cells.len()).any(shared_cell) {
        for (cell, charge) in cells.iter().zip(charges) {
            if let (Some(shard), Some(words)) = (&mut shards[cell.lock], cell.planned) {
                shard.commit(cell.found, charge, words);
            }
        }
        return Ok(admitted);
    }
    let units = |n: usize, rows: &[Answer]| match charges[n].mode.owed() {
        Some(units) => units,
        None if rows[n].outcome.admitted && verdicts.charges(charges[n].mode) => charges[n].cost,
        None => 0,
    };
    let adds =
        |(n, cell): (usize, &ChargeCell)| units(n, rows) > 0 && cell.found == CellPosition::Absent;
    if cells.iter().enumerate().any(adds) {
        make_room(shared, shards, cells, now_us, |n| {
            let units = units(n, rows);
            (units > 0).then_some((&charges[n], units))
        })?;
    }
    for (n, (cell, charge)) in cells.iter().zip(charges).enumerate() {
        let Some(shard) = &mut shards[cell.lock] else { continue };
        let (tag, units) = (cell.address.tag, units(n, rows));
        if units == 0 {
            continue;
        }
        // The charge before this one may have moved cells: to another array, or to another slot.
        let found = shard.find(charge.params, tag);
        let receipt = shard.charge(shared, found, tag, charge, now_us, units);
        // A charge to an overflow cell cannot be given back: by then the key may have its own cell.
        // A debt never is.
        let returnable = !cell.overflow && charge.mode.owed().is_none();
        rows[n].receipt = returnable.then_some(receipt);
    }
    answer_uncharged(shared, shards, cells, charges, now_us, verdicts, rows);
    Ok(admitted)
}

/// Answers for the limits that took nothing, and for those that owe.
fn answer_uncharged(
    shared: &ShardContext,
    shards: &mut [Option<LockedShard<'_>>],
    cells: &[ChargeCell],
    charges: &[Charge<'_>],
    now_us: u64,
    verdicts: GroupVerdicts,
    rows: &mut [Answer],
) {
    for ((cell, charge), answer) in cells.iter().zip(charges).zip(rows) {
        let Some(shard) = &mut shards[cell.lock] else { continue };
        let tag = cell.address.tag;
        if charge.mode.owed().is_some() {
            *answer = answer_after_debt(shared, shard, tag, charge, now_us, *answer);
        } else if answer.outcome.admitted && verdicts.charges(charge.mode) {
            continue;
        } else if answer.outcome.admitted {
            // Another limit refused, so nothing was taken.
            let found = shard.find(charge.params, tag);
            *answer = shard.decide(shared, found, charge, now_us, Intent::Peek);
        } else {
            count_violation(shared, shard, tag, charge, now_us, answer);
        }
    }
}

impl Shard {
    /// Finds the cell of a charge and answers for its limit alone. State that a leaping clock dated
    /// too far ahead is corrected; nothing else changes.
    #[inline]
    pub(super) fn plan(
        &mut self,
        shared: &ShardContext,
        cell: &mut ChargeCell,
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
        row: &mut Answer,
    ) {
        match_packed!(
            charge.params,
            algorithm => self.plan_inline(algorithm, shared, cell, charge, now_us, intent, row),
            else {
                cell.found = self.find(charge.params, cell.address.tag);
                *row = self.redate_and_decide(shared, cell.found, charge, now_us, intent);
            }
        );
    }

    // One function per algorithm, and the row in its place: values passed between calls go through
    // memory.
    #[expect(clippy::too_many_arguments, reason = "a plan needs the whole charge")]
    #[inline(never)]
    fn plan_inline<A: PackedState<W>, const W: usize>(
        &mut self,
        algorithm: &A,
        shared: &ShardContext,
        cell: &mut ChargeCell,
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
        row: &mut Answer,
    ) where
        Self: HasTable<W>,
    {
        let tag = cell.address.tag;
        let Some((at, held)) = self.table_and_slab().0.hold(tag) else {
            cell.found = CellPosition::Absent;
            let outcome = algorithm.decide(&A::State::default(), now_us, charge.cost, intent);
            *row = Answer::without_receipt(outcome);
            return;
        };
        if let Some(index) = held.spilled() {
            cell.found = CellPosition::Spilled(index);
            *row = self.redate_and_decide(shared, cell.found, charge, now_us, intent);
            return;
        }
        cell.found = CellPosition::PackedState(at);
        if intent == Intent::Take
            && held.params_id() == charge.params_id
            && let Some(taken) = algorithm.take_words(held.words, now_us, charge.cost)
        {
            *row = match taken {
                WordsTaken::Charged(words, outcome, receipt) => {
                    cell.planned = Some(from_fn(|n| words.get(n).copied().unwrap_or(0)));
                    Answer::with_receipt(outcome, receipt)
                }
                WordsTaken::Refused(outcome) => Answer::without_receipt(outcome),
            };
            return;
        }
        let mut state = unpack(shared, algorithm, held, charge.params_id);
        if algorithm.redate(&mut state, now_us) {
            self.write(shared, algorithm, cell.found, tag, charge, state.clone());
            cell.found = self.find(charge.params, tag);
        }
        *row = Answer::without_receipt(algorithm.decide(&state, now_us, charge.cost, intent));
    }

    /// The answer of a limit whose state is spilled or absent.
    fn redate_and_decide(
        &mut self,
        shared: &ShardContext,
        found: CellPosition,
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
    ) -> Answer {
        if let CellPosition::Spilled(at) = found
            && let Some(spilled) = self.slab.get_mut(at)
        {
            charge.params.redate(&mut spilled.state, now_us);
        }
        self.decide(shared, found, charge, now_us, intent)
    }

    /// Writes planned words.
    #[inline]
    fn commit(&mut self, found: CellPosition, charge: &Charge<'_>, [first, second]: [u64; 2]) {
        let CellPosition::PackedState(at) = found else { return };
        if is_wide(charge.params) {
            self.wide.set(at, [first, second]);
        } else {
            self.narrow.set(at, [first]);
        }
    }
}

/// The answer of a charge that said `before`, after its debt was charged.
fn answer_after_debt(
    shared: &ShardContext,
    shard: &mut Shard,
    tag: u64,
    charge: &Charge<'_>,
    now_us: u64,
    before: Answer,
) -> Answer {
    let found = shard.find(charge.params, tag);
    let mut answer = before.after_debt(shard.decide(shared, found, charge, now_us, Intent::Peek));
    if !answer.outcome.admitted {
        count_violation(shared, shard, tag, charge, now_us, &mut answer);
    }
    answer
}

/// Counts a refusal as a violation, and shows the block that this starts.
fn count_violation(
    shared: &ShardContext,
    shard: &mut Shard,
    tag: u64,
    charge: &Charge<'_>,
    now_us: u64,
    answer: &mut Answer,
) {
    let (true, Some(penalty), false) = (charge.mode.is_enforced(), charge.penalty, answer.blocked)
    else {
        return;
    };
    let found = shard.find(charge.params, tag);
    let needed = RoomNeeded::to_spill(found);
    if !shard.reserve(shared, charge.params, now_us, needed, &[tag], false) {
        shared.events.uncounted.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let found = shard.find(charge.params, tag);
    if let Some(end_us) = shard.count_refusal(shared, found, tag, charge, penalty, now_us) {
        answer.show_block(end_us.saturating_sub(now_us));
    }
}

/// Sends new keys without room to their overflow cells, where a charge would count them. `reads`
/// returns the charges that are read and not made.
pub(super) fn look_for_room<'a>(
    shared: &ShardContext,
    shards: &mut [Option<LockedShard<'_>>],
    cells: &mut [ChargeCell],
    now_us: u64,
    reads: impl Fn(usize) -> Option<&'a Charge<'a>>,
) -> Result<(), NoRoom> {
    let mut full = false;
    for (n, cell) in cells.iter_mut().enumerate() {
        if let Some(charge) = reads(n)
            && !cell.overflow
            && cell.found == CellPosition::Absent
            && let Some(shard) = &mut shards[cell.lock]
            && shard.find(charge.params, cell.address.tag) == CellPosition::Absent
            && !shard.has_room(shared, charge, now_us)
        {
            (cell.overflow, cell.lock, full) = (true, usize::MAX, true);
        }
    }
    if full { Err(NoRoom) } else { Ok(()) }
}

/// Makes room for the cells that charges will add. Charges without room are marked for
/// [`move_to_overflow_cells`](MemoryStore::move_to_overflow_cells).
pub(super) fn make_room<'a>(
    shared: &ShardContext,
    shards: &mut [Option<LockedShard<'_>>],
    cells: &mut [ChargeCell],
    now_us: u64,
    takes: impl Fn(usize) -> Option<(&'a Charge<'a>, u64)>,
) -> Result<(), NoRoom> {
    let mut pinned_inline = [0; ChargeCell::INLINE_MAX];
    let pinned_heap: Vec<u64>;
    let pinned = match pinned_inline.get_mut(..cells.len()) {
        Some(pinned) => {
            pinned.iter_mut().zip(&*cells).for_each(|(tag, cell)| *tag = cell.address.tag);
            &*pinned
        }
        None => {
            pinned_heap = cells.iter().map(|cell| cell.address.tag).collect();
            &pinned_heap[..]
        }
    };
    let mut full = false;
    for n in 0..cells.len() {
        let Some((charge, _)) = takes(n) else { continue };
        let found = match &mut shards[cells[n].lock] {
            Some(shard) => shard.find(charge.params, cells[n].address.tag),
            None => continue,
        };
        if found != CellPosition::Absent {
            continue;
        }
        // Room for all cells that this request may add to the same table.
        let mut needed = RoomNeeded::default();
        for (m, cell) in cells.iter().enumerate() {
            if let Some((other, units)) = takes(m)
                && cell.lock == cells[n].lock
            {
                needed.cells += usize::from(is_wide(other.params) == is_wide(charge.params));
                needed.spilled += usize::from(Shard::spills(other, now_us, units));
            }
        }
        let cell = &mut cells[n];
        if let Some(shard) = &mut shards[cell.lock]
            && !shard.reserve(shared, charge.params, now_us, needed, pinned, cell.overflow)
        {
            cell.overflow = true;
            cell.lock = usize::MAX;
            full = true;
        }
    }
    if full { Err(NoRoom) } else { Ok(()) }
}
