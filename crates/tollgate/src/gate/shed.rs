//! Reservations in the adaptive shedder, and its counts.

use super::Gate;
use crate::engine::{Rules, ShedCounts, Verdict};
use crate::reservation::{ShedHold, ShedPlace};
use crate::rules::{InFlightCount, ShedEntry};
use crate::shed::{
    Entry, QueuedEntry, ShedRefusal, ShedSnapshot, ShedTicket, UpstreamOutcome, UpstreamReport,
};
use tollgate_policy::facts::Facts;
use tollgate_store::{LeaseStore, Store};

impl<S: Store> Gate<S> {
    /// Enters the adaptive shedder with a request that [`reserve`](Self::reserve) admitted under
    /// this id and for this time to live. Returns the request's place in the queue, if it waits:
    /// then [`leave_reserved_queue`](Self::leave_reserved_queue) must follow. A request that is
    /// shed is no longer allowed, and the caller cancels its reservation.
    pub fn enter_reserved(
        &self,
        rules: &Rules,
        now_us: u64,
        facts: &Facts<'_>,
        verdict: &mut Verdict<'_>,
        reservation: (&str, u64),
    ) -> Option<QueuedEntry> {
        let shed = rules.shed().filter(|_| verdict.allowed && verdict.shed.is_some())?;
        self.reserved_holds.expire(now_us);
        let client = shed.client(rules.policy(), facts);
        let mut ticket = None;
        let entered = match shed.enter(verdict, client, now_us, |granted| ticket = Some(granted)) {
            Some(ShedEntry::Enforced(Entry::Queued(queued))) => return Some(queued),
            Some(ShedEntry::Enforced(Entry::Admitted(ticket))) => Ok(Some(ticket)),
            Some(ShedEntry::Enforced(Entry::Shed(refusal))) => Err(refusal),
            // The request does not wait: a reservation may last far longer than a request.
            Some(ShedEntry::Shadow(_)) | None => Ok(ticket),
        };
        self.hold_reserved(rules, now_us, verdict, reservation, entered);
        None
    }

    /// Ends the wait of a request with a reservation.
    pub fn leave_reserved_queue(
        &self,
        rules: &Rules,
        now_us: u64,
        verdict: &mut Verdict<'_>,
        reservation: (&str, u64),
        waited: Result<ShedTicket, ShedRefusal>,
    ) {
        self.hold_reserved(rules, now_us, verdict, reservation, waited.map(Some));
    }

    /// Reservations whose requests hold a slot of the adaptive shedder. Another node may have ended
    /// them: ask the store, and call [`ended_elsewhere`](Self::ended_elsewhere) for those.
    pub fn reservations_to_ask(&self, now_us: u64) -> Vec<Box<str>> {
        self.reserved_holds.to_ask(now_us)
    }

    /// Frees the slot of a reservation that another node ended. That node got the upstream's
    /// outcome, so this one learns nothing from it.
    pub fn ended_elsewhere(&self, now_us: u64, id: &str) {
        let report = UpstreamReport::new(UpstreamOutcome::Ignored);
        self.reserved_holds.finish(id, now_us, report);
    }

    fn hold_reserved(
        &self,
        rules: &Rules,
        now_us: u64,
        verdict: &mut Verdict<'_>,
        (id, ttl_us): (&str, u64),
        entered: Result<Option<ShedTicket>, ShedRefusal>,
    ) {
        match entered {
            Ok(ticket) => {
                let counters = verdict.shed.and_then(|shed| rules.shed()?.counters(shed.class));
                if let Some(counters) = counters {
                    let mut hold = ShedHold::new(InFlightCount::new(counters));
                    if let Some(ticket) = ticket {
                        hold.place = ShedPlace::Slot(ticket);
                    }
                    self.reserved_holds.insert(id, (now_us, ttl_us), hold);
                }
            }
            Err(refusal) => verdict.set_shed(refusal),
        }
        Self::count_class(rules, verdict);
    }
}

impl<S: LeaseStore> Gate<S> {
    /// Shedder counts, by class. A class that a reload removes keeps its counts.
    pub fn shed_counts(&self) -> Vec<(Box<str>, ShedCounts)> {
        self.builder().shed.counts()
    }

    /// The state of the adaptive shedder, if the policy has one.
    pub fn adaptive(&self) -> Option<ShedSnapshot> {
        self.builder().shed.adaptive().map(|shedder| shedder.snapshot())
    }
}
