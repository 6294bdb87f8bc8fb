//! The open reservations of one process, and for a while the ended ones: a repeated call gets the same answer.

use super::{End, ReservationError};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, hash_map},
    sync::{Mutex, MutexGuard, PoisonError},
};
use tollgate_core::{Numbers, Receipt};
use tollgate_store::{Answer, Ticket};

/// What all reservations together may hold: a peer can open them, so there is a cap.
const BYTES_MAX: usize = 64 << 20;

#[derive(Debug, Default)]
pub(crate) struct Book {
    shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    by_id: HashMap<Box<str>, Reservation>,
    by_end: BinaryHeap<Reverse<(u64, Box<str>)>>,
    bytes: usize,
}

/// What one request holds.
#[derive(Clone, Debug)]
pub(crate) struct Reservation {
    pub(crate) expires_us: u64,
    pub(crate) entries: Vec<Entry>,
    pub(crate) ended: Option<(End, Vec<Kept>)>,
}

/// What it took of one limit.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Position in the policy, and the identity to find it by in a later one.
    pub(crate) index: usize,
    pub(crate) limit: u64,
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
}

/// A row of the answer that ended it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) index: usize,
    pub(crate) numbers: Numbers,
    pub(crate) answer: Answer,
}

impl Book {
    pub(crate) fn open(
        &self,
        now_us: u64,
        id: &str,
        reservation: Reservation,
    ) -> Result<(), (ReservationError, Reservation)> {
        let mut shelf = self.lock();
        shelf.forget_expired(now_us);
        let bytes = reservation.bytes(id);
        if shelf.bytes + bytes > BYTES_MAX {
            return Err((ReservationError::Full, reservation));
        }
        let expires_us = reservation.expires_us;
        match shelf.by_id.entry(id.into()) {
            hash_map::Entry::Occupied(_) => return Err((ReservationError::Taken, reservation)),
            hash_map::Entry::Vacant(place) => place.insert(reservation),
        };
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

    /// Ends the reservation with `end`. The first call settles what it took with `settle`; a repeated one gets
    /// the rows of the first. The book stays locked meanwhile, so two calls cannot both settle.
    pub(crate) fn end(
        &self,
        now_us: u64,
        id: &str,
        end: End,
        settle: impl FnOnce(&[Entry]) -> Vec<Kept>,
    ) -> Result<Vec<Kept>, ReservationError> {
        let mut shelf = self.lock();
        shelf.forget_expired(now_us);
        let reservation = shelf.by_id.get_mut(id).ok_or(ReservationError::Unknown)?;
        match &reservation.ended {
            Some((earlier, rows)) if *earlier == end => Ok(rows.clone()),
            Some(_) => Err(ReservationError::Ended),
            None => {
                let rows = settle(&reservation.entries);
                reservation.ended = Some((end, rows.clone()));
                Ok(rows)
            }
        }
    }

    /// A panic elsewhere leaves the shelf whole: every change to it is a single insertion or removal.
    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// What it holds until it is forgotten, the rows of its end included.
    fn bytes(&self, id: &str) -> usize {
        let entries = self
            .entries
            .iter()
            .map(|entry| size_of::<Entry>() + size_of::<Kept>() + entry.key.len());
        2 * (id.len() + size_of::<Box<str>>()) + size_of::<Self>() + entries.sum::<usize>()
    }
}

impl Shelf {
    fn forget_expired(&mut self, now_us: u64) {
        while let Some(Reverse((expires_us, _))) = self.by_end.peek()
            && *expires_us <= now_us
            && let Some(Reverse((_, id))) = self.by_end.pop()
        {
            if let Some(reservation) = self.by_id.remove(&id) {
                self.bytes = self.bytes.saturating_sub(reservation.bytes(&id));
            }
        }
    }
}
