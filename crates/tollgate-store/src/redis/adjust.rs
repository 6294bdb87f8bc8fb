//! Settlements, cancellations, debts and blocks, on their way into one script call.

use super::batch::Tables;
use super::key::Namer;
use super::pack::{self, array, clamp};
use super::replay::{Cell, is_ledger, ledger_outcome, senseless};
use super::reply::Adjusted;
use crate::{Adjustment, Answer, Answers, Change, Charge, Mode, StoreError};
use tollgate_core::{Algorithm, Intent, Numbers, Receipt, lua};

/// Changes and what they refer to.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) tables: Tables,
    flat: Vec<i64>,
}

impl Changes {
    pub(super) fn new(namer: &Namer, adjustments: &[Adjustment<'_>]) -> Self {
        let mut changes = Self::default();
        for adjustment in adjustments {
            let Charge { limit, key, numbers, .. } = adjustment.charge;
            changes.push(namer.name(limit, key, numbers), adjustment);
        }
        changes
    }

    /// Adds a change of what is kept under `name`.
    pub(super) fn push(&mut self, name: Vec<u8>, adjustment: &Adjustment<'_>) {
        let Charge { numbers, cost, penalty, .. } = adjustment.charge;
        let key = self.tables.key(name);
        let own = self.tables.numbers(numbers);
        let (kind, amount, receipt, under) = match adjustment.change {
            Change::GiveBack { units, receipt, under } => (1, units, receipt, under),
            Change::Owe { units } => (2, units, Receipt::default(), *numbers),
            Change::Block { until_us } => (3, until_us, Receipt::default(), *numbers),
            Change::Unblock => (4, 0, Receipt::default(), *numbers),
        };
        let mark_us = match is_ledger(numbers) {
            true => receipt.mark_us as i64 - lua::LEDGER_EPOCH_US as i64,
            false => clamp(receipt.mark_us),
        };
        let under = self.tables.numbers(&under);
        let penalty = self.tables.penalty(penalty).map_or(0, |penalty| penalty as i64 + 1);
        self.flat.extend([
            key as i64 + 1,
            own as i64 + 1,
            kind,
            clamp(amount),
            clamp(receipt.at_us),
            mark_us,
            i64::from(receipt.mark_fraction),
            under as i64 + 1,
            clamp(cost),
            penalty,
        ]);
    }

    pub(super) fn program(&self) -> Vec<u8> {
        array(&self.flat)
    }
}

/// The rows afterwards: what a peek says, with the receipt of what is newly owed.
pub(super) fn rows(
    adjustments: &[Adjustment<'_>],
    adjusted: &Adjusted,
    answers: &mut Answers,
) -> Result<(), StoreError> {
    let mut outcomes = adjusted.outcomes.iter();
    let values = adjusted.values.iter().zip(&adjusted.receipts);
    if adjusted.values.len() != adjustments.len() {
        return Err(senseless());
    }
    for (adjustment, (value, receipt)) in adjustments.iter().zip(values) {
        let charge = &adjustment.charge;
        let mut next = || outcomes.next().map(Vec::as_slice);
        let row = row(charge, value.as_deref(), adjusted.now_us, &mut next);
        let mut row = row.ok_or_else(senseless)?;
        if let (Some(receipt), Change::Owe { units }) = (receipt, adjustment.change) {
            let receipt = self::receipt(charge.numbers, units, receipt);
            row.receipt = Some(receipt.ok_or_else(senseless)?);
        }
        answers.push(row);
    }
    answers.finish(true);
    Ok(())
}

fn row<'a>(
    charge: &Charge<'_>,
    value: Option<&[u8]>,
    now_us: u64,
    outcome: &mut impl FnMut() -> Option<&'a [u8]>,
) -> Option<Answer> {
    let cell = Cell::read(charge.numbers, value)?;
    let mut row = Answer::untaken(match is_ledger(charge.numbers) {
        true => ledger_outcome(charge.numbers, outcome()?)?,
        false => charge.numbers.decide(&cell.state, now_us, charge.cost, Intent::Peek),
    });
    if charge.mode == Mode::Enforce
        && let Some(left_us) = cell.blocked_for_us(charge.penalty, now_us)
    {
        row.show_block(charge.numbers, left_us);
    }
    Some(row)
}

fn receipt(numbers: &Numbers, cost: u64, packed: &[u8]) -> Option<Receipt> {
    let [at_us, mark_us, fraction] = pack::numbers(packed)?;
    let epoch = if is_ledger(numbers) { lua::LEDGER_EPOCH_US as i64 } else { 0 };
    Some(Receipt {
        cost,
        at_us: u64::try_from(at_us).ok()?,
        mark_us: u64::try_from(mark_us + epoch).ok()?,
        mark_fraction: u32::try_from(fraction).ok()?,
    })
}
