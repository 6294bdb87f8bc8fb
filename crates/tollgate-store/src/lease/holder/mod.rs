//! The holder's side of a lease: the units that a process holds, and its requests for more.

mod snapshot;

pub use snapshot::LimitSnapshot;

use super::demand::Demand;
use super::{BookSummary, Holder, LeaseTerms, LedgerReply, LedgerRequest, shortest_local_us};

/// Limit of separate grants. More arrive only while most are nearly spent; then the two oldest are
/// merged.
const GRANTS_MAX: usize = 4;

/// The units that a process holds of one limit for one key.
///
/// Instants are those of the process's boot-time clock, unless a field says "by the store's clock".
#[derive(Clone, Debug)]
pub struct Lease {
    holder: Holder,
    ledger: u64,
    /// The summary of the book in the last reply (I7).
    summary: BookSummary,
    /// The number of the last call that was answered to this holder.
    last_call: u64,
    /// The instant from which the store may have dropped the ledger.
    ledger_expires_us: u64,
    /// The instant from which the ledger makes no difference.
    ledger_counts_until_us: u64,
    granted: u64,
    spent: u64,
    returned: u64,
    /// The grants, soonest expiry first.
    grants: [Grant; GRANTS_MAX],
    grant_count: usize,
    /// The part of `returned` that the store has acknowledged.
    returned_acknowledged: u64,
    /// The grant time, by the store's clock, of the oldest unit returned without acknowledgement.
    return_at_us: u64,
    /// Units that can no longer be spent or returned, since the counter was last taken.
    stranded: u64,
    in_flight: Option<InFlightRequest>,
    last_request_us: u64,
    /// The time until which the store remembers the holder; `None` before the first reply.
    holder_expires_us: Option<u64>,
    /// The instant before which the store has nothing to grant.
    ask_not_before_us: u64,
    /// Units granted to other holders, and the instant of the first reply that showed so many.
    others_granted: (u64, u64),
    /// The instant from which other holders have nothing to return.
    returns_until_us: u64,
    demand: Demand,
    snapshot: LimitSnapshot,
}

/// Units that were granted together, and expire together.
#[derive(Clone, Copy, Debug, Default)]
struct Grant {
    units: u64,
    expires_us: u64,
    /// The time of the grant, by the store's clock.
    granted_us: u64,
}

#[derive(Clone, Copy, Debug)]
struct InFlightRequest {
    number: u64,
    sent_us: u64,
    /// The total of returned units in the request.
    returned: u64,
    /// Whether the request asked for units.
    wants_units: bool,
}

/// A receipt for spent units, to refund them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpentUnits {
    /// The number of units.
    pub units: u64,
    /// The grant time of the oldest of these units, by the store's clock.
    pub granted_us: u64,
    holder: Holder,
    ledger: u64,
    expires_us: u64,
}

/// The effect of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RenewalResult {
    /// Units received.
    pub granted: u64,
    /// Returned units that the store acknowledged.
    pub returned: u64,
    /// Whether the store had lost writes.
    pub rolled_back: bool,
}

impl Lease {
    /// Creates an empty lease. No other lease of any process may use this holder.
    pub fn new(holder: Holder, now_us: u64) -> Self {
        Self {
            holder,
            ledger: 0,
            summary: BookSummary::default(),
            last_call: 0,
            ledger_expires_us: 0,
            ledger_counts_until_us: 0,
            granted: 0,
            spent: 0,
            returned: 0,
            grants: [Grant::default(); GRANTS_MAX],
            grant_count: 0,
            returned_acknowledged: 0,
            return_at_us: u64::MAX,
            stranded: 0,
            in_flight: None,
            last_request_us: now_us,
            holder_expires_us: None,
            ask_not_before_us: 0,
            others_granted: (0, 0),
            returns_until_us: 0,
            demand: Demand::new(now_us),
            snapshot: LimitSnapshot::default(),
        }
    }

    /// Spends `units`, if that many are held and unexpired (I1).
    pub fn spend(&mut self, now_us: u64, units: u64) -> Option<SpentUnits> {
        self.demand.count(units);
        self.spend_counted(now_us, units)
    }

