//! Reservations: a record that every node can end.
//!
//! A record holds the names of keys, which show nothing of whom they are for, and the caller's
//! note. Where one script may touch all of them, the end and all that it changes are one step. In a
//! cluster they are in several slots: then what is newly owed is taken first, the record is closed,
//! and what comes back is given back last. Whatever is lost in between was taken and not returned,
//! so nobody is admitted who should not be.

mod rows;

use super::RedisStore;
use super::adjust::{self, ChangeBatch};
use super::batch::reply::AdjustReply;
use super::batch::rows::invalid_reply;
use super::batch::{NamedCharge, ScriptTables};
use super::cluster::slot_of;
use super::script::msgpack::{self, array};
use super::script::{self};
use crate::{
    Answer, Change, END_REPEATABLE_US, EndedReservation, NewReservation, OpenOutcome, Settlement,
    StateKey, StoreError,
};
use redis::Value;

/// A record, as it was found.
struct StoredReservation {
    name: Vec<u8>,
    body: Vec<u8>,
    has_ended: bool,
}

type NamedChanges = [(NamedCharge, Change)];

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
        match self.servers.call(slot, &script::OPEN, &tables, program, now_us).await? {
            Value::Int(1) => Ok(OpenOutcome::Opened),
            Value::Int(0) => Ok(OpenOutcome::IdInUse),
            _ => Err(invalid_reply()),
        }
    }

    /// Two calls at least: the first says whose state it concerns, which the second has to name.
    /// Whatever happens in between, only a record that is still open is settled, and otherwise the
    /// answer is that of the first end.
    pub(super) async fn end_record(
        &self,
        now_us: u64,
        id: &str,
        end: u64,
        plan: impl Fn(&[u8]) -> Option<Vec<Settlement>>,
    ) -> Result<Option<EndedReservation>, StoreError> {
        let called_us = now_us;
        let now_us = self.options.script_time(now_us);
        let Some(found) = self.find_record(now_us, id).await? else { return Ok(None) };
        let (places, note) = split(&found.body).ok_or_else(invalid_reply)?;
        let settlements = plan(note).filter(|all| all.len() == places.len());
        let settlements = settlements.ok_or_else(invalid_reply)?;
        let pairs = places.iter().zip(&settlements);
        let lines: Vec<_> = pairs.map(|(place, one)| line(place, one, called_us)).collect();
        let names = lines.iter().map(|(line, _)| line.name.as_slice()).chain([&*found.name]);
        let ended = match self.servers.group_by_slot(names).len() {
            ..=1 => self.end_in_one_slot(now_us, &found, end, &lines).await?,
            _ => self.end_across_slots(now_us, &found, end, &lines).await?,
        };
        let Some((end, rows)) = ended else { return Ok(None) };
        Ok(Some(EndedReservation { end, note: note.to_vec(), state_keys: places, rows }))
    }

    async fn find_record(
        &self,
        now_us: Option<u64>,
        id: &str,
    ) -> Result<Option<StoredReservation>, StoreError> {
        let name = self.namer.reservation_key(id);
        let (slot, mut tables) = (slot_of(&name), ScriptTables::default());
        tables.key_index_of(name.clone());
        match self.servers.call(slot, &script::FIND, &tables, array(&[]), now_us).await? {
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

    /// The end and its changes in one script.
    async fn end_in_one_slot(
        &self,
        now_us: Option<u64>,
        found: &StoredReservation,
        end: u64,
        lines: &NamedChanges,
    ) -> Result<Option<(u64, Vec<Answer>)>, StoreError> {
        let changes = ChangeBatch::new(lines.iter().map(|(line, change)| (line, change)));
        let Some((end, _, reply)) = self.close(now_us, found, end, changes).await? else {
            return Ok(None);
        };
        let rows = lines.iter().map(|(line, change)| (line, change));
        Ok(Some((end, adjust::rows(rows, &AdjustReply::read(reply)?)?)))
    }

    /// Debts, the end, give-backs, and what was answered, for those who ask again.
    async fn end_across_slots(
        &self,
        now_us: Option<u64>,
        found: &StoredReservation,
        end: u64,
        lines: &NamedChanges,
    ) -> Result<Option<(u64, Vec<Answer>)>, StoreError> {
        let (debts, others): (Vec<_>, Vec<_>) =
            lines.iter().cloned().partition(|(_, change)| matches!(change, Change::Owe { .. }));
        let owed = match found.has_ended {
            true => Vec::new(),
            false => self.apply_changes(now_us, &debts).await?,
        };
        let closed = self.close(now_us, found, end, ChangeBatch::default()).await?;
        if let Some((end, true, _)) = closed {
            let (mut owed, mut others) =
                (owed.into_iter(), self.apply_changes(now_us, &others).await?.into_iter());
            let rows = lines.iter().filter_map(|(_, change)| match change {
                Change::Owe { .. } => owed.next(),
                _ => others.next(),
            });
            let rows: Vec<_> = rows.collect();
            self.save(now_us, found, &rows).await?;
            return Ok(Some((end, rows)));
        }
        // Somebody else was faster, or its time has passed: then this one's debts are not owed.
        let back = debts.iter().zip(&owed).filter_map(|((line, _), row)| {
            let (receipt, under) = (row.receipt?, line.params);
            Some((
                line.clone(),
                Change::GiveBack { units: receipt.cost, receipt, charged_params: under },
            ))
        });
        self.apply_changes(now_us, &back.collect::<Vec<_>>()).await?;
        let Some((end, _, reply)) = closed else { return Ok(None) };
        // Whoever ended it may not have come to say what it answered; then these are the rows of
        // now.
        let rows = match rows::read(&reply) {
            Some(rows) => rows,
            None => {
                let look = |(line, _): &(NamedCharge, _)| (line.clone(), no_change(line));
                self.apply_changes(now_us, &lines.iter().map(look).collect::<Vec<_>>()).await?
            }
        };
        Ok(Some((end, rows)))
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
        self.servers.call(slot, &script::SAVE, &tables, program, now_us).await.map(drop)
    }

    /// Closes the record with changes of its own slot. Answers with the end that counts, whether it
    /// is this one, and its reply.
    async fn close(
        &self,
        now_us: Option<u64>,
        found: &StoredReservation,
        end: u64,
        mut changes: ChangeBatch,
    ) -> Result<Option<(u64, bool, Value)>, StoreError> {
        let program = changes.program();
        changes.tables.key_index_of(found.name.clone());
        let end = array(&[msgpack::clamp(end), END_REPEATABLE_US as i64]);
        let program = list(&[&text(&found.body), &end, &program]);
        let slot = slot_of(&found.name);
        match self.servers.call(slot, &script::END, &changes.tables, program, now_us).await? {
            Value::Nil => Ok(None),
            Value::Array(parts) => match <[Value; 3]>::try_from(parts) {
                Ok([Value::BulkString(digits), Value::Int(first), reply]) => {
                    let end = str::from_utf8(&digits).ok().and_then(|digits| digits.parse().ok());
                    Ok(Some((end.ok_or_else(invalid_reply)?, first == 1, reply)))
                }
                _ => Err(invalid_reply()),
            },
            _ => Err(invalid_reply()),
        }
    }
}

fn line(place: &StateKey, one: &Settlement, called_us: u64) -> (NamedCharge, Change) {
    let named = NamedCharge {
        name: place.as_bytes().to_vec(),
        params: one.params.resolve_calendar(called_us),
        cost: one.cost,
        mode: one.mode,
        penalty: one.penalty,
    };
    (named, adjust::to_server_time(one.change, called_us))
}

/// A change that changes nothing.
fn no_change(line: &NamedCharge) -> Change {
    Change::GiveBack { units: 0, receipt: Default::default(), charged_params: line.params }
}

/// How many places there are, each behind its length, and the note.
fn body(opening: &NewReservation<'_>) -> Vec<u8> {
    let mut out = (opening.state_keys.len() as u16).to_be_bytes().to_vec();
    for place in &opening.state_keys {
        out.extend_from_slice(&(place.as_bytes().len() as u16).to_be_bytes());
        out.extend_from_slice(place.as_bytes());
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
    let mut places = Vec::new();
    for _ in 0..count {
        let length = number(&mut rest)?;
        let (place, after) = rest.split_at_checked(length)?;
        places.push(StateKey::new(place));
        rest = after;
    }
    Some((places, rest))
}

/// MessagePack of a list whose items are written already, fifteen at most.
fn list(items: &[&[u8]]) -> Vec<u8> {
    [&[0x90 | items.len() as u8], &*items.concat()].concat()
}

/// MessagePack of bytes.
fn text(bytes: &[u8]) -> Vec<u8> {
    [&[0xdb], &(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}
