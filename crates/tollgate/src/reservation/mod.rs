//! Reservations: charges that end later, by id or with the response, and slot renewal.

mod finish;
mod in_flight;
mod record;
mod reserve;
mod settleable;
mod shed_hold;
mod slots;

pub use finish::UnfinishedCharges;
pub(crate) use in_flight::depends_on_answer;
pub use in_flight::{AdmissionOptions, InFlightCharges};
pub use reserve::{SettledReservation, TTL_US_MAX};
pub(crate) use shed_hold::{ReservedHolds, ShedHold, ShedPlace};
pub(crate) use slots::SlotRegistry;

use tollgate_store::StoreErrorKind;

/// The end of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationEnd {
    /// The request had this cost.
    Settle(u64),
    /// The work was not done; the request costs nothing.
    Cancel,
}

impl ReservationEnd {
    /// The encoding in stores: the cost, which is below 2^32, or 2^32 for a cancellation.
    const fn code(self) -> u64 {
        match self {
            Self::Settle(cost) => cost,
            Self::Cancel => 1 << 32,
        }
    }

    /// The end with this [code](Self::code).
    const fn of_code(code: u64) -> Self {
        if code > u32::MAX as u64 { Self::Cancel } else { Self::Settle(code) }
    }

    /// The actual cost.
    pub const fn cost(self) -> u64 {
        match self {
            Self::Settle(cost) => cost,
            Self::Cancel => 0,
        }
    }
}

/// The reason why a reservation could not be made or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReservationError {
    /// The reservation was never made, or has expired.
    Unknown,
    /// The reservation has already ended in another way.
    Ended,
    /// A settled cost is at most 2^32 - 1.
    CostTooLarge,
    /// A time to live is between 1 ms and an hour.
    TtlOutOfRange,
    /// The id is in use.
    Taken,
    /// No more reservations can be kept.
    Full,
    /// The store failed; the reservation is unchanged.
    Undecided(StoreErrorKind),
}

impl std::fmt::Display for ReservationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unknown => "no such reservation; it may have expired",
            Self::Ended => "the reservation has already ended in another way",
            Self::CostTooLarge => "a settled cost is at most 4294967295",
            Self::TtlOutOfRange => "a ttl is between 1ms and 1h",
            Self::Taken => "a reservation with this name is open or has just ended",
            Self::Full => "too many reservations are open; let some end",
            Self::Undecided(_) => "the store did not answer; try again",
        })
    }
}

impl std::error::Error for ReservationError {}
