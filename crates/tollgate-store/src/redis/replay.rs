//! From what a script read to what every limit answered.
//!
//! The script says who was admitted and what the values were before. The algorithms here are the same to the microsecond, so the rows are
//! worked out again on this side, where it is cheap; that both sides agree on who was admitted is checked each time.

use super::batch::{Batch, Line};
use super::pack;
use super::reply::Decided;
use crate::{Answer, Answers, StoreError, StoreErrorKind};
use tollgate_core::{Algorithm, Intent, Numbers, Outcome, Penalty, Receipt, State, lua, penalty};

/// What one key has.
#[derive(Debug, Default)]
pub(super) struct Cell {
    pub(super) state: State,
    pub(super) penalty: Option<penalty::State>,
    pub(super) block_us: u64,
}

/// What a value that carries a head begins with.
const HEAD: u8 = 127;

impl Cell {
    /// Reads a value; of a ledger only the head.
    pub(super) fn read(numbers: &Numbers, value: Option<&[u8]>) -> Option<Self> {
        let (mut cell, mut rest) = (Self::default(), value.unwrap_or_default());
        if let Some((&HEAD, head)) = rest.split_first() {
            let (block, head) = head.split_first_chunk::<7>()?;
            cell.block_us = block.iter().fold(0, |us, byte| us << 8 | u64::from(*byte));
            let (&length, head) = head.split_first()?;
            let (text, state) = head.split_at_checked(length.into())?;
            if !text.is_empty() {
                cell.penalty = Some(lua::decode_penalty(text)?);
            }
            rest = state;
        }
        if !rest.is_empty() {
            cell.state = lua::decode_state(numbers, rest)?;
        }
        Some(cell)
    }

    /// How long an enforced limit with this penalty is blocked for.
    pub(super) fn blocked_for_us(&self, penalty: Option<&Penalty>, now_us: u64) -> Option<u64> {
        let by_penalty = penalty
            .zip(self.penalty.as_ref())
            .and_then(|(penalty, state)| penalty.blocked_until_us(state, now_us));
        let by_operator = (now_us < self.block_us).then_some(self.block_us);
        Some(by_penalty.max(by_operator)? - now_us)
    }
}

/// Whether a limit's rows are worked out where its state is.
pub(super) const fn is_ledger(numbers: &Numbers) -> bool {
    matches!(numbers, Numbers::SlidingLog(_) | Numbers::Concurrency(_))
}

/// A ledger's own outcome, as the script worked it out.
pub(super) fn ledger_outcome(numbers: &Numbers, packed: &[u8]) -> Option<Outcome> {
    let [admitted, remaining, retry_us, reset_us, more_us] = pack::numbers(packed)?;
    let mut outcome = Outcome::unasked(numbers.capacity());
    outcome.admitted = admitted == 1;
    outcome.remaining = u64::try_from(remaining).ok()?;
    outcome.retry_after_us = u64::try_from(retry_us).ok();
    outcome.reset_after_us = u64::try_from(reset_us).ok()?;
    outcome.more_after_us = u64::try_from(more_us).ok();
    Some(outcome)
}

/// Answers every request of the batch in order.
pub(super) fn replay(
    batch: &Batch,
    decided: &Decided,
    mut answer: impl FnMut(bool, &[Answer]),
) -> Result<(), StoreError> {
    let mut replay = Replay {
        batch,
        now_us: decided.now_us,
        cells: (0..batch.tables.keys.len()).map(|_| None).collect(),
        values: &decided.values,
        outcomes: decided.outcomes.iter(),
    };
    let mut rows = Vec::new();
    for (index, (intent, lines)) in batch.each().enumerate() {
        rows.clear();
        let admitted = replay.request(intent, lines, &mut rows).ok_or_else(senseless)?;
        if decided.verdicts.get(index) != Some(&if admitted { b'1' } else { b'0' }) {
            return Err(senseless());
        }
        answer(admitted, &rows);
    }
    Ok(())
}

pub(super) fn senseless() -> StoreError {
    StoreError::new(StoreErrorKind::Protocol, "")
}

struct Replay<'a> {
    batch: &'a Batch,
    now_us: u64,
    cells: Vec<Option<Cell>>,
    values: &'a [Option<Vec<u8>>],
    outcomes: std::slice::Iter<'a, Vec<u8>>,
}

