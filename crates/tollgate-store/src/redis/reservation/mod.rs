//! Reservations: records in Redis that any node can end.
//!
//! A record has hashed keys and the caller's note. If all keys are in one slot, one script ends the
//! record and applies its changes. In a cluster they may be in several slots. Then the record is
//! closed first, which decides between different ends. Each slot applies its changes together with
//! a marker, so that a repeated end changes only the slots that it has not reached yet.

mod rows;

use super::RedisStore;
use super::adjust::{self, ApplyOnce, ChangeBatch};
use super::batch::rows::{AdjustReply, invalid_reply};
use super::batch::{NamedCharge, ScriptTables};
use super::cluster::slot_of;
use super::script::msgpack::{self, array};
use super::script::{CHANGES, Script};
use crate::{
    Answer, BoxedReply, Change, END_REPEATABLE_US, EndedReservation, NewReservation, OpenOutcome,
    Settlement, StateKey, StoreError,
};
use redis::Value;
use std::sync::LazyLock;

const RECORD: &str = include_str!("record.lua");
static OPEN: LazyLock<Script> =
    LazyLock::new(|| Script::any_state([RECORD, include_str!("open.lua")]));
static FIND: LazyLock<Script> =
    LazyLock::new(|| Script::any_state([RECORD, include_str!("find.lua")]));
/// Saves the rows of a reservation's end.
static SAVE: LazyLock<Script> =
    LazyLock::new(|| Script::any_state([RECORD, include_str!("save.lua")]));
/// Applies changes of an end in one slot, unless a marker says that it has.
pub(super) static ONCE: LazyLock<Script> =
    LazyLock::new(|| Script::any_state([CHANGES, include_str!("once.lua")]));
static END: LazyLock<Script> =
    LazyLock::new(|| Script::any_state([CHANGES, RECORD, include_str!("end.lua")]));

/// A record as read from Redis.
struct StoredReservation {
    name: Vec<u8>,
    body: Vec<u8>,
    has_ended: bool,
}

/// A record that has ended.
struct ClosedRecord {
    /// The end that counts.
    end: u64,
    /// The expiry of the open record.
    open_until_us: i64,
    /// The time until the ended record expires.
    left_ms: i64,
    reply: Value,
}

type NamedChanges = [(NamedCharge, Change)];
/// Derives the changes of an end from the note of the record.
type EndPlan<'a> = dyn Fn(&[u8]) -> Option<Vec<Settlement>> + Send + Sync + 'a;

impl RedisStore {
    pub(super) async fn open_record(
        &self,
        now_us: u64,
        opening: &NewReservation<'_>,
    ) -> Result<OpenOutcome, StoreError> {
        let name = self.namer.reservation_key(opening.id);
        let (slot, mut tables) = (slot_of(&name), ScriptTables::default());
        tables.key_index_of(name);
        let ttl_us = array(&[msgpack::clamp(opening.ttl_us)]);
        let program = list(&[&ttl_us, &text(&body(opening))]);
        let now_us = self.options.script_time(now_us);
        match self.servers.call(slot, &OPEN, &tables, program, now_us).await? {
            Value::Int(1) => Ok(OpenOutcome::Opened),
            Value::Int(0) => Ok(OpenOutcome::IdInUse),
            _ => Err(invalid_reply()),
        }
    }

