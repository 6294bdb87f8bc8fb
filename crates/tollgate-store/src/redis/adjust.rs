//! Settlements, refunds, debts and blocks: one script call changes several keys.

use super::RedisStore;
use super::batch::rows::{
    AdjustReply, StoredCell, expiry_log_outcome, invalid_reply, is_expiry_log, push_rows,
};
use super::batch::{NamedCharge, ScriptTables};
use super::client::connection::ScriptCall;
use super::key::end_marker_key;
use super::reservation::{ONCE, list};
use super::script;
use super::script::msgpack::{self, array, clamp};
use crate::{Adjustment, Answer, Answers, Change, StoreError};
use std::time::Duration;
use tollgate_core::{Algorithm, Intent, LimitParams, Receipt, lua};

impl RedisStore {
    /// Applies changes; those of one slot together. Returns the rows in order.
    pub(super) async fn apply_changes(
        &self,
        now_us: Option<u64>,
        changes: &[(NamedCharge, Change)],
        once: Option<ApplyOnce<'_>>,
    ) -> Result<Vec<Answer>, StoreError> {
        let names = changes.iter().map(|(charge, _)| charge.name.as_slice());
        let slots = self.servers.group_by_slot(names);
        let apply = |(slot, indexes): &(u16, Vec<usize>)| {
            let slot = *slot;
            let own: Vec<_> = indexes.iter().map(|i| (&changes[*i].0, &changes[*i].1)).collect();
            let mut batch = ChangeBatch::new(own.iter().copied());
            async move {
                let (script, program) = match once {
                    None => (&*script::ADJUST, batch.program()),
                    Some(once) => (&*ONCE, batch.program_once(once)),
                };
                let reply = self.servers.call(slot, script, &batch.tables, program, now_us);
                rows(own, &AdjustReply::read(reply.await?)?)
            }
        };
        // Each change is applied, whether or not the server of another one fails.
        let rows = futures_util::future::join_all(slots.iter().map(apply)).await;
        let rows = rows.into_iter().collect::<Result<Vec<_>, _>>()?;
        let indexes = slots.iter().flat_map(|(_, indexes)| indexes);
        let mut rows: Vec<_> = indexes.zip(rows.into_iter().flatten()).collect();
        rows.sort_by_key(|(index, _)| **index);
        Ok(rows.into_iter().map(|(_, row)| row).collect())
    }

    /// Applies adjustments, and tells leases of the limits that changed.
    pub(super) async fn adjust(
        &self,
        now_us: u64,
        adjustments: &[Adjustment<'_>],
        answers: &mut Answers,
    ) -> Result<(), StoreError> {
        let called_us = now_us;
        let now_us = self.options.script_time(now_us);
        let change = |change| to_server_time(change, called_us);
        let named =
            |one: &Adjustment<'_>| (self.named_charge(&one.charge, called_us), change(one.change));
        let changes: Vec<_> = adjustments.iter().map(named).collect();
        let rows = self.with_deadline(self.apply_changes(now_us, &changes, None)).await?;
        for one in adjustments {
            let surrender = matches!(one.change, Change::Block { .. });
            self.leases.limit_changed(one.charge.limit, one.charge.key, surrender);
        }
        push_rows(answers, true, &rows);
        Ok(())
    }
}

/// The give-back of a charge under `params`, if units were charged.
pub(super) fn give_back_of(params: &LimitParams, row: &Answer) -> Option<Change> {
    let receipt = row.receipt?;
    Some(Change::GiveBack { units: receipt.cost, receipt, charged_params: *params })
}

/// The end of a reservation, whose changes each slot applies once.
#[derive(Clone, Copy, Debug)]
pub(super) struct ApplyOnce<'a> {
    /// The key of the record.
    pub(super) record: &'a [u8],
    /// The expiry of the open record. A failover can lose the end, but not change this.
    pub(super) open_until_us: i64,
    /// The time until the ended record expires.
    pub(super) left_ms: i64,
}

/// Changes of one call, with the tables that they refer to.
#[derive(Debug, Default)]
pub(super) struct ChangeBatch {
    pub(super) tables: ScriptTables,
    flat: Vec<i64>,
}

