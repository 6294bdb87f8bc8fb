//! Reservations: a record that every node can end.
//!
//! A record holds the names of keys, which show nothing of whom they are for, and the caller's note. Where one script may touch all of them,
//! the end and all that it changes are one step. In a cluster they are in several slots: then what is newly owed is taken first, the record is
//! closed, and what comes back is given back last. Whatever is lost in between was taken and not returned, so nobody is admitted who should not be.

use super::adjust::{self, Changes};
use super::batch::{Named, Tables};
use super::cluster::slot_of;
use super::pack::{self, array};
use super::replay::senseless;
use super::reply::Adjusted;
use super::{RedisStore, script};
use crate::REPEATABLE_US;
use crate::{Answer, Change, Ended, Opened, Opening, Place, Settlement, StoreError};
use redis::Value;

mod saved;

/// A record, as it was found.
struct Found {
    name: Vec<u8>,
    body: Vec<u8>,
    has_ended: bool,
}

type Lines = [(Named, Change)];

impl RedisStore {
    pub(super) async fn open_record(
        &self,
        now_us: u64,
        opening: &Opening<'_>,
    ) -> Result<Opened, StoreError> {
        let name = self.namer.record(opening.id);
        let (slot, mut tables) = (slot_of(&name), Tables::default());
        tables.key(name);
        let ttl_us = array(&[pack::clamp(opening.ttl_us)]);
        let program = list(&[&ttl_us, &text(&body(opening))]);
        let now_us = self.options.at(now_us);
        match self.servers.call(slot, &script::OPEN, &tables, program, now_us).await? {
            Value::Int(1) => Ok(Opened::Kept),
            Value::Int(0) => Ok(Opened::Taken),
            _ => Err(senseless()),
        }
    }

    /// Two calls at least: the first says whose state it concerns, which the second has to name. Whatever happens in between, only a record that
    /// is still open is settled, and otherwise the answer is that of the first end.
    pub(super) async fn end_record(
        &self,
        now_us: u64,
        id: &str,
        end: u64,
        plan: impl Fn(&[u8]) -> Option<Vec<Settlement>>,
    ) -> Result<Option<Ended>, StoreError> {
        let called_us = now_us;
        let now_us = self.options.at(now_us);
        let Some(found) = self.find_record(now_us, id).await? else { return Ok(None) };
        let (places, note) = split(&found.body).ok_or_else(senseless)?;
        let settlements = plan(note).filter(|all| all.len() == places.len());
        let settlements = settlements.ok_or_else(senseless)?;
        let pairs = places.iter().zip(&settlements);
        let lines: Vec<_> = pairs.map(|(place, one)| line(place, one, called_us)).collect();
        let names = lines.iter().map(|(line, _)| line.name.as_slice()).chain([&*found.name]);
        let ended = match self.servers.parts(names).len() {
            ..=1 => self.end_at_once(now_us, &found, end, &lines).await?,
            _ => self.end_apart(now_us, &found, end, &lines).await?,
        };
        let Some((end, rows)) = ended else { return Ok(None) };
        Ok(Some(Ended { end, note: note.to_vec(), places, rows }))
    }

    async fn find_record(
        &self,
        now_us: Option<u64>,
        id: &str,
    ) -> Result<Option<Found>, StoreError> {
        let name = self.namer.record(id);
        let (slot, mut tables) = (slot_of(&name), Tables::default());
        tables.key(name.clone());
        match self.servers.call(slot, &script::FIND, &tables, array(&[]), now_us).await? {
            Value::Nil => Ok(None),
            Value::Array(parts) => match <[Value; 2]>::try_from(parts) {
                Ok([Value::Int(ended), Value::BulkString(body)]) => {
                    Ok(Some(Found { name, body, has_ended: ended == 1 }))
                }
                _ => Err(senseless()),
            },
            _ => Err(senseless()),
        }
    }

    /// The end and its changes in one script.
    async fn end_at_once(
        &self,
        now_us: Option<u64>,
        found: &Found,
        end: u64,
        lines: &Lines,
    ) -> Result<Option<(u64, Vec<Answer>)>, StoreError> {
        let changes = Changes::new(lines.iter().map(|(line, change)| (line, change)));
        let Some((end, _, reply)) = self.close(now_us, found, end, changes).await? else {
            return Ok(None);
        };
        let rows = lines.iter().map(|(line, change)| (line, change));
        Ok(Some((end, adjust::rows(rows, &Adjusted::read(reply)?)?)))
    }