    /// Ends a record, and tells the leases which limits changed.
    pub(super) fn end_and_tell_leases<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: u64,
        plan: Box<EndPlan<'a>>,
    ) -> BoxedReply<'a, Result<Option<EndedReservation>, StoreError>> {
        Box::pin(async move {
            let ended = self.with_deadline(self.end_record(now_us, id, end, &plan)).await?;
            let keys = ended.iter().flat_map(|ended| &ended.state_keys);
            keys.for_each(|key| self.leases.limit_changed_by_name(key.as_bytes()));
            Ok(ended)
        })
    }

    /// Ends a record. Needs at least two calls: the first reads the keys, which the second must
    /// name. Only an open record is settled; otherwise the answer is that of the first end.
    async fn end_record(
        &self,
        now_us: u64,
        id: &str,
        end: u64,
        plan: &EndPlan<'_>,
    ) -> Result<Option<EndedReservation>, StoreError> {
        let called_us = now_us;
        let now_us = self.options.script_time(now_us);
        let Some(found) = self.find_record(now_us, id).await? else { return Ok(None) };
        let (state_keys, note) = split(&found.body).ok_or_else(invalid_reply)?;
        let settlements = plan(note).filter(|all| all.len() == state_keys.len());
        let settlements = settlements.ok_or_else(invalid_reply)?;
        let pairs = state_keys.iter().zip(&settlements);
        let changes: Vec<_> = pairs.map(|(key, one)| named_change(key, one, called_us)).collect();
        let names = changes.iter().map(|(charge, _)| charge.name.as_slice()).chain([&*found.name]);
        let ended = match self.servers.group_by_slot(names).len() {
            ..=1 => self.end_in_one_slot(now_us, &found, end, &changes).await?,
            _ => self.end_across_slots(now_us, &found, end, &changes).await?,
        };
        let Some((end, rows)) = ended else { return Ok(None) };
        Ok(Some(EndedReservation { end, note: note.to_vec(), state_keys, rows }))
    }

    /// Whether a reservation can still be ended. Any node may have ended it.
    ///
    /// # Errors
    ///
    /// If the server did not answer in time.
    pub async fn is_reservation_open(&self, now_us: u64, id: &str) -> Result<bool, StoreError> {
        let found = self.find_record(self.options.script_time(now_us), id);
        let found = self.with_deadline(found).await?;
        Ok(found.is_some_and(|record| !record.has_ended))
    }

    async fn find_record(
        &self,
        now_us: Option<u64>,
        id: &str,
    ) -> Result<Option<StoredReservation>, StoreError> {
        let name = self.namer.reservation_key(id);
        let (slot, mut tables) = (slot_of(&name), ScriptTables::default());
        tables.key_index_of(name.clone());
        match self.servers.call(slot, &FIND, &tables, array(&[]), now_us).await? {
            Value::Nil => Ok(None),
            Value::Array(parts) => match <[Value; 2]>::try_from(parts) {
                Ok([Value::Int(ended), Value::BulkString(body)]) => {
                    Ok(Some(StoredReservation { name, body, has_ended: ended == 1 }))
                }
                _ => Err(invalid_reply()),
            },
            _ => Err(invalid_reply()),
        }
    }

    async fn end_in_one_slot(
        &self,
        now_us: Option<u64>,
        found: &StoredReservation,
        end: u64,
        changes: &NamedChanges,
    ) -> Result<Option<(u64, Vec<Answer>)>, StoreError> {
        let pairs = || changes.iter().map(|(charge, change)| (charge, change));
        let closed = self.close(now_us, found, end, ChangeBatch::new(pairs())).await?;
        let Some(ClosedRecord { end, reply, .. }) = closed else { return Ok(None) };
        Ok(Some((end, adjust::rows(pairs(), &AdjustReply::read(reply)?)?)))
    }

    /// Closes the record, applies the changes in each slot, and saves the rows for repeated calls.
    /// If a slot fails, a repeated call continues here.
    async fn end_across_slots(
        &self,
        now_us: Option<u64>,
        found: &StoredReservation,
        end: u64,
        changes: &NamedChanges,
    ) -> Result<Option<(u64, Vec<Answer>)>, StoreError> {
        let closed = self.close(now_us, found, end, ChangeBatch::default()).await?;
        let Some(ClosedRecord { end: counted, open_until_us, left_ms, reply }) = closed else {
            return Ok(None);
        };
        if let Some(rows) = rows::read(&reply) {
            return Ok(Some((counted, rows)));
        }
        if counted != end {
            // The other end is not completed yet. Its changes are not known here, so these rows
            // are peeks.
            let peek = |(charge, _): &(NamedCharge, _)| (charge.clone(), no_change(charge));
            let peeks: Vec<_> = changes.iter().map(peek).collect();
            return Ok(Some((counted, self.apply_changes(now_us, &peeks, None).await?)));
        }
        let once = ApplyOnce { record: &found.name, open_until_us, left_ms };
        let rows = self.apply_changes(now_us, changes, Some(once)).await?;
        self.save(now_us, found, &rows).await?;
        Ok(Some((counted, rows)))
    }

    async fn save(
        &self,
        now_us: Option<u64>,
        found: &StoredReservation,
        rows: &[Answer],
    ) -> Result<(), StoreError> {
        let mut tables = ScriptTables::default();
        tables.key_index_of(found.name.clone());
        let program = list(&[&text(&found.body), &text(&rows::write(rows))]);
        let slot = slot_of(&found.name);
        self.servers.call(slot, &SAVE, &tables, program, now_us).await.map(drop)
    }

    /// Closes the record with changes of its own slot, unless it has ended.
    async fn close(
        &self,
        now_us: Option<u64>,
        found: &StoredReservation,
        end: u64,
        mut changes: ChangeBatch,
    ) -> Result<Option<ClosedRecord>, StoreError> {
        let program = changes.program();
        changes.tables.key_index_of(found.name.clone());
        let end = array(&[msgpack::clamp(end), END_REPEATABLE_US as i64]);
        let program = list(&[&text(&found.body), &end, &program]);
        let slot = slot_of(&found.name);
        let parts = match self.servers.call(slot, &END, &changes.tables, program, now_us).await? {
            Value::Nil => return Ok(None),
            Value::Array(parts) => <[Value; 4]>::try_from(parts).map_err(|_| invalid_reply())?,
            _ => return Err(invalid_reply()),
        };
        let [end, open_until_us, left_ms, reply] = parts;
        let end = number(&end)?.unsigned_abs();
        let (open_until_us, left_ms) = (number(&open_until_us)?, number(&left_ms)?);
        Ok(Some(ClosedRecord { end, open_until_us, left_ms, reply }))
    }
}

