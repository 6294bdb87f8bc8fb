//! Requests with one charge.

use super::address::Address;
use super::evict::Want;
use super::pack::{Inline, by_algorithm};
use super::shard::{Found, Shard, Tables};
use super::views::Guess;
use super::{MemoryStore, Shared};
use crate::sync::{Guard, Ordering, lock};
use crate::{Answer, Answers, Charge};
use tollgate_core::{Intent, Numbers};

/// The store has no room for a new key's cell.
#[derive(Debug)]
pub(crate) struct Full;

impl MemoryStore {
    /// Decides a request with one charge.
    #[inline]
    pub(super) fn decide_one(
        &self,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) {
        by_algorithm!(
            charge.numbers,
            algorithm => self.decide_alone(algorithm, now_us, charge, intent, answers),
            else self.decide_spilled_alone(now_us, charge, intent, answers)
        )
    }

    /// Decides a request with one charge, whose cell is at `address`.
    #[inline]
    pub(super) fn decide_at(
        &self,
        address: Address,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) {
        by_algorithm!(
            charge.numbers,
            algorithm => self.decide_in_turn(algorithm, address, now_us, charge, intent, answers),
            else self.decide_spilling(address, now_us, charge, intent, answers)
        )
    }

    // One function for each algorithm, from the key to the row: what goes from call to call goes through memory.
    #[inline(never)]
    fn decide_alone<A: Inline<W>, const W: usize>(
        &self,
        algorithm: &A,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) where
        Shard: Tables<W>,
    {
        let address = self.addresses.of(charge.limit, charge.key);
        let guess = self.shared.views.prefetch(address, W == 2);
        self.decide_locking(algorithm, (address, guess), now_us, charge, intent, answers);
    }

    #[inline(never)]
    fn decide_in_turn<A: Inline<W>, const W: usize>(
        &self,
        algorithm: &A,
        address: Address,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) where
        Shard: Tables<W>,
    {
        self.decide_locking(
            algorithm,
            (address, Guess::default()),
            now_us,
            charge,
            intent,
            answers,
        );
    }

    #[inline(always)]
    fn decide_locking<A: Inline<W>, const W: usize>(
        &self,
        algorithm: &A,
        (address, guess): (Address, Guess),
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) where
        Shard: Tables<W>,
    {
        let mut shard = lock(&self.shards[address.shard].0);
        let decided =
            shard.decide_usual(algorithm, (address.tag, guess), charge, now_us, intent, answers);
        if decided.is_none() {
            self.decide_unusual(shard, address, charge, now_us, intent, answers);
        }
    }

    #[inline(never)]
    fn decide_spilled_alone(
        &self,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) {
        let address = self.addresses.of(charge.limit, charge.key);
        self.decide_spilling(address, now_us, charge, intent, answers);
    }

    /// Decides a request with one charge, whose state never is in words.
    #[inline(never)]
    fn decide_spilling(
        &self,
        address: Address,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) {
        let shard = lock(&self.shards[address.shard].0);
        self.decide_unusual(shard, address, charge, now_us, intent, answers);
    }

    #[cold]
    #[inline(never)]
    fn decide_unusual(
        &self,
        mut shard: Guard<'_, Shard>,
        address: Address,
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
        answers: &mut Answers,
    ) {
        let decided =
            decide_any(&self.shared, &mut shard, address.tag, charge, now_us, intent, false);
        drop(shard);
        match decided {
            Ok(answer) => {
                answers.push(answer);
                answers.finish(answer.outcome.admitted || !charge.mode.is_enforced());
            }
            Err(Full) => self.decide_overflowing(address, charge, now_us, intent, answers),
        }
    }

