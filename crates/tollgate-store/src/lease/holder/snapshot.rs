//! The store's last reply about a limit, for requests that find too few units.

use super::{Lease, is_window};
use crate::lease::{LeaseTerms, LedgerReply};

/// A limit as of the store's last reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitSnapshot {
    /// The instant of the reply; zero if there was none.
    pub at_us: u64,
    /// Units left for all holders.
    pub left: u64,
    /// The instant at which the needed units are available, if ever; the instant of the reply
    /// while other holders may return units.
    pub retry_us: Option<u64>,
    /// The instant from which the limit is as if never used.
    pub reset_us: u64,
    /// The end of the grace period, before which nothing is granted.
    pub grace_until_us: u64,
}

impl LimitSnapshot {
    /// Whether the reply is younger than `within_us`, and the limit was not reset since.
    pub const fn is_recent(&self, now_us: u64, within_us: u64) -> bool {
        let was_reset = self.at_us < self.reset_us && self.reset_us <= now_us;
        self.at_us > 0 && now_us < self.at_us.saturating_add(within_us) && !was_reset
    }
}

impl Lease {
    /// The limit as of the store's last reply.
    pub fn snapshot(&self) -> &LimitSnapshot {
        &self.snapshot
    }

    /// The instant before which the store has nothing to grant, as far as known. Zero while a
    /// request is in flight.
    pub fn ask_not_before_us(&self) -> u64 {
        if self.in_flight.is_some() { 0 } else { self.ask_not_before_us }
    }

    /// Records that the store refused a request at `now_us`. If nothing was left, this is like a
    /// refusal of units.
    pub fn record_refusal(
        &mut self,
        terms: &LeaseTerms,
        now_us: u64,
        left: u64,
        waits: (Option<u64>, u64),
    ) {
        let (retry_after_us, reset_after_us) = waits;
        let grace_us = self.snapshot.grace_until_us.saturating_sub(now_us);
        let reply = LedgerReply {
            left,
            grace_us,
            retry_after_us,
            reset_after_us,
            ..LedgerReply::default()
        };
        if self.in_flight.is_none() {
            self.update_snapshot(terms, (now_us, now_us), left == 0, &reply);
        }
    }

    /// Clears a refusal, because units were given back and asking makes sense again.
    pub fn clear_refusal(&mut self) {
        self.ask_not_before_us = 0;
    }

    /// Notes how long other holders may still return units. Each returns what it has not spent at
    /// most two lifetimes after its grant.
    pub(super) fn note_other_holders(
        &mut self,
        terms: &LeaseTerms,
        now_us: u64,
        reply: &LedgerReply,
    ) {
        let granted = reply.summary.granted.saturating_sub(reply.granted);
        let returned = reply.summary.returned.saturating_sub(reply.returned);
        if granted != self.others_granted.0 {
            self.others_granted = (granted, now_us);
        }
        let until_us = self.others_granted.1 + 2 * terms.lifetime_us;
        self.returns_until_us = if granted > returned { until_us } else { 0 };
    }

    /// Updates the snapshot from a reply. After a reply without units, asking again at once is
    /// pointless. A reply to a pure return says nothing about that. A wait never extends beyond a
    /// window's end.
    ///
    /// Waits count from the arrival of the reply, so that they are never too short. The reset
    /// counts from the send time, and never moves back in one window: answers show whole seconds.
    pub(crate) fn update_snapshot(
        &mut self,
        terms: &LeaseTerms,
        (sent_us, now_us): (u64, u64),
        wanted: bool,
        reply: &LedgerReply,
    ) {
        let reset_us = sent_us + reply.reset_after_us;
        let shown_us = if is_window(terms) && now_us < self.snapshot.reset_us {
            self.snapshot.reset_us.min(reset_us + terms.lifetime_us)
        } else {
            0
        };
        // A client that waits for the refill alone would miss units that other nodes return soon.
        let may_return = now_us < self.returns_until_us;
        let retry_us = |at_us| if may_return { now_us } else { at_us };
        self.snapshot = LimitSnapshot {
            at_us: now_us,
            left: reply.left,
            retry_us: reply.retry_after_us.map(|wait_us| now_us + wait_us).map(retry_us),
            reset_us: reset_us.max(shown_us),
            grace_until_us: now_us + reply.grace_us,
        };
        let (min_us, max_us) = (terms.lifetime_us / 8, terms.lifetime_us);
        let min_us = if is_window(terms) { min_us.min(1_000) } else { min_us };
        let wait_us = match reply.grace_us {
            0 if !wanted => return,
            0 => reply.retry_after_us.unwrap_or(max_us).clamp(min_us, max_us),
            grace_us => grace_us.min(terms.grace_us / 4),
        };
        self.ask_not_before_us = now_us + wait_us;
    }
}
