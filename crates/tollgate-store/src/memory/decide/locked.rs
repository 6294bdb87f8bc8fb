//! Decides requests with their shards locked, all charges or none.

use crate::charge::GroupVerdicts;
use crate::memory::evict::RoomNeeded;
use crate::memory::shard::pack::{PackedState, WordsTaken, match_packed};
use crate::memory::shard::{CellPosition, HasTable, LockedShard, Shard, is_wide, unpack};
use crate::memory::table::address::CellAddress;
use crate::memory::{MemoryStore, ShardContext};
use crate::sync::{Ordering, lock};
use crate::{Answer, Charge};
use smallvec::SmallVec;
use std::array::from_fn;
use tollgate_core::{Algorithm, Intent, LimitParams, Receipt};

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
    /// Its words before a charge that was made at once.
    before: Option<[u64; 2]>,
}

/// Charges of one request without allocation, at most.
const INLINE_MAX: usize = 16;

/// The locked shards of one request.
type LockedShards<'a> = SmallVec<[LockedShard<'a>; INLINE_MAX]>;

/// The cells of one request.
pub(super) type ChargeCells = SmallVec<[ChargeCell; INLINE_MAX]>;

impl ChargeCell {
    #[inline]
    pub(super) const fn at(address: CellAddress) -> Self {
        let found = CellPosition::Absent;
        Self { address, overflow: false, lock: 0, found, before: None }
    }

    /// The cell's position. If the request has one cell, that of the first search is still valid.
    /// The charge of another cell may move this one, to another array or to another slot.
    #[inline]
    pub(super) fn position(
        &self,
        shard: &mut Shard,
        params: &LimitParams,
        cell_count: usize,
    ) -> CellPosition {
        match self.found {
            found if cell_count == 1 && found != CellPosition::Absent => found,
            _ => shard.find(params, self.address.tag()),
        }
    }
}

