//! The open reservations of one process, and for a while the ended ones: a repeated call gets the same answer.

use super::{End, ReservationError};
use crate::Source;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, hash_map},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tollgate_core::{Numbers, Outcome, Receipt};
use tollgate_policy::limit::Limit;
use tollgate_store::Ticket;

/// What all reservations together may hold: a peer can open them, so there is a cap.
const BYTES_MAX: usize = 64 << 20;

#[derive(Debug, Default)]
pub(crate) struct Book {
    shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    /// Each with the bytes it counts for.
    by_id: HashMap<Box<str>, (Place, usize)>,
    by_end: BinaryHeap<Reverse<(u64, Box<str>)>>,
    bytes: usize,
}

/// What one request holds, or what ending it answered.
#[derive(Debug)]
pub(crate) enum Reservation {
    Open(Vec<Entry>),
    Ended(End, Vec<Kept>),
}

/// A place in the book. Whoever ends the reservation holds it meanwhile, so two calls cannot both settle.
pub(crate) type Place = Arc<tokio::sync::Mutex<Reservation>>;

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
    /// Absent when nothing was taken, a cost of zero included.
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
        if shelf.bytes + bytes > BYTES_MAX {
            return Err((ReservationError::Full, entries));
        }
        match shelf.by_id.entry(id.into()) {
            hash_map::Entry::Occupied(_) => return Err((ReservationError::Taken, entries)),
            hash_map::Entry::Vacant(vacant) => {
                let place = Place::new(tokio::sync::Mutex::new(Reservation::Open(entries)));
                vacant.insert((place, bytes));
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
            () if shelf.bytes >= BYTES_MAX => Err(ReservationError::Full),
            () => Ok(()),
        }
    }

    /// The reservation of this name, unless it has expired.
    pub(crate) fn find(&self, now_us: u64, id: &str) -> Option<Place> {
        let mut shelf = self.lock();
        shelf.forget_expired(now_us);
        shelf.by_id.get(id).map(|(place, _)| Arc::clone(place))
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
    let place = size_of::<tokio::sync::Mutex<Reservation>>() + size_of::<(Place, usize)>();
    2 * (id.len() + size_of::<Box<str>>()) + place + entries.sum::<usize>()
}

impl Shelf {
    fn forget_expired(&mut self, now_us: u64) {
        while let Some(Reverse((expires_us, _))) = self.by_end.peek()
            && *expires_us <= now_us
            && let Some(Reverse((_, id))) = self.by_end.pop()
        {
            if let Some((_, bytes)) = self.by_id.remove(&id) {
                self.bytes = self.bytes.saturating_sub(bytes);
            }
        }
    }
}
