//! The hold of a request in its node's shedder, until its response or its reservation ends.

use crate::rules::InFlightCount;
use crate::shed::{QueuedEntry, ShedTicket, UpstreamOutcome, UpstreamReport};
use std::collections::HashMap;
use std::mem;
use std::sync::{Mutex, MutexGuard};

/// A request in flight. Dropping it abandons its call.
#[derive(Debug)]
pub(crate) struct ShedHold {
    count: InFlightCount,
    pub(crate) place: ShedPlace,
    /// The upstream's outcome, once known.
    outcome: Option<UpstreamOutcome>,
}

/// The place of a request in the adaptive shedder.
#[derive(Debug)]
pub(crate) enum ShedPlace {
    /// The request never entered, or left the queue.
    Outside,
    /// A slot, until its ticket is finished.
    Slot(ShedTicket),
    Queue(QueuedEntry),
    /// The place that the request would have in the queue, if the shedder were not in shadow mode.
    Shadow(QueuedEntry),
}

impl ShedHold {
    #[inline]
    pub(crate) fn new(count: InFlightCount) -> Self {
        Self { count, place: ShedPlace::Outside, outcome: None }
    }

    /// Records the upstream's outcome. The first record counts.
    #[inline]
    pub(crate) fn record(&mut self, outcome: UpstreamOutcome) {
        self.outcome.get_or_insert(outcome);
    }

    /// Records the status of a response. An overloaded service answers 503 or 504.
    #[inline]
    pub(crate) fn record_status(&mut self, status: u16) {
        let is_busy = matches!(status, 503 | 504);
        self.record(if is_busy { UpstreamOutcome::Overloaded } else { UpstreamOutcome::Ok });
    }

    /// Frees the slot, and reports the upstream's outcome. The request itself may continue.
    #[inline]
    pub(crate) fn release(&mut self, clock: impl FnOnce() -> u64) {
        if let ShedPlace::Shadow(_) = self.place {
            self.end_shadow();
        }
        if let ShedPlace::Slot(ticket) = &mut self.place
            && !ticket.is_finished()
        {
            ticket.end(clock(), self.outcome.unwrap_or(UpstreamOutcome::Abandoned), None);
        }
    }

    #[inline(never)]
    fn end_shadow(&mut self) {
        if let ShedPlace::Shadow(queued) = mem::replace(&mut self.place, ShedPlace::Outside) {
            match queued.end() {
                Some(Ok(ticket)) => self.place = ShedPlace::Slot(ticket),
                Some(Err(refusal)) => self.count.count_shadow(refusal.reason),
                None => {}
            }
        }
    }

    /// Frees the slot at the end of the request, if the response did not.
    pub(crate) fn finish(mut self, now_us: u64) {
        self.release(|| now_us);
    }

    /// Ends a call that took `latency_us`. It may have ended before the report.
    fn finish_after(mut self, now_us: u64, latency_us: Option<u64>) {
        let outcome = self.outcome.unwrap_or(UpstreamOutcome::Ignored);
        if let ShedPlace::Slot(ticket) = &mut self.place {
            ticket.end(now_us, outcome, latency_us);
        }
    }
}

/// The holds of open reservations, by id. Another node may settle a reservation: its hold ends
/// when this node learns of it, and at the latest with the reservation's time to live.
#[derive(Debug, Default)]
pub(crate) struct ReservedHolds(Mutex<HoldTable>);

#[derive(Debug, Default)]
struct HoldTable {
    holds: HashMap<Box<str>, ReservedHold>,
    /// The earliest expiry of any hold.
    next_expiry_us: u64,
}

#[derive(Debug)]
struct ReservedHold {
    expires_us: u64,
    /// The time from which on this node asks the store whether another node ended the reservation.
    ask_us: u64,
    hold: ShedHold,
}

/// The interval of questions to the store about one reservation.
const ASK_INTERVAL_US: u64 = 1_000_000;
/// Limit of questions at one time.
const ASKED_MAX: usize = 64;
/// Limit of holds: further reservations leave the shedder at once.
const HOLDS_MAX: usize = 65_536;

impl ReservedHolds {
    pub(crate) fn insert(&self, id: &str, (now_us, ttl_us): (u64, u64), hold: ShedHold) {
        let expires_us = now_us.saturating_add(ttl_us);
        let ask_us = now_us.saturating_add(ASK_INTERVAL_US);
        let mut table = self.lock();
        if table.holds.len() < HOLDS_MAX {
            let is_first = table.holds.is_empty();
            let next_us = if is_first { u64::MAX } else { table.next_expiry_us };
            table.next_expiry_us = next_us.min(expires_us);
            table.holds.insert(id.into(), ReservedHold { expires_us, ask_us, hold });
        }
    }

    /// Ends the hold of a reservation, if this node has it.
    pub(crate) fn finish(&self, id: &str, now_us: u64, report: UpstreamReport) {
        let held = self.lock().holds.remove(id);
        if let Some(ReservedHold { mut hold, .. }) = held {
            hold.record(report.outcome);
            hold.finish_after(now_us, report.latency_us);
        }
    }

    /// Some of the reservations that have been open for a while, each once per interval.
    pub(crate) fn to_ask(&self, now_us: u64) -> Vec<Box<str>> {
        let mut table = self.lock();
        let due = table.holds.iter_mut().filter(|(_, held)| held.ask_us <= now_us);
        due.take(ASKED_MAX)
            .map(|(id, held)| {
                held.ask_us = now_us.saturating_add(ASK_INTERVAL_US);
                id.clone()
            })
            .collect()
    }

    /// Ends the holds of reservations that were not settled in time.
    pub(crate) fn expire(&self, now_us: u64) {
        let mut table = self.lock();
        if table.holds.is_empty() || now_us < table.next_expiry_us {
            return;
        }
        let expired: Vec<_> = table.holds.extract_if(|_, held| held.expires_us <= now_us).collect();
        table.next_expiry_us =
            table.holds.values().map(|held| held.expires_us).min().unwrap_or(u64::MAX);
        drop(table);
        for (_, ReservedHold { mut hold, .. }) in expired {
            hold.record(UpstreamOutcome::Ignored);
            hold.finish(now_us);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HoldTable> {
        crate::sync::lock(&self.0)
    }
}
