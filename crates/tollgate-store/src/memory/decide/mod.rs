//! Decides requests: one charge, several charges, batches; and applies adjustments.

mod adjust;
mod batch;
mod fast_path;
mod multi;

use super::evict::RoomNeeded;
use super::shard::pack::{Inline, by_algorithm};
use super::shard::{CellPosition, HasTable, Shard};
use super::table::address::CellAddress;
use super::table::prefetch_hints::SlotHint;
use super::{MemoryStore, ShardContext};
use crate::sync::{Guard, Ordering, lock};
use crate::{Answer, Answers, Charge};
use tollgate_core::{Intent, LimitParams};

/// The store has no room for a new key's cell.
#[derive(Debug)]
pub(crate) struct NoRoom;

impl MemoryStore {
    /// Decides a request with one charge.
    #[inline]
    pub(super) fn decide_single(
        &self,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) {
        by_algorithm!(
            charge.params,
            algorithm => self.decide_single_inline(algorithm, now_us, charge, intent, answers),
            else self.decide_single_spilled(now_us, charge, intent, answers)
        )
    }

    /// Decides a request with one charge, whose cell at `address` was prefetched.
    #[inline]
    pub(super) fn decide_prefetched(
        &self,
        address: CellAddress,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) {
        by_algorithm!(
            charge.params,
            algorithm => self.decide_prefetched_inline(algorithm, address, now_us, charge, intent, answers),
            else self.lock_and_decide_spilled(address, now_us, charge, intent, answers)
        )
    }

    // One function per algorithm, from the key to the row: values passed between calls go through
    // memory.
    #[inline(never)]
    fn decide_single_inline<A: Inline<W>, const W: usize>(
        &self,
        algorithm: &A,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) where
        Shard: HasTable<W>,
    {
        let address = self.addresses.address(charge.limit, charge.key);
        let hint = self.shared.table_hints.prefetch(address, W == 2);
        self.lock_and_decide(algorithm, (address, hint), now_us, charge, intent, answers);
    }

    #[inline(never)]
    fn decide_prefetched_inline<A: Inline<W>, const W: usize>(
        &self,
        algorithm: &A,
        address: CellAddress,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) where
        Shard: HasTable<W>,
    {
        let cell = (address, SlotHint::default());
        self.lock_and_decide(algorithm, cell, now_us, charge, intent, answers);
    }

    #[inline(always)]
    fn lock_and_decide<A: Inline<W>, const W: usize>(
        &self,
        algorithm: &A,
        (address, hint): (CellAddress, SlotHint),
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) where
        Shard: HasTable<W>,
    {
        let mut shard = lock(&self.shards[address.shard].0);
        let decided =
            shard.decide_fast(algorithm, (address.tag, hint), charge, now_us, intent, answers);
        if decided.is_none() {
            self.decide_slow(shard, address, charge, now_us, intent, answers);
        }
    }

    #[inline(never)]
    fn decide_single_spilled(
        &self,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) {
        let address = self.addresses.address(charge.limit, charge.key);
        self.lock_and_decide_spilled(address, now_us, charge, intent, answers);
    }

    /// Decides a request with one charge, whose state is always spilled.
    #[inline(never)]
    fn lock_and_decide_spilled(
        &self,
        address: CellAddress,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) {
        let shard = lock(&self.shards[address.shard].0);
        self.decide_slow(shard, address, charge, now_us, intent, answers);
    }

    #[cold]
    #[inline(never)]
    fn decide_slow(
        &self,
        mut shard: Guard<'_, Shard>,
        address: CellAddress,
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
        answers: &mut Answers,
    ) {
        let decided =
            decide_any_cell(&self.shared, &mut shard, address.tag, charge, now_us, intent, false);
        drop(shard);
        match decided {
            Ok(answer) => {
                answers.push(answer);
                answers.finish(answer.outcome.admitted || !charge.mode.is_enforced());
            }
            Err(NoRoom) => self.decide_in_overflow_cell(address, charge, now_us, intent, answers),
        }
    }

    /// Decides a request for a new key without room, in a cell that such keys share.
    #[cold]
    #[inline(never)]
    fn decide_in_overflow_cell(
        &self,
        address: CellAddress,
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
        answers: &mut Answers,
    ) {
        self.shared.events.overflowed(charge.limit);
        let address = self.addresses.overflow(charge.limit, address);
        let mut shard = lock(&self.shards[address.shard].0);
        let decided =
            decide_any_cell(&self.shared, &mut shard, address.tag, charge, now_us, intent, true);
        let mut answer =
            decided.unwrap_or_else(|NoRoom| unreachable!("overflow cells may exceed the cap"));
        // By the time of a give-back the key may have its own cell, so there is no receipt.
        answer.receipt = None;
        answers.push(answer);
        answers.finish(answer.outcome.admitted || !charge.mode.is_enforced());
    }
}

/// Decides a request with one charge, whatever the state of its cell.
#[cold]
fn decide_any_cell(
    shared: &ShardContext,
    shard: &mut Shard,
    tag: u64,
    charge: &Charge<'_>,
    now_us: u64,
    intent: Intent,
    force: bool,
) -> Result<Answer, NoRoom> {
    let found = shard.find_and_redate(shared, tag, charge, now_us);
    let owed = charge.mode.owed();
    let intent_now = if owed.is_some() { Intent::Peek } else { intent };
    let mut answer = shard.decide(shared, found, charge, now_us, intent_now);
    if intent == Intent::Peek {
        return Ok(answer);
    }
    let units = owed.unwrap_or(if answer.outcome.admitted { charge.cost } else { 0 });
    let mut receipt = None;
    if units > 0 {
        if found == CellPosition::Absent {
            let spilled = usize::from(Shard::spills(charge, now_us, units));
            let needed = RoomNeeded { cells: 1, spilled };
            if !shard.reserve(shared, charge.params, now_us, needed, &[tag], force) {
                return Err(NoRoom);
            }
        }
        receipt = Some(shard.charge(shared, found, tag, charge, now_us, units));
    }
    if owed.is_some() {
        return Ok(answer_after_debt(shared, shard, tag, charge, now_us, answer));
    }
    if !answer.outcome.admitted {
        count_violation(shared, shard, tag, charge, now_us, &mut answer);
    }
    answer.receipt = receipt;
    Ok(answer)
}

/// The answer of a charge that said `before`, after its debt was charged.
pub(super) fn answer_after_debt(
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
pub(super) fn count_violation(
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
