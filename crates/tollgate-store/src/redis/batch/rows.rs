//! A script's reply becomes rows: each limit's answer, from the values that the script read.
//!
//! The script returns its verdicts and the values from before them. The algorithms here match the
//! Lua mirrors to the microsecond. So rows are computed on this side, where that is cheap, and both
//! sides must agree on each verdict.

use super::{Batch, BatchCharge};
use crate::charge::GroupVerdicts;
use crate::redis::script::msgpack;
use crate::{Answer, Answers, StoreError, StoreErrorKind};
use redis::Value;
use tollgate_core::{
    Algorithm, Intent, LimitParams, LimitState, Outcome, Penalty, Receipt, lua, penalty,
};

/// The reply of `decide.lua`.
#[derive(Debug)]
pub(crate) struct DecideReply {
    pub(crate) now_us: u64,
    /// `1` or `0` for each request.
    pub(crate) verdicts: Vec<u8>,
    /// The values before the decisions, by key.
    pub(crate) values: Vec<Option<Vec<u8>>>,
    /// Outcomes of limits with an expiry log, in request order.
    pub(crate) outcomes: Vec<Vec<u8>>,
}

/// The reply of `adjust.lua`.
#[derive(Debug)]
pub(crate) struct AdjustReply {
    pub(crate) now_us: u64,
    /// The value of each change's key afterwards.
    pub(crate) values: Vec<Option<Vec<u8>>>,
    pub(crate) outcomes: Vec<Vec<u8>>,
    /// For each change, the receipt of a new debt.
    pub(crate) receipts: Vec<Option<Vec<u8>>>,
}

impl DecideReply {
    pub(crate) fn read(value: Value) -> Result<Self, StoreError> {
        let read = || {
            let [now, verdicts, values, outcomes] = parts(value)?;
            let outcomes = list(outcomes)?.into_iter().collect::<Option<_>>()?;
            let (verdicts, values) = (bytes(verdicts)??, list(values)?);
            Some(Self { now_us: instant(now)?, verdicts, values, outcomes })
        };
        read().ok_or_else(invalid_reply)
    }
}

impl AdjustReply {
    pub(crate) fn read(value: Value) -> Result<Self, StoreError> {
        let read = || {
            let [now, values, outcomes, receipts] = parts(value)?;
            let outcomes = list(outcomes)?.into_iter().collect::<Option<_>>()?;
            let (values, receipts) = (list(values)?, list(receipts)?);
            Some(Self { now_us: instant(now)?, values, outcomes, receipts })
        };
        read().ok_or_else(invalid_reply)
    }
}

fn parts(value: Value) -> Option<[Value; 4]> {
    match value {
        Value::Array(parts) => parts.try_into().ok(),
        _ => None,
    }
}

fn list(value: Value) -> Option<Vec<Option<Vec<u8>>>> {
    match value {
        Value::Array(items) => items.into_iter().map(bytes).collect(),
        _ => None,
    }
}

pub(crate) fn bytes(value: Value) -> Option<Option<Vec<u8>>> {
    match value {
        Value::BulkString(bytes) => Some(Some(bytes)),
        Value::SimpleString(text) => Some(Some(text.into_bytes())),
        Value::Nil => Some(None),
        _ => None,
    }
}

fn instant(value: Value) -> Option<u64> {
    str::from_utf8(&bytes(value)??).ok()?.parse().ok()
}

/// The value of one key.
#[derive(Debug, Default)]
pub(crate) struct StoredCell {
    pub(crate) state: LimitState,
    pub(crate) penalty: Option<penalty::PenaltyState>,
    pub(crate) block_us: u64,
}

/// The first byte of a value with a block, a penalty or a reset in front of its state.
const CELL_HEADER: u8 = 127;

