//! Open reservations of this node, with the keys that they charged.

use std::collections::HashMap;
use tollgate::engine::ReservedUnits;

/// Limit of tracked reservations. Units given back by further ones are not recorded.
const RESERVATIONS_MAX: usize = 100_000;

/// The charges of reservations by id.
#[derive(Debug, Default)]
pub(super) struct Reservations(HashMap<Box<str>, Reservation>);

#[derive(Debug)]
struct Reservation {
    expires_us: u64,
    charges: Box<[KeptCharge]>,
}

/// The units of one charge of a reservation.
#[derive(Debug)]
pub(super) struct KeptCharge {
    pub(super) state_id: u64,
    /// The name of the request's tier, or nothing.
    pub(super) tier: Box<str>,
    pub(super) key: Box<[u8]>,
    pub(super) units: u64,
}

impl Reservations {
    pub(super) fn insert(&mut self, now_us: u64, id: &str, ttl_us: u64, of: &[ReservedUnits<'_>]) {
        if self.0.len() >= RESERVATIONS_MAX {
            return;
        }
        let keep = |one: &ReservedUnits<'_>| KeptCharge {
            state_id: one.state_id,
            tier: one.tier.unwrap_or_default().into(),
            key: one.key.into(),
            units: one.units,
        };
        let (expires_us, charges) = (now_us.saturating_add(ttl_us), of.iter().map(keep).collect());
        self.0.insert(id.into(), Reservation { expires_us, charges });
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Box<[KeptCharge]>> {
        self.0.remove(id).map(|one| one.charges)
    }

    /// Drops expired reservations, whose charges stay.
    pub(super) fn expire(&mut self, now_us: u64) {
        self.0.retain(|_, one| one.expires_us > now_us);
        if self.0.capacity() > 4 * self.0.len() + 1024 {
            self.0.shrink_to_fit();
        }
    }
}