impl Replay<'_> {
    fn request(&mut self, intent: Intent, lines: &[Line], rows: &mut Vec<Answer>) -> Option<bool> {
        for line in lines {
            let row = self.alone(line, intent)?;
            rows.push(row);
        }
        let ledgers = self.ledgers(lines, rows)?;
        let admits =
            |(line, row): (&Line, &Answer)| !line.mode.is_enforced() || row.outcome.admitted;
        let admitted = lines.iter().zip(&*rows).all(admits);
        for (n, (line, row)) in lines.iter().zip(rows).enumerate() {
            self.finish(line, row, intent, admitted, ledgers[n])?;
        }
        Some(admitted)
    }

    /// What the limit alone says. Changes nothing but what a leaping clock dated too far ahead.
    fn alone(&mut self, line: &Line, intent: Intent) -> Option<Answer> {
        let numbers = &self.batch.tables.numbers[line.numbers];
        if self.cells[line.key].is_none() {
            let value = self.values.get(line.key)?.as_deref();
            self.cells[line.key] = Some(Cell::read(numbers, value)?);
        }
        let cell = self.cells[line.key].as_mut()?;
        numbers.redate(&mut cell.state, self.now_us);
        let blocked = self.blocked(line);
        let looks = blocked.is_some() || line.mode.owed().is_some();
        let intent = if looks { Intent::Peek } else { intent };
        let cell = self.cells[line.key].as_ref()?;
        let mut answer =
            Answer::untaken(numbers.decide(&cell.state, self.now_us, line.cost, intent));
        if let Some(left_us) = blocked {
            answer.show_block(left_us);
        }
        Some(answer)
    }

    fn blocked(&self, line: &Line) -> Option<u64> {
        let penalty = line.penalty.map(|penalty| &self.batch.tables.penalties[penalty]);
        let cell = self.cells[line.key].as_ref().filter(|_| line.mode.is_enforced())?;
        cell.blocked_for_us(penalty, self.now_us)
    }

    /// Puts the ledgers' own outcomes into their rows, and answers with the receipts of what they took.
    fn ledgers(&mut self, lines: &[Line], rows: &mut [Answer]) -> Option<Vec<Option<Receipt>>> {
        let mut receipts = Vec::with_capacity(lines.len());
        for (line, row) in lines.iter().zip(rows) {
            let numbers = &self.batch.tables.numbers[line.numbers];
            let mut receipt = None;
            if is_ledger(numbers) {
                let outcome = ledger_outcome(numbers, self.outcomes.next()?)?;
                *row = Answer::untaken(outcome);
                if let Some(left_us) = self.blocked(line) {
                    row.show_block(left_us);
                }
                if let Some([at_us, mark_us]) =
                    self.outcomes.as_slice().first().and_then(|next| pack::numbers(next))
                {
                    self.outcomes.next();
                    receipt = Some(Receipt {
                        cost: line.cost,
                        at_us: u64::try_from(at_us).ok()?,
                        mark_us: u64::try_from(mark_us + lua::LEDGER_EPOCH_US as i64).ok()?,
                        mark_fraction: 0,
                    });
                }
            }
            receipts.push(receipt);
        }
        Some(receipts)
    }

    /// Takes what was admitted, counts what was refused, and lets the row show it.
    fn finish(
        &mut self,
        line: &Line,
        row: &mut Answer,
        intent: Intent,
        admitted: bool,
        ledger: Option<Receipt>,
    ) -> Option<()> {
        let numbers = &self.batch.tables.numbers[line.numbers];
        let own = row.outcome.admitted;
        if let (Intent::Take, Some(units)) = (intent, line.mode.owed()) {
            return self.owe(line, row, units);
        }
        let cell = self.cells[line.key].as_mut()?;
        match (intent, admitted && own) {
            (Intent::Take, true) if line.cost > 0 => {
                row.receipt = match is_ledger(numbers) {
                    true => ledger,
                    false => Some(numbers.charge(&mut cell.state, self.now_us, line.cost)),
                };
            }
            (Intent::Take, false) if !own && !row.blocked && line.mode.is_enforced() => {
                if let Some(penalty) = line.penalty {
                    let penalty = &self.batch.tables.penalties[penalty];
                    let counted = cell.penalty.get_or_insert_default();
                    if let Some(end_us) = penalty.count(counted, self.now_us) {
                        row.show_block(end_us - self.now_us);
                    }
                }
            }
            // Nothing was taken after all, so the numbers are those of now.
            (Intent::Take, false) if own && !is_ledger(numbers) => {
                row.outcome = numbers.decide(&cell.state, self.now_us, line.cost, Intent::Peek);
            }
            _ => {}
        }
        Some(())
    }
}

impl Replay<'_> {
    /// Takes what is owed, counts a refusal, and lets the row show both.
    fn owe(&mut self, line: &Line, row: &mut Answer, units: u64) -> Option<()> {
        let numbers = &self.batch.tables.numbers[line.numbers];
        let before = *row;
        let cell = self.cells[line.key].as_mut()?;
        if !is_ledger(numbers) && units > 0 {
            numbers.charge(&mut cell.state, self.now_us, units);
        }
        let counts = !before.outcome.admitted && !before.blocked && line.mode.is_enforced();
        let started = line.penalty.filter(|_| counts).and_then(|penalty| {
            let penalty = &self.batch.tables.penalties[penalty];
            penalty.count(cell.penalty.get_or_insert_default(), self.now_us)
        });
        let after = match is_ledger(numbers) {
            // The script worked it out after taking what was owed.
            true => before,
            false => {
                let outcome = numbers.decide(&cell.state, self.now_us, line.cost, Intent::Peek);
                Answer::untaken(outcome)
            }
        };
        *row = before.owing(after);
        // One that starts at the end of time is over at once, and shown all the same.
        let started = started.map(|end_us| end_us - self.now_us);
        if let Some(left_us) = started.or_else(|| self.blocked(line)) {
            row.show_block(left_us);
        }
        Some(())
    }
}

/// Appends one request's rows.
pub(super) fn push_rows(answers: &mut Answers, admitted: bool, rows: &[Answer]) {
    rows.iter().for_each(|row| answers.push(*row));
    answers.finish(admitted);
}