    /// Spends `units` for a request that was counted as demand before it waited.
    pub fn spend_counted(&mut self, now_us: u64, units: u64) -> Option<SpentUnits> {
        self.expire(now_us);
        let left = self.balance().checked_sub(units)?;
        let oldest = self.grants[0];
        self.take_oldest_first(units);
        self.spent += units;
        debug_assert_eq!(left, self.balance());
        let (holder, ledger) = (self.holder, self.ledger);
        let Grant { granted_us, expires_us, .. } = oldest;
        Some(SpentUnits { units, granted_us, holder, ledger, expires_us })
    }

    /// Puts back the units of a request that another limit refused. If their grant is gone, the
    /// units go back to the store: in a later grant they would live too long.
    pub fn refund(&mut self, now_us: u64, spent: &SpentUnits) {
        if (spent.holder, spent.ledger) != (self.holder, self.ledger) {
            self.stranded += spent.units;
            return;
        }
        if spent.units == 0 {
            return;
        }
        self.spent -= spent.units;
        self.demand.uncount(spent.units);
        let grants = &mut self.grants[..self.grant_count];
        match grants.iter_mut().find(|grant| grant.expires_us == spent.expires_us) {
            Some(grant) => grant.units += spent.units,
            None => self.queue_return(spent.units, spent.granted_us),
        }
        self.expire(now_us);
    }

    /// Units held, expired ones included.
    pub fn balance(&self) -> u64 {
        self.granted - self.spent - self.returned
    }

    /// Units granted, minus those spent, stranded, or returned with acknowledgement.
    pub fn held(&self) -> u64 {
        self.granted - self.spent - self.returned_acknowledged
    }

    /// Takes the count of units stranded since the last call.
    pub fn take_stranded(&mut self) -> u64 {
        std::mem::take(&mut self.stranded)
    }

    /// Units that are unexpired at `now_us`.
    pub fn spendable(&self, now_us: u64) -> u64 {
        let grants = self.grants[..self.grant_count].iter();
        grants.filter(|grant| now_us < grant.expires_us).map(|grant| grant.units).sum()
    }

    /// Units granted, spent and returned in the current ledger.
    pub fn totals(&self) -> (Holder, u64, [u64; 3]) {
        (self.holder, self.ledger, [self.granted, self.spent, self.returned])
    }

    /// The ledger's id, and the summary of its book in the last reply.
    pub fn summary(&self) -> (u64, BookSummary) {
        (self.ledger, self.summary)
    }

