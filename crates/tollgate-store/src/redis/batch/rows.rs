//! From what a script read to what every limit answered.
//!
//! The script says who was admitted and what the values were before. The algorithms here are the
//! same to the microsecond, so the rows are worked out again on this side, where it is cheap; that
//! both sides agree on who was admitted is checked each time.

use super::reply::DecideReply;
use super::{Batch, BatchCharge};
use crate::redis::script::msgpack;
use crate::{Answer, Answers, StoreError, StoreErrorKind};
use tollgate_core::{
    Algorithm, Intent, LimitParams, LimitState, Outcome, Penalty, Receipt, lua, penalty,
};

/// What one key has.
#[derive(Debug, Default)]
pub(crate) struct StoredCell {
    pub(crate) state: LimitState,
    pub(crate) penalty: Option<penalty::PenaltyState>,
    pub(crate) block_us: u64,
}

/// What a value that carries a head begins with.
const CELL_HEADER: u8 = 127;

impl StoredCell {
    /// Reads a value; of a ledger only the head.
    pub(crate) fn read(params: &LimitParams, value: Option<&[u8]>) -> Option<Self> {
        let (mut cell, mut rest) = (Self::default(), value.unwrap_or_default());
        if let Some((&CELL_HEADER, head)) = rest.split_first() {
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
            cell.state = lua::decode_state(params, rest)?;
        }
        Some(cell)
    }

    /// How long an enforced limit with this penalty is blocked for.
    pub(crate) fn blocked_for_us(&self, penalty: Option<&Penalty>, now_us: u64) -> Option<u64> {
        let by_penalty = penalty
            .zip(self.penalty.as_ref())
            .and_then(|(penalty, state)| penalty.blocked_until_us(state, now_us));
        let by_operator = (now_us < self.block_us).then_some(self.block_us);
        Some(by_penalty.max(by_operator)? - now_us)
    }
}

/// Whether a limit's rows are worked out where its state is.
pub(crate) const fn is_expiry_log(params: &LimitParams) -> bool {
    matches!(params, LimitParams::SlidingLog(_) | LimitParams::Concurrency(_))
}

/// A ledger's own outcome, as the script worked it out.
pub(crate) fn expiry_log_outcome(params: &LimitParams, packed: &[u8]) -> Option<Outcome> {
    let [admitted, remaining, retry_us, reset_us, more_us] = msgpack::numbers(packed)?;
    let mut outcome = Outcome::admitting(params.capacity());
    outcome.admitted = admitted == 1;
    outcome.remaining = u64::try_from(remaining).ok()?;
    outcome.retry_after_us = u64::try_from(retry_us).ok();
    outcome.reset_after_us = u64::try_from(reset_us).ok()?;
    outcome.more_after_us = u64::try_from(more_us).ok();
    Some(outcome)
}

/// Answers every request of the batch in order.
pub(crate) fn replay_rows(
    batch: &Batch,
    decided: &DecideReply,
    mut answer: impl FnMut(bool, &[Answer]),
) -> Result<(), StoreError> {
    let mut replay = RowReplay {
        batch,
        now_us: decided.now_us,
        cells: (0..batch.tables.keys.len()).map(|_| None).collect(),
        values: &decided.values,
        outcomes: decided.outcomes.iter(),
    };
    let mut rows = Vec::new();
    for (index, (intent, lines)) in batch.live_requests().enumerate() {
        rows.clear();
        let admitted = replay.request(intent, lines, &mut rows).ok_or_else(invalid_reply)?;
        if decided.verdicts.get(index) != Some(&if admitted { b'1' } else { b'0' }) {
            return Err(invalid_reply());
        }
        answer(admitted, &rows);
    }
    Ok(())
}

pub(crate) fn invalid_reply() -> StoreError {
    StoreError::new(StoreErrorKind::Protocol, "")
}

struct RowReplay<'a> {
    batch: &'a Batch,
    now_us: u64,
    cells: Vec<Option<StoredCell>>,
    values: &'a [Option<Vec<u8>>],
    outcomes: std::slice::Iter<'a, Vec<u8>>,
}

