//! Load shedding in a decision: the class of a request, and its slots in the fleet.

use super::{DecidedRows, DecisionRequest, Gate};
use crate::engine::{Row, Rules, ShedCounts, Verdict};
use crate::reservation::ShedHold;
use crate::rules::{InFlightCount, ShedEntry};
use crate::shed::{Entry, QueuedEntry, ShedRefusal, ShedSnapshot, ShedTicket};
use tollgate_policy::facts::Facts;
use tollgate_policy::policy::Selection;
use tollgate_store::{LeaseStore, Store};

/// Whether the caller sees the end of a request, and so gives its slots back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    Seen,
    /// A slot of the fleet is held for the time that the policy assumes.
    Unseen,
}

impl Rules {
    /// Selects what no answer lists, behind the limits: the slots of the fleet, then candidates.
    /// Returns the class of the request, if a shedder is on.
    #[inline]
    pub(crate) fn select_hidden(
        &self,
        facts: &Facts<'_>,
        selection: &mut Selection,
    ) -> Option<usize> {
        let class = self.policy().class(facts);
        if let Some(class) = class {
            self.policy().select_fleet(class, selection);
        }
        if self.policy().has_candidates() {
            self.policy().select_candidates(selection, |_| true);
        }
        class
    }
}

impl<'a, 'r: 'a> DecisionRequest<'a, 'r> {
    /// Prepares what [`Rules::select_hidden`] selected.
    #[inline]
    pub(crate) fn prepare_hidden(&mut self, class: Option<usize>, end: RequestEnd) {
        if self.rules.policy().has_candidates() {
            self.prepare_candidates(0);
        }
        if class.is_some() && self.rules.policy().has_fleet() {
            self.prepare_fleet(end);
        }
    }

    /// Prepares the slots of the fleet, which no counter of limits counts.
    pub(crate) fn prepare_fleet(&mut self, end: RequestEnd) {
        let rules: &'r Rules = self.rules;
        let Some(shed) = rules.shed() else { return };
        let limits = self.limits.iter_mut().zip(&mut self.charges).rev().skip(self.candidates);
        for (limit, charge) in limits {
            if !limit.selected.limit.selector.is_shed() {
                break;
            }
            limit.counts = false;
            charge.cost = 1;
            if let (RequestEnd::Unseen, Some(assumed)) = (end, shed.assumed(limit.selected.index)) {
                (charge.params, charge.params_id) = assumed;
            }
        }
    }
}

impl<'r> DecidedRows<Row<'r>> {
    /// The verdict on a request, which has a class if a shedder is on.
    #[inline]
    pub(crate) fn into_verdict(self, rules: &Rules, class: Option<usize>) -> Verdict<'r> {
        match (class, rules.shed()) {
            (Some(class), Some(shed)) => {
                Verdict::of_class(class, self.rows, self.allowed, || shed.retry_after_us())
            }
            _ => Verdict::new(self.allowed, self.rows),
        }
    }
}

impl<S: Store> Gate<S> {
    /// Counts a request by its class.
    #[inline]
    pub(crate) fn count_class(rules: &Rules, verdict: &Verdict<'_>) {
        if let Some(shed) = &verdict.shed
            && let Some(counters) = rules.shed().and_then(|rules| rules.counters(shed.class))
        {
            counters.count(shed, verdict.allowed);
        }
    }
}

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
        let entered = match shed.enter(verdict, client, now_us, &mut ticket) {
            Some(ShedEntry::Enforced(Entry::Queued(queued))) => return Some(queued),
            Some(ShedEntry::Enforced(Entry::Admitted(ticket))) => Ok(Some(ticket)),
            Some(ShedEntry::Enforced(Entry::Shed(refusal))) => Err(refusal),
            // A reservation's time to live is no wait of its request.
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
                    hold.ticket = ticket;
                    self.reserved_holds.insert(id, now_us.saturating_add(ttl_us), hold);
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
