//! The reservations of one process, and for a while the ended ones: a repeated call gets the same answer.

use super::MemoryStore;
use crate::{
    Adjustment, Answer, Answers, Change, Charge, Ended, Opened, Opening, Place, REPEATABLE_US,
    Reply, ReservationStore, Settlement, StoreError, StoreErrorKind, Ticket,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque, hash_map};
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What all reservations together may hold: a peer can open them, so there is a cap.
const BYTES_MAX: usize = 64 << 20;

#[derive(Debug, Default)]
pub(super) struct Book {
    shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    by_id: HashMap<Box<str>, Record>,
    by_end: BinaryHeap<Reverse<(u64, Box<str>)>>,
    /// Those that have ended, the first to end first: they only wait for a call to be repeated, and go when others need the room.
    ended: VecDeque<Box<str>>,
    bytes: usize,
}

#[derive(Debug)]
struct Record {
    places: Vec<Place>,
    note: Vec<u8>,
    /// How it ended, and what that answered.
    ended: Option<(u64, Vec<Answer>)>,
    /// Places whose state was reset since: what was taken there before cannot be given back any more.
    void: Vec<usize>,
    /// What it counts for.
    bytes: usize,
    /// When it is forgotten. The heap may know an earlier instant, from before it ended.
    until_us: u64,
}

impl ReservationStore for MemoryStore {
    fn open_reservation<'a>(
        &'a self,
        now_us: u64,
        opening: Opening<'a>,
    ) -> Reply<'a, Result<Opened, StoreError>, Infallible> {
        Reply::Now(Ok(self.book.lock().open(now_us, opening)))
    }

    fn end_reservation<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: u64,
        plan: impl Fn(&[u8]) -> Option<Vec<Settlement>> + Send + Sync + 'a,
    ) -> Reply<'a, Result<Option<Ended>, StoreError>, Infallible> {
        // Held meanwhile, so that two calls cannot both settle.
        let mut shelf = self.book.lock();
        shelf.forget_expired(now_us);
        let Shelf { by_id, by_end, ended, .. } = &mut *shelf;
        let Some(record) = by_id.get_mut(id) else { return Reply::Now(Ok(None)) };
        let (end, rows) = match &record.ended {
            Some(first) => first.clone(),
            None => {
                let rows = match self.settle(now_us, record, plan) {
                    Ok(rows) => rows,
                    Err(error) => return Reply::Now(Err(error)),
                };
                record.ended = Some((end, rows.clone()));
                record.until_us = record.until_us.max(now_us.saturating_add(REPEATABLE_US));
                by_end.push(Reverse((record.until_us, id.into())));
                ended.push_back(id.into());
                (end, rows)
            }
        };
        let (note, places) = (record.note.clone(), record.places.clone());
        Reply::Now(Ok(Some(Ended { end, note, places, rows })))
    }
}

impl MemoryStore {
    fn settle(
        &self,
        now_us: u64,
        record: &Record,
        plan: impl Fn(&[u8]) -> Option<Vec<Settlement>>,
    ) -> Result<Vec<Answer>, StoreError> {
        let senseless = || StoreError::new(StoreErrorKind::Protocol, "a reservation's note");
        let settlements = plan(&record.note).filter(|all| all.len() == record.places.len());
        let settlements = settlements.ok_or_else(senseless)?;
        let adjustments: Vec<_> = record
            .places
            .iter()
            .zip(&settlements)
            .enumerate()
            .map(|(at, (place, one))| {
                let (limit, key) = place.as_bytes().split_first_chunk()?;
                let charge = Charge {
                    limit: u64::from_be_bytes(*limit),
                    key,
                    numbers: &one.numbers,
                    ticket: Ticket::default(),
                    cost: one.cost,
                    mode: one.mode,
                    penalty: one.penalty.as_ref(),
                };
                let change = match one.change {
                    Change::GiveBack { receipt, under, .. } if record.void.contains(&at) => {
                        Change::GiveBack { units: 0, receipt, under }
                    }
                    change => change,
                };
                Some(Adjustment { charge, change })
            })
            .collect::<Option<_>>()
            .ok_or_else(senseless)?;
        let mut answers = Answers::default();
        self.adjust_all(now_us, &adjustments, &mut answers);
        Ok(answers.get(0).map_or(&[][..], |(_, rows)| rows).to_vec())
    }
}

