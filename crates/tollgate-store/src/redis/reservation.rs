//! Reservations: a record that every node can end, in one script with the state it concerns.
//!
//! A record holds the names of keys, which show nothing of whom they are for, and the caller's note.

use super::adjust::{self, Changes};
use super::batch::Tables;
use super::pack::{self, array};
use super::replay::senseless;
use super::reply::Adjusted;
use super::{RedisStore, script};
use crate::{
    Adjustment, Answers, Charge, Ended, Mode, Opened, Opening, Place, Plan, Settlement, StoreError,
    Ticket,
};
use redis::Value;

impl RedisStore {
    pub(super) async fn open_record(
        &self,
        now_us: u64,
        opening: &Opening<'_>,
    ) -> Result<Opened, StoreError> {
        let mut tables = Tables::default();
        tables.key(self.namer.record(opening.id));
        let ttl_us = array(&[pack::clamp(opening.ttl_us)]);
        let program = list(&[&ttl_us, &text(&body(opening))]);
        let now_us = self.options.at(now_us);
        match self.control.call(&script::OPEN, &tables, program, now_us).await? {
            Value::Int(1) => Ok(Opened::Kept),
            Value::Int(0) => Ok(Opened::Taken),
            _ => Err(senseless()),
        }
    }

    /// Two calls: the first says whose state it concerns, which the second has to name. Whatever happens in between, the second settles only
    /// what is still open, and answers with the first end where there was one.
    pub(super) async fn end_record(
        &self,
        now_us: u64,
        id: &str,
        end: u64,
        plan: &Plan<'_>,
        answers: &mut Answers,
    ) -> Result<Option<Ended>, StoreError> {
        answers.clear();
        let now_us = self.options.at(now_us);
        let mut tables = Tables::default();
        tables.key(self.namer.record(id));
        let body = match self.control.call(&script::FIND, &tables, array(&[]), now_us).await? {
            Value::Nil => return Ok(None),
            Value::BulkString(body) => body,
            _ => return Err(senseless()),
        };
        let (places, note) = split(&body).ok_or_else(senseless)?;
        let settlements = plan(note).filter(|all| all.len() == places.len());
        let settlements = settlements.ok_or_else(senseless)?;
        let adjustments: Vec<_> = settlements.iter().map(adjustment).collect();
        let mut changes = Changes::default();
        for (place, adjustment) in places.iter().zip(&adjustments) {
            changes.push(place.as_bytes().to_vec(), adjustment);
        }
        changes.tables.key(self.namer.record(id));
        let end_us = array(&[pack::clamp(end)]);
        let program = list(&[&text(&body), &end_us, &changes.program()]);
        match self.control.call(&script::END, &changes.tables, program, now_us).await? {
            Value::Nil => Ok(None),
            Value::Array(parts) => {
                let [end, reply]: [Value; 2] = parts.try_into().map_err(|_| senseless())?;
                adjust::rows(&adjustments, &Adjusted::read(reply)?, answers)?;
                let end = match end {
                    Value::BulkString(digits) => str::from_utf8(&digits).ok().map(str::parse),
                    _ => None,
                };
                let Some(Ok(end)) = end else { return Err(senseless()) };
                Ok(Some(Ended { end, note: note.to_vec(), places }))
            }
            _ => Err(senseless()),
        }
    }
}

/// Its key is named by the record.
fn adjustment(one: &Settlement) -> Adjustment<'_> {
    let charge = Charge {
        limit: 0,
        key: &[],
        numbers: &one.numbers,
        ticket: Ticket::default(),
        cost: one.cost,
        mode: Mode::Enforce,
        penalty: one.penalty.as_ref(),
    };
    Adjustment { charge, change: one.change }
}

/// How many places there are, each behind its length, and the note.
fn body(opening: &Opening<'_>) -> Vec<u8> {
    let mut out = (opening.places.len() as u16).to_be_bytes().to_vec();
    for place in opening.places {
        out.extend_from_slice(&(place.as_bytes().len() as u16).to_be_bytes());
        out.extend_from_slice(place.as_bytes());
    }
    out.extend_from_slice(opening.note);
    out
}

fn split(body: &[u8]) -> Option<(Vec<Place>, &[u8])> {
    fn number<'a>(bytes: &mut &'a [u8]) -> Option<usize> {
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