    /// Decides a request for whose new key there is no room, in a cell that such keys share.
    #[cold]
    #[inline(never)]
    fn decide_overflowing(
        &self,
        address: Address,
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
        answers: &mut Answers,
    ) {
        self.shared.events.overflowed(charge.limit);
        let address = self.addresses.overflow(charge.limit, address);
        let mut shard = lock(&self.shards[address.shard].0);
        let decided =
            decide_any(&self.shared, &mut shard, address.tag, charge, now_us, intent, true);
        let mut answer =
            decided.unwrap_or_else(|Full| unreachable!("overflow cells are made beyond the cap"));
        // The cell is shared, and by then the key may have one of its own: nothing can be given back safely.
        answer.receipt = None;
        answers.push(answer);
        answers.finish(answer.outcome.admitted || !charge.mode.is_enforced());
    }
}

/// Decides a request with one charge, whatever the state of its cell.
#[cold]
fn decide_any(
    shared: &Shared,
    shard: &mut Shard,
    tag: u64,
    charge: &Charge<'_>,
    now_us: u64,
    intent: Intent,
    force: bool,
) -> Result<Answer, Full> {
    let found = shard.find_dated(shared, tag, charge, now_us);
    let owed = charge.mode.owed();
    let intent_now = if owed.is_some() { Intent::Peek } else { intent };
    let mut answer = shard.decide(shared, found, charge, now_us, intent_now);
    if intent == Intent::Peek {
        return Ok(answer);
    }
    if let Some(units) = owed {
        return owe(shared, shard, found, tag, charge, now_us, (units, answer), force);
    }
    if !answer.outcome.admitted {
        punish(shared, shard, tag, charge, now_us, &mut answer);
    } else if charge.cost > 0 {
        if found == Found::Absent {
            let spilled = usize::from(Shard::spills(charge, now_us, charge.cost));
            let want = Want { cells: 1, spilled };
            if !shard.reserve(shared, charge.numbers, now_us, want, &[tag], force) {
                return Err(Full);
            }
        }
        answer.receipt = Some(shard.charge(shared, found, tag, charge, now_us, charge.cost));
    }
    Ok(answer)
}

/// Takes what a charge with this answer owes, and answers with what it then is.
#[expect(
    clippy::too_many_arguments,
    reason = "a cell, what is asked of it, and whether it may exceed the cap"
)]
fn owe(
    shared: &Shared,
    shard: &mut Shard,
    found: Found,
    tag: u64,
    charge: &Charge<'_>,
    now_us: u64,
    (units, before): (u64, Answer),
    force: bool,
) -> Result<Answer, Full> {
    if units > 0 {
        if found == Found::Absent {
            let spilled = usize::from(Shard::spills(charge, now_us, units));
            let want = Want { cells: 1, spilled };
            if !shard.reserve(shared, charge.numbers, now_us, want, &[tag], force) {
                return Err(Full);
            }
        }
        shard.charge(shared, found, tag, charge, now_us, units);
    }
    Ok(owing(shared, shard, tag, charge, now_us, before))
}

/// What a charge that said `before` answers now that its units are taken.
pub(super) fn owing(
    shared: &Shared,
    shard: &mut Shard,
    tag: u64,
    charge: &Charge<'_>,
    now_us: u64,
    before: Answer,
) -> Answer {
    let found = shard.find(charge.numbers, tag);
    let mut answer = before.owing(shard.decide(shared, found, charge, now_us, Intent::Peek));
    if !answer.outcome.admitted {
        punish(shared, shard, tag, charge, now_us, &mut answer);
    }
    answer
}

/// Counts a refusal against the key, and lets the answer show the block that this starts.
pub(super) fn punish(
    shared: &Shared,
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
    let found = shard.find(charge.numbers, tag);
    let want = match found {
        Found::Spilled(_) => Want::default(),
        Found::Inline(_) => Want { cells: 0, spilled: 1 },
        Found::Absent => Want { cells: 1, spilled: 1 },
    };
    if !shard.reserve(shared, charge.numbers, now_us, want, &[tag], false) {
        shared.events.uncounted.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let found = shard.find(charge.numbers, tag);
    if let Some(end_us) = shard.count_refusal(shared, found, tag, charge, penalty, now_us) {
        answer.show_block(end_us.saturating_sub(now_us));
    }
}