    /// Debts, the end, give-backs, and what was answered, for those who ask again.
    async fn end_apart(
        &self,
        now_us: Option<u64>,
        found: &Found,
        end: u64,
        lines: &Lines,
    ) -> Result<Option<(u64, Vec<Answer>)>, StoreError> {
        let (debts, others): (Vec<_>, Vec<_>) =
            lines.iter().cloned().partition(|(_, change)| matches!(change, Change::Owe { .. }));
        let owed = match found.has_ended {
            true => Vec::new(),
            false => self.apply(now_us, &debts).await?,
        };
        let closed = self.close(now_us, found, end, Changes::default()).await?;
        if let Some((end, true, _)) = closed {
            let (mut owed, mut others) =
                (owed.into_iter(), self.apply(now_us, &others).await?.into_iter());
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
            let (receipt, under) = (row.receipt?, line.numbers);
            Some((line.clone(), Change::GiveBack { units: receipt.cost, receipt, under }))
        });
        self.apply(now_us, &back.collect::<Vec<_>>()).await?;
        let Some((end, _, reply)) = closed else { return Ok(None) };
        // Whoever ended it may not have come to say what it answered; then these are the rows of now.
        let rows = match saved::read(&reply) {
            Some(rows) => rows,
            None => {
                let look = |(line, _): &(Named, _)| (line.clone(), look(line));
                self.apply(now_us, &lines.iter().map(look).collect::<Vec<_>>()).await?
            }
        };
        Ok(Some((end, rows)))
    }

    async fn save(
        &self,
        now_us: Option<u64>,
        found: &Found,
        rows: &[Answer],
    ) -> Result<(), StoreError> {
        let mut tables = Tables::default();
        tables.key(found.name.clone());
        let program = list(&[&text(&found.body), &text(&saved::write(rows))]);
        let slot = slot_of(&found.name);
        self.servers.call(slot, &script::SAVE, &tables, program, now_us).await.map(drop)
    }

    /// Closes the record with changes of its own slot. Answers with the end that counts, whether it is this one, and its reply.
    async fn close(
        &self,
        now_us: Option<u64>,
        found: &Found,
        end: u64,
        mut changes: Changes,
    ) -> Result<Option<(u64, bool, Value)>, StoreError> {
        let program = changes.program();
        changes.tables.key(found.name.clone());
        let end = array(&[pack::clamp(end), REPEATABLE_US as i64]);
        let program = list(&[&text(&found.body), &end, &program]);
        let slot = slot_of(&found.name);
        match self.servers.call(slot, &script::END, &changes.tables, program, now_us).await? {
            Value::Nil => Ok(None),
            Value::Array(parts) => match <[Value; 3]>::try_from(parts) {
                Ok([Value::BulkString(digits), Value::Int(first), reply]) => {
                    let end = str::from_utf8(&digits).ok().and_then(|digits| digits.parse().ok());
                    Ok(Some((end.ok_or_else(senseless)?, first == 1, reply)))
                }
                _ => Err(senseless()),
            },
            _ => Err(senseless()),
        }
    }
}

fn line(place: &Place, one: &Settlement, called_us: u64) -> (Named, Change) {
    let named = Named {
        name: place.as_bytes().to_vec(),
        numbers: one.numbers.at(called_us),
        cost: one.cost,
        mode: one.mode,
        penalty: one.penalty,
    };
    (named, adjust::by_the_servers_clock(one.change, called_us))
}

/// A change that changes nothing.
fn look(line: &Named) -> Change {
    Change::GiveBack { units: 0, receipt: Default::default(), under: line.numbers }
}

/// How many places there are, each behind its length, and the note.
fn body(opening: &Opening<'_>) -> Vec<u8> {
    let mut out = (opening.places.len() as u16).to_be_bytes().to_vec();
    for place in &opening.places {
        out.extend_from_slice(&(place.as_bytes().len() as u16).to_be_bytes());
        out.extend_from_slice(place.as_bytes());
    }
    out.extend_from_slice(&opening.note);
    out
}

fn split(body: &[u8]) -> Option<(Vec<Place>, &[u8])> {
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
        places.push(Place::new(place));
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
