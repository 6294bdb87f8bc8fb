//! Reservations: charges whose true cost is known later.

use crate::{Answer, Change, ChargeMode};
use tollgate_core::{LimitParams, Penalty};

/// The time for which the end of a reservation can be repeated, unless the room is needed.
pub const END_REPEATABLE_US: u64 = 600_000_000;

/// A store's own name for the state of a limit and key. In a shared store the name does not reveal
/// the key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StateKey(Box<[u8]>);

/// A reservation to open.
#[derive(Clone, Debug)]
pub struct NewReservation<'a> {
    /// The id. Any client that knows it can end the reservation.
    pub id: &'a str,
    /// The time to live. Afterwards the reservation is gone.
    pub ttl_us: u64,
    /// The states that the reservation charged.
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
    /// The cost of the row, which is a peek.
    pub cost: u64,
    /// The mode of the row.
    pub mode: ChargeMode,
    /// The limit's penalty.
    pub penalty: Option<Penalty>,
    /// The change.
    pub change: Change,
}

/// A reservation that has ended, now or earlier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedReservation {
    /// The end that counts: the first one.
    pub end: u64,
    /// The note from the opening.
    pub note: Vec<u8>,
    /// The states that the reservation charged.
    pub state_keys: Vec<StateKey>,
    /// The rows of the first end, one per state, as for
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