impl StoredCell {
    /// Reads a value. For an expiry log, scripts return only the header before the state.
    pub(crate) fn read(params: &LimitParams, value: Option<&[u8]>) -> Option<Self> {
        let (mut cell, mut rest) = (Self::default(), value.unwrap_or_default());
        if let Some((&CELL_HEADER, head)) = rest.split_first() {
            let (block, head) = head.split_first_chunk::<7>()?;
            cell.block_us = block.iter().fold(0, |us, byte| us << 8 | u64::from(*byte));
            let (&length, head) = head.split_first()?;
            let (text, state) = head.split_at_checked(length.into())?;
            // Only scripts, which apply give-backs, use the instant of a reset.
            let text = text.split(|byte| *byte == b'@').next()?;
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

    /// The time for which an enforced limit is still blocked, by its penalty or an operator.
    pub(crate) fn blocked_for_us(&self, penalty: Option<&Penalty>, now_us: u64) -> Option<u64> {
        let by_penalty = penalty
            .zip(self.penalty.as_ref())
            .and_then(|(penalty, state)| penalty.blocked_until_us(state, now_us));
        let by_operator = (now_us < self.block_us).then_some(self.block_us);
        Some(by_penalty.max(by_operator)? - now_us)
    }
}

/// Whether the script computes the limit's rows, because the state is long.
pub(crate) const fn is_expiry_log(params: &LimitParams) -> bool {
    matches!(params, LimitParams::SlidingLog(_) | LimitParams::Concurrency(_))
}

/// Reads the outcome of an expiry log, as computed by the script.
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

/// Computes the rows of every request, in order, and passes them to `answer`. Charges whose keys
/// hold other data get failed rows, and have no part in the verdict. Returns whether there are no
/// such charges.
pub(crate) fn replay_rows(
    batch: &Batch,
    reply: &DecideReply,
    mut answer: impl FnMut(bool, &[Answer]),
) -> Result<bool, StoreError> {
    let mut replay = RowReplay {
        batch,
        now_us: reply.now_us,
        cells: (0..batch.tables.keys.len()).map(|_| None).collect(),
        values: &reply.values,
        outcomes: reply.outcomes.iter(),
    };
    let (mut rows, mut all_readable) = (Vec::new(), true);
    for (index, (intent, charges)) in batch.live_requests().enumerate() {
        rows.clear();
        let admitted = replay.request(intent, charges, &mut rows).ok_or_else(invalid_reply)?;
        if reply.verdicts.get(index) != Some(&if admitted { b'1' } else { b'0' }) {
            return Err(invalid_reply());
        }
        all_readable &= rows.iter().all(|row| row.failure().is_none());
        answer(admitted, &rows);
    }
    Ok(all_readable)
}

/// The error of a key whose data is not the limit's state.
pub(crate) fn other_data() -> StoreError {
    StoreError::new(StoreErrorKind::Rejected, "a key holds other data")
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
        charges: &[BatchCharge],
        rows: &mut Vec<Answer>,
    ) -> Option<bool> {
        let mut verdicts = GroupVerdicts::ADMITTED;
        for charge in charges {
            let row = self.decide_alone(charge, intent)?;
            if row.failure().is_none() {
                verdicts.add(charge.mode, row.outcome.admitted, row.blocked);
            }
            rows.push(row);
        }
        let decided = charges.iter().zip(rows).filter(|(_, row)| row.failure().is_none());
        for (charge, row) in decided {
            match charge.mode.owed().filter(|_| intent == Intent::Take) {
                Some(units) => self.charge_debt(charge, row, units)?,
                None => self.finish(charge, row, intent, verdicts.charges(charge.mode))?,
            }
        }
        Some(verdicts.admitted)
    }

    /// The answer of one limit alone. For an expiry log, it carries the receipt of the script's
    /// charge. State changes here only if a clock jump dated it too far ahead.
    fn decide_alone(&mut self, charge: &BatchCharge, intent: Intent) -> Option<Answer> {
        let params = &self.batch.tables.params[charge.params];
        if self.cells[charge.key].is_none() {
            let value = self.values.get(charge.key)?.as_deref();
            self.cells[charge.key] = StoredCell::read(params, value);
        }
        let Some(cell) = self.cells[charge.key].as_mut() else {
            return Some(Answer::failed(other_data().kind));
        };
        params.redate(&mut cell.state, self.now_us);
        let blocked_us = self.blocked_for_us(charge);
        let mut answer = if is_expiry_log(params) {
            let outcome = expiry_log_outcome(params, self.outcomes.next()?)?;
            let receipt = self.expiry_log_receipt(charge.cost)?;
            Answer { receipt, ..Answer::without_receipt(outcome) }
        } else {
            let peeks = blocked_us.is_some() || charge.mode.owed().is_some();
            self.peek(charge, if peeks { Intent::Peek } else { intent })?
        };
        if let Some(left_us) = blocked_us {
            answer.show_block(left_us);
        }
        Some(answer)
    }

    fn peek(&self, charge: &BatchCharge, intent: Intent) -> Option<Answer> {
        let params = &self.batch.tables.params[charge.params];
        let state = &self.cells[charge.key].as_ref()?.state;
        Some(Answer::without_receipt(params.decide(state, self.now_us, charge.cost, intent)))
    }

    /// The receipt after an expiry log's outcome, if the script charged anything.
    fn expiry_log_receipt(&mut self, cost: u64) -> Option<Option<Receipt>> {
        let next = self.outcomes.as_slice().first().and_then(|next| msgpack::numbers(next));
        let Some([at_us, mark_us]) = next else { return Some(None) };
        self.outcomes.next();
        Some(Some(Receipt {
            cost,
            at_us: u64::try_from(at_us).ok()?,
            mark_us: u64::try_from(mark_us + lua::EXPIRY_LOG_EPOCH_US as i64).ok()?,
            ..Receipt::default()
        }))
    }

    fn blocked_for_us(&self, charge: &BatchCharge) -> Option<u64> {
        let penalty = charge.penalty.map(|penalty| &self.batch.tables.penalties[penalty]);
        let cell = self.cells[charge.key].as_ref().filter(|_| charge.mode.is_enforced())?;
        cell.blocked_for_us(penalty, self.now_us)
    }

    /// Counts a refusal as a violation. Returns the length of the block that it starts, if any.
    fn count_violation(&mut self, charge: &BatchCharge, row: &Answer) -> Option<u64> {
        let counts = !row.outcome.admitted && !row.blocked && charge.mode.is_enforced();
        let penalty = &self.batch.tables.penalties[charge.penalty.filter(|_| counts)?];
        let state = self.cells[charge.key].as_mut()?.penalty.get_or_insert_default();
        penalty.count(state, self.now_us).map(|end_us| end_us - self.now_us)
    }

    /// Charges an admitted request or counts a refusal, and updates the row.
    fn finish(
        &mut self,
        charge: &BatchCharge,
        row: &mut Answer,
        intent: Intent,
        admitted: bool,
    ) -> Option<()> {
        let params = &self.batch.tables.params[charge.params];
        let (takes, taken) = (intent == Intent::Take, row.receipt.take());
        if takes && !row.outcome.admitted {
            if let Some(left_us) = self.count_violation(charge, row) {
                row.show_block(left_us);
            }
        } else if takes && admitted && charge.cost > 0 {
            let state = &mut self.cells[charge.key].as_mut()?.state;
            row.receipt = if is_expiry_log(params) {
                taken
            } else {
                Some(params.charge(state, self.now_us, charge.cost))
            };
        } else if takes && !admitted && !is_expiry_log(params) {
            // Another limit refused, so nothing was charged.
            row.outcome = self.peek(charge, Intent::Peek)?.outcome;
        }
        Some(())
    }

    /// Charges a debt, counts a refusal, and updates the row.
    fn charge_debt(&mut self, charge: &BatchCharge, row: &mut Answer, units: u64) -> Option<()> {
        let params = &self.batch.tables.params[charge.params];
        let before = Answer { receipt: None, ..*row };
        let mut after = before;
        // The script computed the expiry log's outcome after charging the debt.
        if !is_expiry_log(params) {
            if units > 0 {
                params.charge(&mut self.cells[charge.key].as_mut()?.state, self.now_us, units);
            }
            after = self.peek(charge, Intent::Peek)?;
        }
        let started_us = self.count_violation(charge, &before);
        *row = before.after_debt(after);
        // A block that starts at the end of time ends at once, but is shown.
        if let Some(left_us) = started_us.or_else(|| self.blocked_for_us(charge)) {
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
