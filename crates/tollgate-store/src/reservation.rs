//! Reservations: charges whose true cost is known later.

use crate::{Answer, Change, Mode};
use tollgate_core::{LimitParams, Penalty};

/// How long the end of a reservation can be repeated, unless others need the room.
pub const END_REPEATABLE_US: u64 = 600_000_000;

/// A store's own name for the state of a limit and key. In a shared store it does not reveal the
/// key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StateKey(Box<[u8]>);

/// A reservation to open.
#[derive(Clone, Debug)]
pub struct NewReservation<'a> {
    /// The id, by which any client that knows it can end the reservation.
    pub id: &'a str,
    /// The time to live, after which the reservation is gone.
    pub ttl_us: u64,
    /// The states that it charged.
    pub state_keys: Vec<StateKey>,
    /// The caller's note, returned at the end.
    pub note: Vec<u8>,
}

/// The result of opening a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenOutcome {
    /// The reservation is open.
    Opened,
    /// Another reservation has this id.
    IdInUse,
    /// There is no room.
    Full,
}

/// The change of one state at the end of a reservation.
#[derive(Clone, Copy, Debug)]
pub struct Settlement {
    /// The params of the row afterwards.
    pub params: LimitParams,
    /// The cost of that row, which is a peek.
    pub cost: u64,
    /// The mode of that row.
    pub mode: Mode,
    /// The limit's penalty.
    pub penalty: Option<Penalty>,
    /// What changes.
    pub change: Change,
}

/// A reservation that has ended, now or earlier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedReservation {
    /// The end that counts: the first one.
    pub end: u64,
    /// The note from the opening.
    pub note: Vec<u8>,
    /// The states that it charged.
    pub state_keys: Vec<StateKey>,
    /// The rows of the first end: one for each state, as of
    /// [`StoreCall::Adjust`](crate::StoreCall::Adjust).
    pub rows: Vec<Answer>,
}

impl StateKey {
    /// A store's own name.
    pub fn new(name: impl Into<Box<[u8]>>) -> Self {
        Self(name.into())
    }

    /// The name's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
