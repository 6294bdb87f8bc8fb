//! Reservations in memory. Ended ones are kept for a while, so that a repeated call gets the same
//! answer.

use super::MemoryStore;
use crate::sync::lock_mutex;
use crate::{
    Adjustment, Answer, Answers, Charge, END_REPEATABLE_US, EndedReservation, NewReservation,
    OpenOutcome, ParamsId, ReservationStore, Settlement, StateKey, StoreError, StoreErrorKind,
    StoreReply,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque, hash_map};
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard};

/// The cap on all reservations together: clients can open them.
const BYTES_MAX: usize = 64 << 20;

#[derive(Debug, Default)]
pub(crate) struct Reservations {
    table: Mutex<ReservationTable>,
}

#[derive(Debug, Default)]
struct ReservationTable {
    by_id: HashMap<Box<str>, ReservationRecord>,
    by_expiry: BinaryHeap<Reverse<(u64, Box<str>)>>,
    /// Ended ones, the first to end first: they go when others need the room.
    ended: VecDeque<Box<str>>,
    bytes: usize,
}

#[derive(Debug)]
struct ReservationRecord {
    state_keys: Vec<StateKey>,
    note: Vec<u8>,
    /// The end, and the rows that it answered.
    ended: Option<(u64, Vec<Answer>)>,
    /// Bytes that the record counts for.
    bytes: usize,
    /// When the record expires. The heap may have an earlier instant, from before the end.
    until_us: u64,
}

impl ReservationStore for MemoryStore {
    fn open_reservation<'a>(
        &'a self,
        now_us: u64,
        opening: NewReservation<'a>,
    ) -> StoreReply<'a, Result<OpenOutcome, StoreError>, Infallible> {
        StoreReply::Now(Ok(self.reservations.lock().open(now_us, opening)))
    }

    fn end_reservation<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: u64,
        plan: impl Fn(&[u8]) -> Option<Vec<Settlement>> + Send + Sync + 'a,
    ) -> StoreReply<'a, Result<Option<EndedReservation>, StoreError>, Infallible> {
        // Locked during the settlement, so that two calls cannot both settle.
        let mut table = self.reservations.lock();
        table.forget_expired(now_us);
        let ReservationTable { by_id, by_expiry, ended, .. } = &mut *table;
        let Some(record) = by_id.get_mut(id) else { return StoreReply::Now(Ok(None)) };
        let (end, rows) = match &record.ended {
            Some(first) => first.clone(),
            None => {
                let rows = match self.settle(now_us, record, plan) {
                    Ok(rows) => rows,
                    Err(error) => return StoreReply::Now(Err(error)),
                };
                record.ended = Some((end, rows.clone()));
                record.until_us = record.until_us.max(now_us.saturating_add(END_REPEATABLE_US));
                by_expiry.push(Reverse((record.until_us, id.into())));
                ended.push_back(id.into());
                (end, rows)
            }
        };
        let (note, state_keys) = (record.note.clone(), record.state_keys.clone());
        StoreReply::Now(Ok(Some(EndedReservation { end, note, state_keys, rows })))
    }
}

impl MemoryStore {
    fn settle(
        &self,
        now_us: u64,
        record: &ReservationRecord,
        plan: impl Fn(&[u8]) -> Option<Vec<Settlement>>,
    ) -> Result<Vec<Answer>, StoreError> {
        let invalid_note = || StoreError::new(StoreErrorKind::Protocol, "a reservation's note");
        let settlements = plan(&record.note).filter(|all| all.len() == record.state_keys.len());
        let settlements = settlements.ok_or_else(invalid_note)?;
        let mut adjustments = Vec::with_capacity(settlements.len());
        for (state_key, one) in record.state_keys.iter().zip(&settlements) {
            let split = state_key.as_bytes().split_first_chunk();
            let (limit, key) = split.ok_or_else(invalid_note)?;
            let charge = Charge {
                limit: u64::from_be_bytes(*limit),
                key,
                params: &one.params,
                params_id: ParamsId::default(),
                cost: one.cost,
                mode: one.mode,
                penalty: one.penalty.as_ref(),
            };
            adjustments.push(Adjustment { charge, change: one.change });
        }
        let mut answers = Answers::default();
        self.adjust_all(now_us, &adjustments, &mut answers);
        Ok(answers.get(0).map_or(&[][..], |(_, rows)| rows).to_vec())
    }
}

/// The limit and the key, in plain: it never leaves this process.
pub(crate) fn state_key(charge: &Charge<'_>) -> StateKey {
    StateKey::new([&charge.limit.to_be_bytes(), charge.key].concat())
}

impl Reservations {
    pub(crate) fn sweep(&self, now_us: u64) {
        self.lock().forget_expired(now_us);
    }

    fn lock(&self) -> MutexGuard<'_, ReservationTable> {
        lock_mutex(&self.table)
    }
}

/// The bytes of a reservation, the rows of its end included.
fn bytes(opening: &NewReservation<'_>) -> usize {
    let each = |key: &StateKey| size_of::<StateKey>() + key.as_bytes().len() + size_of::<Answer>();
    let keys = opening.state_keys.iter().map(each).sum::<usize>();
    let ids = 2 * (opening.id.len() + size_of::<Box<str>>());
    ids + size_of::<ReservationRecord>() + keys + opening.note.len()
}

impl ReservationTable {
    fn open(&mut self, now_us: u64, opening: NewReservation<'_>) -> OpenOutcome {
        self.forget_expired(now_us);
        let bytes = bytes(&opening);
        if !self.make_room(bytes) {
            return OpenOutcome::Full;
        }
        let NewReservation { id, ttl_us, state_keys, note } = opening;
        let until_us = now_us.saturating_add(ttl_us);
        match self.by_id.entry(id.into()) {
            hash_map::Entry::Occupied(_) => return OpenOutcome::IdInUse,
            hash_map::Entry::Vacant(vacant) => {
                let ended = None;
                vacant.insert(ReservationRecord { state_keys, note, ended, bytes, until_us });
            }
        }
        self.by_expiry.push(Reverse((until_us, id.into())));
        self.bytes += bytes;
        OpenOutcome::Opened
    }

    /// Drops ended reservations until there is room for `bytes` more. Returns whether there is.
    fn make_room(&mut self, bytes: usize) -> bool {
        while self.bytes + bytes > BYTES_MAX
            && let Some(id) = self.ended.pop_front()
        {
            self.forget(&id);
        }
        if self.by_expiry.len() > 2 * self.by_id.len() + 64 {
            let by_id = &self.by_id;
            self.by_expiry.retain(|Reverse((_, id))| by_id.contains_key(id));
        }
        self.bytes + bytes <= BYTES_MAX
    }

    fn forget_expired(&mut self, now_us: u64) {
        while let Some(Reverse((expires_us, _))) = self.by_expiry.peek()
            && *expires_us <= now_us
            && let Some(Reverse((_, id))) = self.by_expiry.pop()
        {
            if self.by_id.get(&id).is_some_and(|record| record.until_us <= now_us) {
                self.forget(&id);
            }
        }
        // Ids of expired reservations stay in the queue until they reach its front.
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
