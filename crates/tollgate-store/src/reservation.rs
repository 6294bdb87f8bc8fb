//! What is kept of a request until its true cost is known.

use crate::{Answer, Change, Mode};
use tollgate_core::{LimitParams, Penalty};

/// How long a call that ended a reservation can be repeated at least, unless others need the room.
pub const END_REPEATABLE_US: u64 = 600_000_000;

/// A store's own name for what a limit has for a key. Where it is written down it shows nothing of
/// the key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StateKey(Box<[u8]>);

/// A reservation to be kept.
#[derive(Clone, Debug)]
pub struct NewReservation<'a> {
    /// What it is ended by. Whoever knows it may do so.
    pub id: &'a str,
    /// From now on, after which it is as if it had never been.
    pub ttl_us: u64,
    /// Whose state it concerns.
    pub state_keys: Vec<StateKey>,
    /// What the caller wants to know again when it ends.
    pub note: Vec<u8>,
}

/// What became of an [`NewReservation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenOutcome {
    /// It is kept.
    Opened,
    /// Another one has this name.
    IdInUse,
    /// No more can be kept.
    Full,
}

/// What the end of a reservation does at one of its places.
#[derive(Clone, Copy, Debug)]
pub struct Settlement {
    /// The numbers under which the row afterwards answers.
    pub params: LimitParams,
    /// The cost for which it answers, as a peek does.
    pub cost: u64,
    /// Whether the row shows blocks.
    pub mode: Mode,
    /// Of the limit, if it has one.
    pub penalty: Option<Penalty>,
    /// What changes.
    pub change: Change,
}

/// A reservation that has ended, now or before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedReservation {
    /// The end that counts: the first one.
    pub end: u64,
    /// What the opening noted.
    pub note: Vec<u8>,
    /// Whose state it concerned.
    pub state_keys: Vec<StateKey>,
    /// What the first end answered: a row for each place, as
    /// [`Call::Adjust`](crate::StoreCall::Adjust) answers.
    pub rows: Vec<Answer>,
}

impl StateKey {
    /// A store's own name.
    pub fn new(name: impl Into<Box<[u8]>>) -> Self {
        Self(name.into())
    }

    /// As the store wrote it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
