//! What the store last said of a limit, and what follows from it for requests that find too little.

use super::{Lease, is_window};
use crate::lease::{LeaseTerms, LedgerReply};

/// What the store last said of the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitSnapshot {
    /// What was left for everybody.
    pub left: u64,
    /// When more is there, if it ever is.
    pub retry_us: Option<u64>,
    /// When the limit is as if never used.
    pub reset_us: u64,
    /// Until when nothing is granted, because the store forgot something.
    pub quiet_until_us: u64,
}

impl Lease {
    /// What the store last said.
    pub fn snapshot(&self) -> &LimitSnapshot {
        &self.snapshot
    }

    /// Until when the store has nothing to give as far as is known, so that there is no point in
    /// asking it. In the past while it is being asked.
    pub fn ask_not_before_us(&self) -> u64 {
        if self.in_flight.is_some() { 0 } else { self.ask_not_before_us }
    }

    /// The store itself refused a request, at `now_us`, with so much left: what it would have
    /// answered if it had been asked for units.
    pub fn record_refusal(
        &mut self,
        terms: &LeaseTerms,
        now_us: u64,
        left: u64,
        waits: (Option<u64>, u64),
    ) {
        let reply = LedgerReply {
            left,
            retry_after_us: waits.0,
            reset_after_us: waits.1,
            ..LedgerReply::default()
        };
        if self.in_flight.is_none() {
            self.update_snapshot(terms, (now_us, now_us), true, &reply);
        }
    }

    /// Something was given back, so that asking makes sense again.
    pub fn clear_refusal(&mut self) {
        self.ask_not_before_us = 0;
    }

    /// Where nothing was granted there is no point in asking again at once. What only returned
    /// something says nothing about that. A window's end is not slept through.
    ///
    /// Waits count from when the answer came, since they must not be too short. The reset counts
    /// from when it was asked for, and in one window never moves back: it is shown in whole
    /// seconds, and windows end with those.
    pub(crate) fn update_snapshot(
        &mut self,
        terms: &LeaseTerms,
        (sent_us, now_us): (u64, u64),
        wanted: bool,
        reply: &LedgerReply,
    ) {
        let reset_us = sent_us + reply.reset_after_us;
        let known_us = match is_window(terms) && now_us < self.snapshot.reset_us {
            true => self.snapshot.reset_us.min(reset_us + terms.lifetime_us),
            false => 0,
        };
        self.snapshot = LimitSnapshot {
            left: reply.left,
            retry_us: reply.retry_after_us.map(|wait_us| now_us + wait_us),
            reset_us: reset_us.max(known_us),
            quiet_until_us: now_us + reply.quiet_us,
        };
        let (least_us, most_us) = (terms.lifetime_us / 8, terms.lifetime_us);
        let least_us = if is_window(terms) { least_us.min(1_000) } else { least_us };
        let wait_us = match reply.quiet_us {
            0 if !wanted => return,
            0 => reply.retry_after_us.unwrap_or(most_us).clamp(least_us, most_us),
            quiet_us => quiet_us.min(terms.quiet_us / 4),
        };
        self.ask_not_before_us = now_us + wait_us;
    }
}
