//! The open reservations of one process, and for a while the ended ones: a repeated call gets the same answer.

use super::{End, ReservationError};
use crate::Source;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, VecDeque, hash_map},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tollgate_core::{Numbers, Outcome, Receipt};
use tollgate_policy::limit::Limit;
use tollgate_store::Ticket;

/// What all reservations together may hold: a peer can open them, so there is a cap.
const BYTES_MAX: usize = 64 << 20;
/// How long a call that ended one can be repeated at least, unless others need the room.
const REPEATABLE_US: u64 = 600_000_000;

#[derive(Debug, Default)]
pub(crate) struct Book {
    shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    by_id: HashMap<Box<str>, Held>,
    by_end: BinaryHeap<Reverse<(u64, Box<str>)>>,
    /// Those that have ended, the first to end first: they only wait for a call to be repeated, and go when others need the room.
    ended: VecDeque<Box<str>>,
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    place: Place,
    /// What it counts for.
    bytes: usize,
    /// When it is forgotten. The heap may know an earlier instant, from before it ended.
    until_us: u64,
}

/// What one request holds, or what ending it answered.
#[derive(Debug)]
pub(crate) enum Reservation {
    Open(Vec<Entry>),
    Ended(End, Vec<Kept>),
}

/// A place in the book. Whoever ends the reservation holds it meanwhile, so two calls cannot both settle.
pub(crate) type Place = Arc<async_lock::Mutex<Reservation>>;

/// What it took of one limit.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) limit: Arc<Limit>,
    /// Whose state it is.
    pub(crate) id: u64,
    pub(crate) key: Box<[u8]>,
    pub(crate) numbers: Numbers,
    /// The store's short name for these numbers.
    pub(crate) ticket: Ticket,
    /// Units for a request of cost one.
    pub(crate) unit: u64,
    /// Whether the limit admitted: a shadow limit that would have refused takes nothing.
    pub(crate) taken: bool,
    /// Units taken.
    pub(crate) charged: u64,
    /// Absent when nothing was taken, or nothing of it can be given back.
    pub(crate) receipt: Option<Receipt>,
    /// Where decisions of its store come from.
    pub(crate) usual: Source,
}

/// A row of the answer that ended it.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) limit: Arc<Limit>,
    pub(crate) numbers: Numbers,
    pub(crate) outcome: Outcome,
    pub(crate) source: Source,
}

impl Book {
    /// Opens a reservation, or says why not and hands back what it would have held.
    pub(crate) fn open(
        &self,
        now_us: u64,
        id: &str,
        expires_us: u64,
        entries: Vec<Entry>,
    ) -> Result<(), (ReservationError, Vec<Entry>)> {
        let mut shelf = self.lock();
        shelf.forget_expired(now_us);
        let bytes = bytes(id, &entries);
        if !shelf.make_room(bytes) {
            return Err((ReservationError::Full, entries));
        }
        match shelf.by_id.entry(id.into()) {
            hash_map::Entry::Occupied(_) => return Err((ReservationError::Taken, entries)),
            hash_map::Entry::Vacant(vacant) => {
                let place = Place::new(async_lock::Mutex::new(Reservation::Open(entries)));
                vacant.insert(Held { place, bytes, until_us: expires_us });
            }
        }
        shelf.by_end.push(Reverse((expires_us, id.into())));
        shelf.bytes += bytes;
        Ok(())
    }

    /// Whether a reservation could be opened under this name.
    pub(crate) fn admits(&self, now_us: u64, id: &str) -> Result<(), ReservationError> {
        let mut shelf = self.lock();
        shelf.forget_expired(now_us);
        match () {
            () if shelf.by_id.contains_key(id) => Err(ReservationError::Taken),
            () if !shelf.make_room(1) => Err(ReservationError::Full),
            () => Ok(()),
        }
    }

    /// Says that this reservation has ended.
    pub(crate) fn ended(&self, now_us: u64, id: &str) {
        let mut shelf = self.lock();
        if let Some(held) = shelf.by_id.get_mut(id) {
            held.until_us = held.until_us.max(now_us.saturating_add(REPEATABLE_US));
            let until_us = held.until_us;
            shelf.by_end.push(Reverse((until_us, id.into())));
            shelf.ended.push_back(id.into());
        }
    }

    /// Nothing that was taken of this state before can be given back to it: it starts anew.
    pub(crate) fn void(&self, limit: u64, key: &[u8]) {
        for held in self.lock().by_id.values() {
            // One that is being ended was there before.
            if let Some(mut reservation) = held.place.try_lock()
                && let Reservation::Open(entries) = &mut *reservation
            {
                let same = |entry: &&mut Entry| entry.id == limit && *entry.key == *key;
                entries.iter_mut().filter(same).for_each(|entry| entry.receipt = None);
            }
        }
    }

    /// Forgets what has expired.
    pub(crate) fn sweep(&self, now_us: u64) {
        self.lock().forget_expired(now_us);
    }

    /// The reservation of this name, unless it has expired.
    pub(crate) fn find(&self, now_us: u64, id: &str) -> Option<Place> {
        let mut shelf = self.lock();
        shelf.forget_expired(now_us);
        shelf.by_id.get(id).map(|held| Arc::clone(&held.place))
    }

    /// A panic elsewhere leaves the shelf whole: every change to it is a single insertion or removal.
    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a reservation holds until it is forgotten, the rows of its end included.
fn bytes(id: &str, entries: &[Entry]) -> usize {
    let entries =
        entries.iter().map(|entry| size_of::<Entry>() + size_of::<Kept>() + entry.key.len());
    let place = size_of::<async_lock::Mutex<Reservation>>() + size_of::<Held>();
    2 * (id.len() + size_of::<Box<str>>()) + place + entries.sum::<usize>()
}

impl Shelf {
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
            if self.by_id.get(&id).is_some_and(|held| held.until_us <= now_us) {
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
        if let Some(held) = self.by_id.remove(id) {
            self.bytes = self.bytes.saturating_sub(held.bytes);
        }
    }
}
