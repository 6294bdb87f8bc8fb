//! Decides requests with several charges, all or nothing.

use super::{NoRoom, answer_after_debt, count_violation};
use crate::memory::evict::RoomNeeded;
use crate::memory::shard::{CellPosition, Shard, is_wide};
use crate::memory::table::address::CellAddress;
use crate::memory::{MemoryStore, ShardContext};
use crate::sync::{Guard, lock};
use crate::{Answer, Answers, Charge};
use tollgate_core::Intent;

/// The cell that decides one charge of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChargeCell {
    pub(crate) address: CellAddress,
    /// Whether it is an overflow cell.
    pub(crate) overflow: bool,
    /// The index of its shard's lock; `usize::MAX` after there was no room for it.
    pub(crate) lock: usize,
    /// Its position, until a cell is added or removed.
    pub(crate) found: CellPosition,
}

impl ChargeCell {
    /// Charges of most requests: few, so that little stack is cleared.
    pub(crate) const INLINE_FEW: usize = 4;
    /// Charges of one request without allocation, at most.
    pub(crate) const INLINE_MAX: usize = 16;
    pub(crate) const NOWHERE: Self = Self::at(CellAddress { shard: 0, tag: 0 });

    pub(crate) const fn at(address: CellAddress) -> Self {
        Self { address, overflow: false, lock: 0, found: CellPosition::Absent }
    }
}