impl MemoryStore {
    /// Decides a request, and fills a row for each charge. Returns whether it is admitted.
    pub(super) fn decide_locked(
        &self,
        cells: &mut [ChargeCell],
        now_us: u64,
        charges: &[Charge<'_>],
        intent: Intent,
        rows: &mut [Answer],
    ) -> bool {
        let admitted = loop {
            let decided = self.with_locks(cells, |shards, cells| {
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
    /// deadlock.
    #[inline]
    pub(super) fn with_locks<T>(
        &self,
        cells: &mut [ChargeCell],
        work: impl FnOnce(&mut [LockedShard<'_>], &mut [ChargeCell]) -> T,
    ) -> T {
        let mut shards = LockedShards::new();
        match cells {
            // Limits on one key are in one shard.
            [first, rest @ ..]
                if rest.iter().all(|cell| cell.address.shard == first.address.shard) =>
            {
                shards.push(LockedShard(lock(&self.shards[first.address.shard].0)));
                cells.iter_mut().for_each(|cell| cell.lock = 0);
            }
            _ => self.lock_ascending(cells, &mut shards),
        }
        work(&mut shards, cells)
    }

    #[inline(never)]
    fn lock_ascending<'s>(&'s self, cells: &mut [ChargeCell], shards: &mut LockedShards<'s>) {
        let mut next = cells.iter().map(|cell| cell.address.shard).min();
        while let Some(shard) = next {
            next = None;
            for cell in &mut *cells {
                if cell.address.shard == shard {
                    cell.lock = shards.len();
                } else if cell.address.shard > shard {
                    next = Some(next.map_or(cell.address.shard, |n| cell.address.shard.min(n)));
                }
            }
            shards.push(LockedShard(lock(&self.shards[shard].0)));
        }
    }

    /// Moves every charge without room to its overflow cell.
    pub(super) fn move_to_overflow_cells<'c>(
        &self,
        cells: &mut [ChargeCell],
        charges: impl IntoIterator<Item = &'c Charge<'c>>,
    ) {
        for (cell, charge) in cells.iter_mut().zip(charges) {
            // The locks were released since.
            cell.found = CellPosition::Absent;
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
    shards: &mut [LockedShard<'_>],
    cells: &mut [ChargeCell],
    charges: &[Charge<'_>],
    now_us: u64,
    intent: Intent,
    rows: &mut [Answer],
) -> Result<bool, NoRoom> {
    let (mut verdicts, mut is_charged) = (GroupVerdicts::ADMITTED, true);
    // Two limits with the same hash share a cell, and each must answer for the state before both.
    let is_shared = |n: usize| cells[..n].iter().any(|one| one.address == cells[n].address);
    let is_apart = !(1..cells.len()).any(is_shared);
    for ((cell, charge), row) in cells.iter_mut().zip(charges).zip(&mut *rows) {
        let shard = &mut shards[cell.lock];
        let owes = charge.mode.owed().is_some();
        let intent = if owes { Intent::Peek } else { intent };
        let at_once = is_apart && !cell.overflow;
        shard.answer(shared, cell, charge, now_us, (intent, at_once), row);
        verdicts.add(charge.mode, row.outcome.admitted, row.blocked);
        is_charged &= cell.before.is_some();
    }
    if is_charged {
        return Ok(true);
    }
    charge_cells(shared, shards, cells, charges, now_us, (intent, verdicts), rows)
}

/// Charges cells by the answers of all limits, if some are not charged yet: a key is new, a limit
/// refuses or counts debts, or nothing was to be charged at once.
#[inline(never)]
fn charge_cells(
    shared: &ShardContext,
    shards: &mut [LockedShard<'_>],
    cells: &mut [ChargeCell],
    charges: &[Charge<'_>],
    now_us: u64,
    (intent, verdicts): (Intent, GroupVerdicts),
    rows: &mut [Answer],
) -> Result<bool, NoRoom> {
    for (cell, charge) in cells.iter_mut().zip(charges).rev() {
        if let Some(words) = cell.before.take() {
            shards[cell.lock].restore(charge, cell.address.tag(), words);
        }
    }
    let admitted = verdicts.admitted;
    if intent == Intent::Peek || !admitted {
        look_for_room(shared, shards, cells, now_us, |n| Some(&charges[n]))?;
    }
    if intent == Intent::Peek {
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
        let shard = &mut shards[cell.lock];
        let (tag, units) = (cell.address.tag(), units(n, rows));
        if units == 0 {
            continue;
        }
        let found = cell.position(shard, charge.params, cells.len());
        let receipt = shard.charge(shared, found, tag, charge, now_us, units);
        // A debt is never given back.
        let returnable = charge.mode.owed().is_none();
        let is_shared = cell.overflow;
        rows[n].receipt = returnable.then_some(Receipt { is_shared, ..receipt });
    }
    answer_uncharged(shared, shards, cells, charges, now_us, verdicts, rows);
    Ok(admitted)
}

/// Answers for the limits that took nothing, and for those that owe.
fn answer_uncharged(
    shared: &ShardContext,
    shards: &mut [LockedShard<'_>],
    cells: &[ChargeCell],
    charges: &[Charge<'_>],
    now_us: u64,
    verdicts: GroupVerdicts,
    rows: &mut [Answer],
) {
    for ((cell, charge), answer) in cells.iter().zip(charges).zip(rows) {
        let shard = &mut shards[cell.lock];
        let tag = cell.address.tag();
        if charge.mode.owed().is_some() {
            *answer = answer_after_debt(shared, shard, cell, charge, now_us, *answer);
        } else if answer.outcome.admitted && verdicts.charges(charge.mode) {
            continue;
        } else if answer.outcome.admitted {
            // Another limit refused, so nothing was taken.
            let found = shard.find(charge.params, tag);
            *answer = shard.decide(shared, found, charge, now_us, Intent::Peek);
        } else {
            count_violation(shared, shard, cell, charge, now_us, answer);
        }
    }
}

impl Shard {
    /// Finds the cell of a charge and answers for its limit alone. If `at_once`, a known key is
    /// charged before the other limits have answered: other threads do not see its words before
    /// the lock is released. State that a leaping clock dated too far ahead is corrected; nothing
    /// else changes.
    #[inline(always)]
    pub(super) fn answer(
        &mut self,
        shared: &ShardContext,
        cell: &mut ChargeCell,
        charge: &Charge<'_>,
        now_us: u64,
        (intent, at_once): (Intent, bool),
        row: &mut Answer,
    ) {
        let asked = (intent, at_once);
        match_packed!(
            charge.params,
            algorithm => self.answer_packed(algorithm, shared, cell, charge, now_us, asked, row),
            else {
                cell.found = self.find(charge.params, cell.address.tag());
                *row = self.redate_and_decide(shared, cell.found, charge, now_us, intent);
            }
        );
    }

    // One function per algorithm, and the row in its place: values passed between calls go through
    // memory.
    #[expect(clippy::too_many_arguments, reason = "an answer needs the whole charge")]
    #[inline(never)]
    fn answer_packed<A: PackedState<W>, const W: usize>(
        &mut self,
        algorithm: &A,
        shared: &ShardContext,
        cell: &mut ChargeCell,
        charge: &Charge<'_>,
        now_us: u64,
        (intent, at_once): (Intent, bool),
        row: &mut Answer,
    ) where
        Self: HasTable<W>,
    {
        let tag = cell.address.tag();
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
            && at_once
            && held.params_id() == charge.params_id
            && let Some(taken) = algorithm.take_words(held.words, now_us, charge.cost)
        {
            *row = match taken {
                WordsTaken::Charged(words, outcome, receipt) => {
                    cell.before = Some(from_fn(|n| held.words.get(n).copied().unwrap_or(0)));
                    self.table_and_slab().0.set(at, words);
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

    /// Gives a charged cell its words back. Another charge may have moved the cell since.
    #[cold]
    fn restore(&mut self, charge: &Charge<'_>, tag: u64, [first, second]: [u64; 2]) {
        let CellPosition::PackedState(at) = self.find(charge.params, tag) else { return };
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
    cell: &ChargeCell,
    charge: &Charge<'_>,
    now_us: u64,
    before: Answer,
) -> Answer {
    let found = shard.find(charge.params, cell.address.tag());
    let mut answer = before.after_debt(shard.decide(shared, found, charge, now_us, Intent::Peek));
    if !answer.outcome.admitted {
        count_violation(shared, shard, cell, charge, now_us, &mut answer);
    }
    answer
}

/// Counts a refusal as a violation, and shows the block that this starts. A refusal in an overflow
/// cell counts for nobody: a block would lock out every key that shares the cell.
fn count_violation(
    shared: &ShardContext,
    shard: &mut Shard,
    cell: &ChargeCell,
    charge: &Charge<'_>,
    now_us: u64,
    answer: &mut Answer,
) {
    let (true, Some(penalty), false) = (charge.mode.is_enforced(), charge.penalty, answer.blocked)
    else {
        return;
    };
    let tag = cell.address.tag();
    let found = shard.find(charge.params, tag);
    let needed = RoomNeeded::to_spill(found);
    if cell.overflow || !shard.reserve(shared, charge.params, now_us, needed, &[tag], false) {
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
    shards: &mut [LockedShard<'_>],
    cells: &mut [ChargeCell],
    now_us: u64,
    reads: impl Fn(usize) -> Option<&'a Charge<'a>>,
) -> Result<(), NoRoom> {
    let mut full = false;
    for (n, cell) in cells.iter_mut().enumerate() {
        if let Some(charge) = reads(n)
            && !cell.overflow
            && cell.found == CellPosition::Absent
            && let shard = &mut shards[cell.lock]
        {
            cell.found = shard.find(charge.params, cell.address.tag());
            if cell.found == CellPosition::Absent && !shard.has_room(shared, charge, now_us) {
                (cell.overflow, cell.lock, full) = (true, usize::MAX, true);
            }
        }
    }
    if full { Err(NoRoom) } else { Ok(()) }
}

/// Makes room for the cells that charges will add. Charges without room are marked for
/// [`move_to_overflow_cells`](MemoryStore::move_to_overflow_cells).
pub(super) fn make_room<'a>(
    shared: &ShardContext,
    shards: &mut [LockedShard<'_>],
    cells: &mut [ChargeCell],
    now_us: u64,
    takes: impl Fn(usize) -> Option<(&'a Charge<'a>, u64)>,
) -> Result<(), NoRoom> {
    let pinned: SmallVec<[u64; INLINE_MAX]> = cells.iter().map(|cell| cell.address.tag()).collect();
    let mut full = false;
    for n in 0..cells.len() {
        let Some((charge, _)) = takes(n) else { continue };
        let found = shards[cells[n].lock].find(charge.params, cells[n].address.tag());
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
        let shard = &mut shards[cell.lock];
        if !shard.reserve(shared, charge.params, now_us, needed, &pinned, cell.overflow) {
            cell.overflow = true;
            cell.lock = usize::MAX;
            full = true;
        }
    }
    if full { Err(NoRoom) } else { Ok(()) }
}
