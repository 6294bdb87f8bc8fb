//! Units that may be another's: those that a store grants which may have forgotten what it granted
//! before.

use super::{Lease, RenewalResult};
use crate::lease::{Holder, LedgerReply};

impl Lease {
    /// Whether an answer has units that are not held yet, and when they were asked for.
    pub fn new_grant_sent_us(&self, number: u64, reply: &LedgerReply) -> Option<u64> {
        let flight = self.in_flight.filter(|flight| flight.number == number)?;
        let known = if reply.ledger == self.ledger { self.granted } else { 0 };
        (reply.granted > known).then_some(flight.sent_us)
    }

    /// The answer to the request with this number is not to be relied on: whatever it granted is
    /// nobody's. It stays counted in the store, where the holder that it was granted to is never
    /// heard of again.
    pub fn discard_reply(&mut self, number: u64, renewed: Holder) -> RenewalResult {
        if self.in_flight.take_if(|flight| flight.number == number).is_none() {
            return RenewalResult::default();
        }
        let stranded = self.balance() + self.returned - self.returned_acknowledged;
        self.reset_as(renewed);
        RenewalResult { stranded, ..RenewalResult::default() }
    }
}