/// The limit, then the key: it never leaves this process.
pub(super) fn place(charge: &Charge<'_>) -> Place {
    Place::new([&charge.limit.to_be_bytes(), charge.key].concat())
}

impl Book {
    /// Nothing that was taken of this state before can be given back to it: it starts anew.
    pub(super) fn void(&self, limit: u64, key: &[u8]) {
        let same = |place: &Place| {
            place.as_bytes().split_first_chunk() == Some((&limit.to_be_bytes(), key))
        };
        for record in self.lock().by_id.values_mut().filter(|record| record.ended.is_none()) {
            let Record { places, void, .. } = record;
            let found = places.iter().enumerate().filter(|(_, place)| same(place));
            void.extend(found.map(|(at, _)| at));
        }
    }

    /// Forgets what has expired.
    pub(super) fn sweep(&self, now_us: u64) {
        self.lock().forget_expired(now_us);
    }

    /// A panic elsewhere leaves the shelf whole: every change to it is a single insertion or removal.
    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a reservation holds until it is forgotten, the rows of its end included.
fn bytes(opening: &Opening<'_>) -> usize {
    let each = |place: &Place| size_of::<Place>() + place.as_bytes().len() + size_of::<Answer>();
    let places = opening.places.iter().map(each).sum::<usize>();
    let names = 2 * (opening.id.len() + size_of::<Box<str>>());
    names + size_of::<Record>() + places + opening.note.len()
}

impl Shelf {
    fn open(&mut self, now_us: u64, opening: Opening<'_>) -> Opened {
        self.forget_expired(now_us);
        let bytes = bytes(&opening);
        if !self.make_room(bytes) {
            return Opened::Full;
        }
        let Opening { id, ttl_us, places, note } = opening;
        let until_us = now_us.saturating_add(ttl_us);
        match self.by_id.entry(id.into()) {
            hash_map::Entry::Occupied(_) => return Opened::Taken,
            hash_map::Entry::Vacant(vacant) => {
                let (ended, void) = (None, Vec::new());
                vacant.insert(Record { places, note, ended, void, bytes, until_us });
            }
        }
        self.by_end.push(Reverse((until_us, id.into())));
        self.bytes += bytes;
        Opened::Kept
    }

    /// Forgets ended reservations until there is room for `bytes` more. Says whether there is.
    fn make_room(&mut self, bytes: usize) -> bool {
        while self.bytes + bytes > BYTES_MAX
            && let Some(id) = self.ended.pop_front()
        {
            self.forget(&id);
        }
        if self.by_end.len() > 2 * self.by_id.len() + 64 {
            let by_id = &self.by_id;
            self.by_end.retain(|Reverse((_, id))| by_id.contains_key(id));
        }
        self.bytes + bytes <= BYTES_MAX
    }

    fn forget_expired(&mut self, now_us: u64) {
        while let Some(Reverse((expires_us, _))) = self.by_end.peek()
            && *expires_us <= now_us
            && let Some(Reverse((_, id))) = self.by_end.pop()
        {
            if self.by_id.get(&id).is_some_and(|record| record.until_us <= now_us) {
                self.forget(&id);
            }
        }
        // Names of what has expired gather here, since nobody looks for them in the middle.
        while let Some(id) = self.ended.front()
            && !self.by_id.contains_key(id)
        {
            self.ended.pop_front();
        }
        if self.ended.len() > 2 * self.by_id.len() + 64 {
            let by_id = &self.by_id;
            self.ended.retain(|id| by_id.contains_key(id));
        }
    }

    fn forget(&mut self, id: &str) {
        if let Some(record) = self.by_id.remove(id) {
            self.bytes = self.bytes.saturating_sub(record.bytes);
        }
    }
}