    /// Whether a request is waiting for its reply.
    pub fn has_request_in_flight(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Whether to ask for units: a request needs more than is held, or demand soon will.
    pub fn should_ask(&self, now_us: u64, need: u64) -> bool {
        if self.in_flight.is_some() || now_us < self.ask_not_before_us {
            return false;
        }
        let spendable = self.spendable(now_us);
        spendable < need || self.demand.wants_more(spendable)
    }

    /// Whether units should be returned.
    pub fn should_return(&mut self, now_us: u64) -> bool {
        self.expire(now_us);
        self.in_flight.is_none() && self.returned > self.returned_acknowledged
    }

    /// Whether the lease can be dropped. While its ledger counts, the lease must stay: the store
    /// may lose the ledger, and this lease can re-assert it.
    pub fn can_be_dropped(&self, terms: &LeaseTerms, now_us: u64) -> bool {
        let forgotten = self.ledger == 0 || now_us >= self.ledger_counts_until_us;
        // An unanswered request may have been granted; the next reply would show the grant.
        let silent = now_us >= self.last_request_us + terms.holder_timeout_us();
        self.in_flight.is_none() && forgotten && silent && self.spendable(now_us) == 0
    }

    /// Whether the lease holds no units and waits for no reply.
    pub fn holds_nothing(&self, now_us: u64) -> bool {
        self.in_flight.is_none() && self.spendable(now_us) == 0
    }

    /// Returns all units, because the limit's params changed or the process ends.
    pub fn return_all(&mut self) {
        for index in 0..self.grant_count {
            let grant = self.grants[index];
            self.queue_return(grant.units, grant.granted_us);
        }
        self.grant_count = 0;
    }

    /// Returns the units of expired grants.
    fn expire(&mut self, now_us: u64) {
        while self.grant_count > 0 && now_us >= self.grants[0].expires_us {
            let grant = self.pop_oldest_grant();
            self.queue_return(grant.units, grant.granted_us);
        }
    }

    /// Queues units for return. They leave the balance before the store learns of the return (I5).
    fn queue_return(&mut self, units: u64, granted_us: u64) {
        if units > 0 {
            self.returned += units;
            self.return_at_us = self.return_at_us.min(granted_us);
        }
    }

    fn take_oldest_first(&mut self, mut units: u64) {
        while self.grant_count > 0 {
            let grant = &mut self.grants[0];
            let taken = units.min(grant.units);
            grant.units -= taken;
            units -= taken;
            if grant.units > 0 {
                return;
            }
            self.pop_oldest_grant();
        }
    }

    fn add_grant(&mut self, grant: Grant) {
        if self.grant_count == GRANTS_MAX {
            let oldest = self.pop_oldest_grant();
            self.grants[0].units += oldest.units;
            self.grants[0].expires_us = self.grants[0].expires_us.min(oldest.expires_us);
            self.grants[0].granted_us = self.grants[0].granted_us.min(oldest.granted_us);
        }
        // Sorted by expiry.
        let index = self.grants[..self.grant_count]
            .partition_point(|one| one.expires_us <= grant.expires_us);
        self.grants[index..=self.grant_count].rotate_right(1);
        self.grants[index] = grant;
        self.grant_count += 1;
    }

    fn pop_oldest_grant(&mut self) -> Grant {
        let grant = self.grants[0];
        self.grants[..self.grant_count].rotate_left(1);
        self.grant_count -= 1;
        grant
    }

    /// Builds the request to send at `now_us`. With `assert`, it only re-asserts and returns units.
    /// `new_holder` replaces a holder that the store may have dropped.
    pub fn start_request(
        &mut self,
        terms: &LeaseTerms,
        now_us: u64,
        (need, assert): (u64, bool),
        number: u64,
        new_holder: Holder,
    ) -> LedgerRequest {
        self.expire(now_us);
        let over = self.ledger != 0 && now_us >= self.ledger_expires_us;
        // Without a ledger there is nothing to assert. Units granted to an unanswered request may
        // belong to another holder by now.
        if over || assert && self.ledger == 0 {
            self.reset_as(new_holder);
        } else if !is_window(terms) && self.holder_expires_us.is_some_and(|at_us| now_us >= at_us) {
            // The store may have dropped the holder, but not the ledger.
            self.replace_holder(new_holder);
        }
        // The store may get this request, but the reply may be lost. Then these terms count.
        let expires_us = now_us + terms.holder_timeout_us();
        self.holder_expires_us = self.holder_expires_us.map(|at_us| at_us.min(expires_us));
        self.in_flight = Some(InFlightRequest {
            number,
            sent_us: now_us,
            returned: self.returned,
            wants_units: !assert,
        });
        self.last_request_us = now_us;
        let spendable = self.spendable(now_us);
        let want =
            if assert { 0 } else { self.demand.request_size(terms, now_us, spendable, need) };
        LedgerRequest {
            holder: self.holder,
            ledger: self.ledger,
            known_granted: self.granted,
            want,
            need: need.saturating_sub(spendable).min(want),
            returned: self.returned,
            acknowledged: self.returned_acknowledged,
            return_at_us: self.return_at_us.min(tollgate_core::MAX_US),
            summary: self.summary,
            last_call: self.last_call,
        }
    }

    /// Records that the request got no reply. The next reply shows whether it was granted (I3).
    pub fn request_failed(&mut self, number: u64) {
        self.in_flight.take_if(|request| request.number == number);
    }

    /// Drops the request in flight, whose reply will not come.
    pub fn forget_request(&mut self) {
        self.in_flight = None;
    }

    /// Applies the reply to the request with this number. Ignores a reply to an older request: the
    /// next reply includes its grant.
    pub fn apply_reply(
        &mut self,
        terms: &LeaseTerms,
        now_us: u64,
        number: u64,
        reply: &LedgerReply,
        new_holder: Holder,
    ) -> RenewalResult {
        self.take_reply((terms, now_us), number, reply, new_holder, true)
    }

    fn take_reply(
        &mut self,
        (terms, now_us): (&LeaseTerms, u64),
        number: u64,
        reply: &LedgerReply,
        new_holder: Holder,
        is_valid: bool,
    ) -> RenewalResult {
        let Some(request) = self.in_flight.take_if(|request| request.number == number) else {
            return RenewalResult::default();
        };
        let mut result =
            RenewalResult { rolled_back: reply.rolled_back, ..RenewalResult::default() };
        self.holder_expires_us = Some(request.sent_us + terms.holder_timeout_us());
        self.expire(now_us);
        let own = self.switch_ledger(terms, reply, new_holder);
        self.summary = reply.summary;
        self.ledger_expires_us = request.sent_us + shortest_local_us(reply.kept_us);
        self.ledger_counts_until_us = now_us.saturating_add(reply.reset_after_us);
        self.note_other_holders(terms, now_us, reply);
        self.update_snapshot(terms, (request.sent_us, now_us), request.wants_units, reply);
        if !own {
            return result;
        }
        self.last_call = reply.summary.calls;
        if reply.granted > self.granted {
            result.granted = reply.granted - self.granted;
            self.granted = reply.granted;
            let (units, granted_us) = (result.granted, reply.oldest_grant_us);
            let expires_us = request.sent_us + shortest_local_us(reply.usable_us);
            match is_valid {
                true => self.add_grant(Grant { units, expires_us, granted_us }),
                false => self.queue_return(units, granted_us),
            }
            self.expire(now_us);
            self.ask_not_before_us = now_us;
            self.demand.cap_target(self.spendable(now_us));
        }
        if reply.reinstated {
            // The store cannot tell which returns it has credited, so it credits none.
            self.stranded += request.returned.saturating_sub(self.returned_acknowledged);
            self.returned_acknowledged = self.returned_acknowledged.max(request.returned);
        }
        let known = reply.returned.min(self.returned).max(self.returned_acknowledged);
        result.returned = known - self.returned_acknowledged;
        self.returned_acknowledged = known;
        if self.returned_acknowledged >= self.returned {
            self.return_at_us = u64::MAX;
        }
        result
    }

    /// Switches to the reply's ledger. Units of the old ledger are stranded. Returns whether the
    /// reply's totals are this holder's.
    ///
    /// In a later window this holder is new, so the totals are its own. In any other ledger it may
    /// have spent units before, so it becomes a new holder.
    fn switch_ledger(
        &mut self,
        terms: &LeaseTerms,
        reply: &LedgerReply,
        new_holder: Holder,
    ) -> bool {
        if reply.ledger == self.ledger {
            return true;
        }
        let own = self.ledger == 0 || is_window(terms) && reply.ledger > self.ledger;
        self.reset_as(if own { self.holder } else { new_holder });
        self.ledger = reply.ledger;
        own
    }

    /// Starts again as `holder`. Units held and unacknowledged returns are stranded.
    fn reset_as(&mut self, holder: Holder) {
        self.stranded += self.held();
        self.holder = holder;
        (self.ledger, self.granted, self.spent, self.returned) = (0, 0, 0, 0);
        (self.returned_acknowledged, self.return_at_us, self.grant_count) = (0, u64::MAX, 0);
        (self.summary, self.last_call) = (BookSummary::default(), 0);
    }

    /// Starts again as `holder`, but keeps its knowledge of the ledger.
    fn replace_holder(&mut self, holder: Holder) {
        let (ledger, summary) = (self.ledger, self.summary);
        self.reset_as(holder);
        (self.ledger, self.summary) = (ledger, summary);
    }

    /// The send time of the request whose units this reply newly grants, if it grants any.
    pub fn new_grant_sent_us(&self, number: u64, reply: &LedgerReply) -> Option<u64> {
        let request = self.in_flight.filter(|request| request.number == number)?;
        let known = if reply.ledger == self.ledger { self.granted } else { 0 };
        (reply.granted > known).then_some(request.sent_us)
    }

    /// Returns the units of a reply from a store that may have lost writes. If the store has begun
    /// another ledger, the holder keeps its knowledge of the lost one. Then the units stay counted
    /// in the store, for a holder that makes no further request.
    pub fn discard_reply(
        &mut self,
        terms: &LeaseTerms,
        now_us: u64,
        number: u64,
        reply: &LedgerReply,
        new_holder: Holder,
    ) -> RenewalResult {
        if self.ledger == 0 || self.ledger == reply.ledger {
            return self.take_reply((terms, now_us), number, reply, new_holder, false);
        }
        if self.in_flight.take_if(|request| request.number == number).is_some() {
            self.replace_holder(new_holder);
        }
        RenewalResult::default()
    }
}

fn is_window(terms: &LeaseTerms) -> bool {
    matches!(terms.store_params, tollgate_core::LimitParams::FixedWindow(_))
}

#[cfg(test)]
mod tests;