/// A number in digits.
fn number(value: &Value) -> Result<i64, StoreError> {
    let Value::BulkString(digits) = value else { return Err(invalid_reply()) };
    let number = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    number.ok_or_else(invalid_reply)
}

fn named_change(key: &StateKey, settlement: &Settlement, called_us: u64) -> (NamedCharge, Change) {
    let Settlement { params, cost, mode, penalty, change } = *settlement;
    let (name, params) = (key.as_bytes().to_vec(), params.resolve_calendar(called_us));
    let charge = NamedCharge { name, params, cost, mode, penalty };
    (charge, adjust::to_server_time(change, called_us))
}

/// A change that changes nothing.
fn no_change(charge: &NamedCharge) -> Change {
    Change::GiveBack { units: 0, receipt: Default::default(), charged_params: charge.params }
}

/// Encodes a record: the number of keys, each key after its length, and the note.
fn body(opening: &NewReservation<'_>) -> Vec<u8> {
    let mut out = (opening.state_keys.len() as u16).to_be_bytes().to_vec();
    for key in &opening.state_keys {
        out.extend_from_slice(&(key.as_bytes().len() as u16).to_be_bytes());
        out.extend_from_slice(key.as_bytes());
    }
    out.extend_from_slice(&opening.note);
    out
}

fn split(body: &[u8]) -> Option<(Vec<StateKey>, &[u8])> {
    fn number(bytes: &mut &[u8]) -> Option<usize> {
        let (number, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(u16::from_be_bytes(*number).into())
    }
    let mut rest = body;
    let count = number(&mut rest)?;
    let mut keys = Vec::new();
    for _ in 0..count {
        let length = number(&mut rest)?;
        let (key, after) = rest.split_at_checked(length)?;
        keys.push(StateKey::new(key));
        rest = after;
    }
    Some((keys, rest))
}

/// Encodes a MessagePack list of at most fifteen encoded items.
pub(super) fn list(items: &[&[u8]]) -> Vec<u8> {
    [&[0x90 | items.len() as u8], &*items.concat()].concat()
}

/// Encodes bytes as MessagePack.
fn text(bytes: &[u8]) -> Vec<u8> {
    [&[0xdb], &(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}