impl RowReplay<'_> {
    fn request(
        &mut self,
        intent: Intent,
        lines: &[BatchCharge],
        rows: &mut Vec<Answer>,
    ) -> Option<bool> {
        for line in lines {
            let row = self.decide_alone(line, intent)?;
            rows.push(row);
        }
        let ledgers = self.fill_expiry_log_rows(lines, rows)?;
        let admits =
            |(line, row): (&BatchCharge, &Answer)| !line.mode.is_enforced() || row.outcome.admitted;
        let admitted = lines.iter().zip(&*rows).all(admits);
        for (n, (line, row)) in lines.iter().zip(rows).enumerate() {
            self.finish(line, row, intent, admitted, ledgers[n])?;
        }
        Some(admitted)
    }

    /// What the limit alone says. Changes nothing but what a leaping clock dated too far ahead.
    fn decide_alone(&mut self, line: &BatchCharge, intent: Intent) -> Option<Answer> {
        let params = &self.batch.tables.params[line.params];
        if self.cells[line.key].is_none() {
            let value = self.values.get(line.key)?.as_deref();
            self.cells[line.key] = Some(StoredCell::read(params, value)?);
        }
        let cell = self.cells[line.key].as_mut()?;
        params.redate(&mut cell.state, self.now_us);
        let blocked = self.blocked(line);
        let looks = blocked.is_some() || line.mode.owed().is_some();
        let intent = if looks { Intent::Peek } else { intent };
        let cell = self.cells[line.key].as_ref()?;
        let mut answer =
            Answer::without_receipt(params.decide(&cell.state, self.now_us, line.cost, intent));
        if let Some(left_us) = blocked {
            answer.show_block(left_us);
        }
        Some(answer)
    }

    fn blocked(&self, line: &BatchCharge) -> Option<u64> {
        let penalty = line.penalty.map(|penalty| &self.batch.tables.penalties[penalty]);
        let cell = self.cells[line.key].as_ref().filter(|_| line.mode.is_enforced())?;
        cell.blocked_for_us(penalty, self.now_us)
    }

    /// Puts the ledgers' own outcomes into their rows, and answers with the receipts of what they
    /// took.
    fn fill_expiry_log_rows(
        &mut self,
        lines: &[BatchCharge],
        rows: &mut [Answer],
    ) -> Option<Vec<Option<Receipt>>> {
        let mut receipts = Vec::with_capacity(lines.len());
        for (line, row) in lines.iter().zip(rows) {
            let params = &self.batch.tables.params[line.params];
            let mut receipt = None;
            if is_expiry_log(params) {
                let outcome = expiry_log_outcome(params, self.outcomes.next()?)?;
                *row = Answer::without_receipt(outcome);
                if let Some(left_us) = self.blocked(line) {
                    row.show_block(left_us);
                }
                if let Some([at_us, mark_us]) =
                    self.outcomes.as_slice().first().and_then(|next| msgpack::numbers(next))
                {
                    self.outcomes.next();
                    receipt = Some(Receipt {
                        cost: line.cost,
                        at_us: u64::try_from(at_us).ok()?,
                        mark_us: u64::try_from(mark_us + lua::EXPIRY_LOG_EPOCH_US as i64).ok()?,
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
        line: &BatchCharge,
        row: &mut Answer,
        intent: Intent,
        admitted: bool,
        ledger: Option<Receipt>,
    ) -> Option<()> {
        let params = &self.batch.tables.params[line.params];
        let own = row.outcome.admitted;
        if let (Intent::Take, Some(units)) = (intent, line.mode.owed()) {
            return self.charge_debt(line, row, units);
        }
        let cell = self.cells[line.key].as_mut()?;
        match (intent, admitted && own) {
            (Intent::Take, true) if line.cost > 0 => {
                row.receipt = match is_expiry_log(params) {
                    true => ledger,
                    false => Some(params.charge(&mut cell.state, self.now_us, line.cost)),
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
            (Intent::Take, false) if own && !is_expiry_log(params) => {
                row.outcome = params.decide(&cell.state, self.now_us, line.cost, Intent::Peek);
            }
            _ => {}
        }
        Some(())
    }
}

impl RowReplay<'_> {
    /// Takes what is owed, counts a refusal, and lets the row show both.
    fn charge_debt(&mut self, line: &BatchCharge, row: &mut Answer, units: u64) -> Option<()> {
        let params = &self.batch.tables.params[line.params];
        let before = *row;
        let cell = self.cells[line.key].as_mut()?;
        if !is_expiry_log(params) && units > 0 {
            params.charge(&mut cell.state, self.now_us, units);
        }
        let counts = !before.outcome.admitted && !before.blocked && line.mode.is_enforced();
        let started = line.penalty.filter(|_| counts).and_then(|penalty| {
            let penalty = &self.batch.tables.penalties[penalty];
            penalty.count(cell.penalty.get_or_insert_default(), self.now_us)
        });
        let after = match is_expiry_log(params) {
            // The script worked it out after taking what was owed.
            true => before,
            false => {
                let outcome = params.decide(&cell.state, self.now_us, line.cost, Intent::Peek);
                Answer::without_receipt(outcome)
            }
        };
        *row = before.after_debt(after);
        // One that starts at the end of time is over at once, and shown all the same.
        let started = started.map(|end_us| end_us - self.now_us);
        if let Some(left_us) = started.or_else(|| self.blocked(line)) {
            row.show_block(left_us);
        }
        Some(())
    }
}

/// Appends one request's rows.
pub(crate) fn push_rows(answers: &mut Answers, admitted: bool, rows: &[Answer]) {
    rows.iter().for_each(|row| answers.push(*row));
    answers.finish(admitted);
}