impl ChangeBatch {
    pub(super) fn new<'a>(
        changes: impl IntoIterator<Item = (&'a NamedCharge, &'a Change)>,
    ) -> Self {
        let mut batch = Self::default();
        changes.into_iter().for_each(|(charge, change)| batch.push(charge, change));
        batch
    }

    fn push(&mut self, charge: &NamedCharge, change: &Change) {
        let NamedCharge { name, params, cost, penalty, .. } = charge;
        let key = self.tables.key_index_of(name.clone());
        let own = self.tables.params_index(params);
        let (kind, amount, receipt, charged) = match *change {
            Change::GiveBack { units, receipt, charged_params } => {
                (1, units, receipt, charged_params)
            }
            Change::Owe { units } => (2, units, Receipt::default(), *params),
            Change::Block { until_us: for_us } => (3, for_us, Receipt::default(), *params),
            Change::Unblock => (4, 0, Receipt::default(), *params),
        };
        let mark_us = if is_expiry_log(params) {
            receipt.mark_us as i64 - lua::EXPIRY_LOG_EPOCH_US as i64
        } else {
            clamp(receipt.mark_us)
        };
        let charged = self.tables.params_index(&charged);
        let penalty = self.tables.penalty_index(penalty.as_ref());
        self.flat.extend([
            key as i64 + 1,
            own as i64 + 1,
            kind,
            clamp(amount),
            clamp(receipt.at_us),
            mark_us,
            i64::from(receipt.mark_fraction),
            charged as i64 + 1,
            clamp(*cost),
            penalty.map_or(0, |penalty| penalty as i64 + 1),
        ]);
    }

    pub(super) fn program(&self) -> Vec<u8> {
        array(&self.flat)
    }

    /// The call that applies the changes.
    pub(super) fn call(&self, now_us: Option<u64>, ttl_margin: Duration) -> ScriptCall {
        ScriptCall::new(&script::ADJUST, &self.tables, self.program(), now_us, ttl_margin)
    }

    /// The program of changes that a marker in their slot makes once.
    fn program_once(
        &mut self,
        ApplyOnce { record, open_until_us, left_ms }: ApplyOnce<'_>,
    ) -> Vec<u8> {
        let program = self.program();
        let first = self.tables.keys.first().map_or(&[][..], Vec::as_slice);
        let marker = end_marker_key(first, record);
        self.tables.key_index_of(marker);
        list(&[&array(&[open_until_us, left_ms]), &program])
    }
}

/// Converts a change for a server with its own clock and without time zones. The end of a block
/// becomes its duration, and a give-back gets the windows of its calendar.
pub(super) fn to_server_time(change: Change, now_us: u64) -> Change {
    match change {
        Change::Block { until_us } => Change::Block { until_us: until_us.saturating_sub(now_us) },
        Change::GiveBack { units, receipt, charged_params } => {
            let charged_params = charged_params.resolve_calendar(now_us);
            Change::GiveBack { units, receipt, charged_params }
        }
        other => other,
    }
}

/// The rows after the changes: a peek, with the receipt of a new debt.
pub(super) fn rows<'a>(
    changes: impl IntoIterator<Item = (&'a NamedCharge, &'a Change)>,
    reply: &AdjustReply,
) -> Result<Vec<Answer>, StoreError> {
    let mut outcomes = reply.outcomes.iter();
    let mut values = reply.values.iter().zip(&reply.receipts);
    let mut rows = Vec::with_capacity(reply.values.len());
    for (charge, change) in changes {
        let (value, receipt) = values.next().ok_or_else(invalid_reply)?;
        let mut next = || outcomes.next().map(Vec::as_slice);
        let row = row(charge, value.as_deref(), reply.now_us, &mut next);
        let mut row = row.ok_or_else(invalid_reply)?;
        if let (Some(receipt), Change::Owe { units }) = (receipt, change) {
            let receipt = self::receipt(&charge.params, *units, receipt);
            row.receipt = Some(receipt.ok_or_else(invalid_reply)?);
        }
        rows.push(row);
    }
    match values.next() {
        None => Ok(rows),
        Some(_) => Err(invalid_reply()),
    }
}

fn row<'a>(
    charge: &NamedCharge,
    value: Option<&[u8]>,
    now_us: u64,
    outcome: &mut impl FnMut() -> Option<&'a [u8]>,
) -> Option<Answer> {
    let cell = StoredCell::read(&charge.params, value)?;
    let mut row = Answer::without_receipt(if is_expiry_log(&charge.params) {
        expiry_log_outcome(&charge.params, outcome()?)?
    } else {
        charge.params.decide(&cell.state, now_us, charge.cost, Intent::Peek)
    });
    if charge.mode.is_enforced()
        && let Some(left_us) = cell.blocked_for_us(charge.penalty.as_ref(), now_us)
    {
        row.show_block(left_us);
    }
    Some(row)
}

fn receipt(params: &LimitParams, cost: u64, packed: &[u8]) -> Option<Receipt> {
    let [at_us, mark_us, fraction] = msgpack::numbers(packed)?;
    let epoch = if is_expiry_log(params) { lua::EXPIRY_LOG_EPOCH_US as i64 } else { 0 };
    Some(Receipt {
        cost,
        at_us: u64::try_from(at_us).ok()?,
        mark_us: u64::try_from(mark_us + epoch).ok()?,
        mark_fraction: u32::try_from(fraction).ok()?,
        is_shared: false,
    })
}