impl MemoryStore {
    /// Decides a request with no charge or several.
    pub(crate) fn decide_multi(
        &self,
        now_us: u64,
        charges: &[Charge<'_>],
        intent: Intent,
        answers: &mut Answers,
    ) {
        if charges.len() > ChargeCell::INLINE_FEW {
            self.lock_and_decide_multi::<{ ChargeCell::INLINE_MAX }>(
                now_us, charges, intent, answers,
            );
        } else if self.decide_one_key_fast(now_us, charges, intent, answers).is_none() {
            answers.discard_current_rows();
            self.lock_and_decide_multi::<{ ChargeCell::INLINE_FEW }>(
                now_us, charges, intent, answers,
            );
        }
    }

    fn lock_and_decide_multi<const INLINE: usize>(
        &self,
        now_us: u64,
        charges: &[Charge<'_>],
        intent: Intent,
        answers: &mut Answers,
    ) {
        let (mut inline, mut heap) = ([ChargeCell::NOWHERE; INLINE], Vec::new());
        let cells = match inline.get_mut(..charges.len()) {
            Some(cells) => cells,
            None => {
                heap.resize(charges.len(), ChargeCell::NOWHERE);
                &mut heap[..]
            }
        };
        for (cell, charge) in cells.iter_mut().zip(charges) {
            cell.address = self.addresses.address(charge.limit, charge.key);
            self.shared.table_hints.prefetch(cell.address, is_wide(charge.params));
        }
        loop {
            let decided = self.with_locks::<INLINE, _>(cells, |guards, cells| {
                decide_locked(&self.shared, guards, cells, charges, now_us, intent, answers)
            });
            match decided {
                Ok(admitted) => return answers.finish(admitted),
                Err(NoRoom) => {
                    answers.discard_current_rows();
                    self.move_to_overflow_cells(cells, charges);
                }
            }
        }
    }

    /// Locks the shards of `cells`, each once and in ascending order, so that two requests cannot
    /// deadlock. More than `INLINE` cells are allocated.
    #[inline]
    pub(crate) fn with_locks<const INLINE: usize, T>(
        &self,
        cells: &mut [ChargeCell],
        work: impl FnOnce(&mut [Option<Guard<'_, Shard>>], &mut [ChargeCell]) -> T,
    ) -> T {
        let mut inline = [const { None }; INLINE];
        let mut heap = Vec::new();
        let guards = match inline.get_mut(..cells.len()) {
            Some(guards) => guards,
            None => {
                heap.resize_with(cells.len(), || None);
                &mut heap[..]
            }
        };
        let mut next = cells.iter().map(|cell| cell.address.shard).min();
        let mut locked = 0;
        while let Some(shard) = next {
            guards[locked] = Some(lock(&self.shards[shard].0));
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
        work(&mut guards[..locked], cells)
    }

    /// Moves every charge without room to its overflow cell.
    pub(crate) fn move_to_overflow_cells(&self, cells: &mut [ChargeCell], charges: &[Charge<'_>]) {
        for (cell, charge) in cells.iter_mut().zip(charges) {
            if cell.overflow && cell.lock == usize::MAX {
                cell.address = self.addresses.overflow(charge.limit, cell.address);
                self.shared.events.overflowed(charge.limit);
            }
        }
    }
}

/// Decides a request with several charges, whose shards are all locked.
fn decide_locked(
    shared: &ShardContext,
    guards: &mut [Option<Guard<'_, Shard>>],
    cells: &mut [ChargeCell],
    charges: &[Charge<'_>],
    now_us: u64,
    intent: Intent,
    answers: &mut Answers,
) -> Result<bool, NoRoom> {
    let mut admitted = true;
    for (cell, charge) in cells.iter_mut().zip(charges) {
        let Some(shard) = &mut guards[cell.lock] else { continue };
        cell.found = shard.find_and_redate(shared, cell.address.tag, charge, now_us);
        let intent = if charge.mode.owed().is_some() { Intent::Peek } else { intent };
        let answer = shard.decide(shared, cell.found, charge, now_us, intent);
        admitted &= answer.outcome.admitted || !charge.mode.is_enforced();
        answers.push(answer);
    }
    if intent == Intent::Peek {
        return Ok(admitted);
    }
    let rows = answers.current_rows();
    let units = |n: usize, rows: &[Answer]| match charges[n].mode.owed() {
        Some(units) => units,
        None if admitted && rows[n].outcome.admitted => charges[n].cost,
        None => 0,
    };
    let adds =
        |(n, cell): (usize, &ChargeCell)| units(n, rows) > 0 && cell.found == CellPosition::Absent;
    let moved = cells.iter().enumerate().any(adds);
    if moved {
        make_room(shared, guards, cells, now_us, |n| {
            let units = units(n, rows);
            (units > 0).then_some((&charges[n], units))
        })?;
    }
    for (n, (cell, charge)) in cells.iter().zip(charges).enumerate() {
        let Some(shard) = &mut guards[cell.lock] else { continue };
        let (tag, units) = (cell.address.tag, units(n, rows));
        if units > 0 {
            let found = if moved { shard.find(charge.params, tag) } else { cell.found };
            let receipt = shard.charge(shared, found, tag, charge, now_us, units);
            // A charge to an overflow cell cannot be given back: by then the key may have its own
            // cell. A debt never is.
            let returnable = !cell.overflow && charge.mode.owed().is_none();
            rows[n].receipt = returnable.then_some(receipt);
        }
    }
    for (n, (cell, charge)) in cells.iter().zip(charges).enumerate() {
        let Some(shard) = &mut guards[cell.lock] else { continue };
        let (tag, answer) = (cell.address.tag, &mut rows[n]);
        if charge.mode.owed().is_some() {
            *answer = answer_after_debt(shared, shard, tag, charge, now_us, *answer);
        } else if admitted {
            continue;
        } else if answer.outcome.admitted {
            // Another limit refused, so nothing was taken.
            let found = shard.find(charge.params, tag);
            *answer = shard.decide(shared, found, charge, now_us, Intent::Peek);
        } else {
            count_violation(shared, shard, tag, charge, now_us, answer);
        }
    }
    Ok(admitted)
}

/// Makes room for the cells that charges will add. Charges without room are marked for
/// [`move_to_overflow_cells`](MemoryStore::move_to_overflow_cells).
pub(crate) fn make_room<'a>(
    shared: &ShardContext,
    guards: &mut [Option<Guard<'_, Shard>>],
    cells: &mut [ChargeCell],
    now_us: u64,
    takes: impl Fn(usize) -> Option<(&'a Charge<'a>, u64)>,
) -> Result<(), NoRoom> {
    let absent = |guards: &[Option<Guard<'_, Shard>>], cell: &ChargeCell, charge: &Charge<'_>| {
        guards[cell.lock].as_ref().is_some_and(|shard| {
            shard.find(charge.params, cell.address.tag) == CellPosition::Absent
        })
    };
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
        if !absent(guards, &cells[n], charge) {
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
        if let Some(shard) = &mut guards[cell.lock]
            && !shard.reserve(shared, charge.params, now_us, needed, pinned, cell.overflow)
        {
            cell.overflow = true;
            cell.lock = usize::MAX;
            full = true;
        }
    }
    if full { Err(NoRoom) } else { Ok(()) }
}
