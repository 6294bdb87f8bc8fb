//! The process's side of a lease: what it holds of one limit for one key, and when it asks for
//! more.

mod doubt;
pub(crate) mod snapshot;

pub use snapshot::LimitSnapshot;

use super::demand::Demand;
use super::{Holder, LeaseTerms, LedgerReply, LedgerRequest, shortest_local_us};

/// Grants that are kept apart. More are held only while most of them are nearly spent, and then the
/// two oldest count as one.
const GRANTS_MAX: usize = 4;

/// What a process holds of one limit for one key.
///
/// Instants are those of a clock that only this process reads, that counts while it is suspended
/// too, and that is never set. The only instants of the store are those that are returned to it.
#[derive(Clone, Debug)]
pub struct Lease {
    holder: Holder,
    ledger: u64,
    /// When the ledger may be gone, and from when on it makes no difference.
    ledger_expires_us: u64,
    ledger_counts_until_us: u64,
    granted: u64,
    spent: u64,
    returned: u64,
    /// The oldest first.
    grants: [Grant; GRANTS_MAX],
    grant_count: usize,
    /// What the store is known to know of what was returned, and when the oldest of the rest was
    /// granted.
    returned_acknowledged: u64,
    return_at_us: u64,
    in_flight: Option<InFlightRequest>,
    last_request_us: u64,
    /// When the last request was sent that was answered.
    last_answered_us: Option<u64>,
    /// There is no point in asking before.
    ask_not_before_us: u64,
    demand: Demand,
    snapshot: LimitSnapshot,
}

/// Units that were granted together.
#[derive(Clone, Copy, Debug, Default)]
struct Grant {
    units: u64,
    expires_us: u64,
    /// By the store's clock.
    granted_us: u64,
}

#[derive(Clone, Copy, Debug)]
struct InFlightRequest {
    number: u64,
    sent_us: u64,
    /// Whether it asked for more.
    wants_units: bool,
}

/// What was spent, in case it turns out that it should not have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpentUnits {
    /// Units.
    pub units: u64,
    /// When the oldest of them was granted, by the store's clock.
    pub granted_us: u64,
    holder: Holder,
    ledger: u64,
    expires_us: u64,
}

/// What an answer brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RenewalResult {
    /// Units received.
    pub granted: u64,
    /// Units that the store now knows to be returned.
    pub returned: u64,
    /// Units that nobody can spend any more, nor return.
    pub stranded: u64,
    /// Whether the store had forgotten something.
    pub rolled_back: bool,
}

impl Lease {
    /// Holds nothing yet. No other lease of any process has this holder.
    pub fn new(holder: Holder, now_us: u64) -> Self {
        Self {
            holder,
            ledger: 0,
            ledger_expires_us: 0,
            ledger_counts_until_us: 0,
            granted: 0,
            spent: 0,
            returned: 0,
            grants: [Grant::default(); GRANTS_MAX],
            grant_count: 0,
            returned_acknowledged: 0,
            return_at_us: u64::MAX,
            in_flight: None,
            last_request_us: now_us,
            last_answered_us: None,
            ask_not_before_us: 0,
            demand: Demand::new(now_us),
            snapshot: LimitSnapshot::default(),
        }
    }

    /// Spends `units`, if so many are held and still good at `now_us`.
    pub fn spend(&mut self, now_us: u64, units: u64) -> Option<SpentUnits> {
        self.demand.count(units);
        self.spend_counted(now_us, units)
    }

    /// The same for a request that has been counted, and waited.
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

    /// Takes back what was spent for a request that another limit refused. Where the grant is gone
    /// by now it goes back to the store, since it must not live longer with a later one.
    pub fn refund(&mut self, now_us: u64, spent: &SpentUnits) {
        if (spent.holder, spent.ledger) != (self.holder, self.ledger) || spent.units == 0 {
            return;
        }
        self.spent -= spent.units;
        self.demand.uncount(spent.units);
        let parts = &mut self.grants[..self.grant_count];
        match parts.iter_mut().find(|part| part.expires_us == spent.expires_us) {
            Some(part) => part.units += spent.units,
            None => self.queue_return(spent.units, spent.granted_us),
        }
        self.expire(now_us);
    }

    /// Units that are held, good or not.
    pub fn balance(&self) -> u64 {
        self.granted - self.spent - self.returned
    }

    /// Units that can be spent at `now_us`.
    pub fn spendable(&self, now_us: u64) -> u64 {
        let parts = self.grants[..self.grant_count].iter();
        parts.filter(|part| now_us < part.expires_us).map(|part| part.units).sum()
    }

    /// What was granted, spent and returned in the present ledger.
    pub fn totals(&self) -> (Holder, u64, [u64; 3]) {
        (self.holder, self.ledger, [self.granted, self.spent, self.returned])
    }

    /// Whether an answer is waited for.
    pub fn has_request_in_flight(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Whether to ask: when what one request needs is not there, or will soon not be, unless there
    /// is nothing to be had.
    pub fn should_ask(&self, now_us: u64, need: u64) -> bool {
        if self.in_flight.is_some() || now_us < self.ask_not_before_us {
            return false;
        }
        let good = self.spendable(now_us);
        good < need || self.demand.wants_more(good)
    }

    /// Whether there is something that the store should get back.
    pub fn should_return(&mut self, now_us: u64) -> bool {
        self.expire(now_us);
        self.in_flight.is_none() && self.returned > self.returned_acknowledged
    }

    /// Whether nothing would be lost by dropping it. A ledger is remembered for as long as it
    /// counts, since the store may forget it.
    pub fn can_be_dropped(&self, terms: &LeaseTerms, now_us: u64) -> bool {
        let forgotten = self.ledger == 0 || now_us >= self.ledger_counts_until_us;
        // A request without an answer may have been granted, which the next answer would show.
        let silent = now_us >= self.last_request_us + terms.holder_timeout_us();
        self.in_flight.is_none() && forgotten && silent && self.spendable(now_us) == 0
    }

    /// Whether only the memory of it would be lost by dropping it.
    pub fn holds_nothing(&self, now_us: u64) -> bool {
        self.in_flight.is_none() && self.spendable(now_us) == 0
    }

    /// Everything that is held is to go back: the limit has other numbers by now, or the process
    /// ends.
    pub fn return_all(&mut self) {
        for place in 0..self.grant_count {
            let part = self.grants[place];
            self.queue_return(part.units, part.granted_us);
        }
        self.grant_count = 0;
    }

    /// The request to send at `now_us`, with its number; `renewed` is the holder to become when
    /// this one has been silent for so long that the store may have forgotten it. With `assert` it
    /// wants nothing, and only says what is held.
    pub fn start_request(
        &mut self,
        terms: &LeaseTerms,
        now_us: u64,
        (need, assert): (u64, bool),
        number: u64,
        renewed: Holder,
    ) -> LedgerRequest {
        self.expire(now_us);
        let over = self.ledger != 0 && now_us >= self.ledger_expires_us;
        // Where nothing is known to be held there is nothing to assert, and what was granted
        // without an answer may be another's by now.
        if over || assert && self.ledger == 0 {
            self.reset_as(renewed);
        } else if !is_window(terms)
            && self
                .last_answered_us
                .is_some_and(|heard_us| now_us >= heard_us + terms.holder_timeout_us())
        {
            // The store may have forgotten the holder, but not the ledger.
            let ledger = self.ledger;
            self.reset_as(renewed);
            self.ledger = ledger;
        }
        self.in_flight = Some(InFlightRequest { number, sent_us: now_us, wants_units: !assert });
        self.last_request_us = now_us;
        let good = self.spendable(now_us);
        let want = match assert {
            true => 0,
            false => self.demand.request_size(terms, now_us, good, need),
        };
        LedgerRequest {
            holder: self.holder,
            ledger: self.ledger,
            known_granted: self.granted,
            want,
            need: need.saturating_sub(good).min(want),
            returned: self.returned,
            return_at_us: self.return_at_us.min(tollgate_core::MAX_US),
        }
    }

    /// The request with this number got no answer. Whether it was granted will show.
    pub fn request_failed(&mut self, number: u64) {
        self.in_flight.take_if(|flight| flight.number == number);
    }

    /// No answer will come, whatever was asked last.
    pub fn forget_request(&mut self) {
        self.in_flight = None;
    }

    /// Takes in the answer to the request with this number, unless a later one has been sent: what
    /// it granted comes with the answer to that.
    pub fn apply_reply(
        &mut self,
        terms: &LeaseTerms,
        now_us: u64,
        number: u64,
        reply: &LedgerReply,
        renewed: Holder,
    ) -> RenewalResult {
        let Some(flight) = self.in_flight.take_if(|flight| flight.number == number) else {
            return RenewalResult::default();
        };
        let mut heard =
            RenewalResult { rolled_back: reply.rolled_back, ..RenewalResult::default() };
        self.last_answered_us = Some(flight.sent_us);
        self.expire(now_us);
        let (own, stranded) = self.switch_ledger(terms, reply, renewed);
        heard.stranded = stranded;
        self.ledger_expires_us = flight.sent_us + shortest_local_us(reply.kept_us);
        self.ledger_counts_until_us = now_us.saturating_add(reply.reset_after_us);
        self.update_snapshot(terms, (flight.sent_us, now_us), flight.wants_units, reply);
        if !own {
            return heard;
        }
        if reply.granted > self.granted {
            heard.granted = reply.granted - self.granted;
            self.granted = reply.granted;
            let expires_us = flight.sent_us + shortest_local_us(reply.usable_us);
            self.add_grant(Grant {
                units: heard.granted,
                expires_us,
                granted_us: reply.oldest_grant_us,
            });
            self.expire(now_us);
            self.ask_not_before_us = now_us;
            self.demand.cap_target(self.spendable(now_us));
        }
        let known = reply.returned.min(self.returned).max(self.returned_acknowledged);
        heard.returned = known - self.returned_acknowledged;
        self.returned_acknowledged = known;
        if self.returned_acknowledged >= self.returned {
            self.return_at_us = u64::MAX;
        }
        if reply.rolled_back && !is_window(terms) {
            // It was charged with what fits, not with all that it held.
            heard.stranded += self.balance();
            self.reset_as(renewed);
        }
        heard
    }

    /// Units of another ledger are of no use. Answers whether the figures of the reply are this
    /// holder's, and what was left behind.
    ///
    /// What was granted in a window that is later than all before belongs to the holder. In any
    /// other ledger it may have been before, and have spent what it was granted there, so that it
    /// becomes another one.
    fn switch_ledger(
        &mut self,
        terms: &LeaseTerms,
        reply: &LedgerReply,
        renewed: Holder,
    ) -> (bool, u64) {
        if reply.ledger == self.ledger {
            return (true, 0);
        }
        // What was to be returned and was not comes too late as well.
        let stranded = self.balance() + self.returned - self.returned_acknowledged;
        let own = self.ledger == 0 || is_window(terms) && reply.ledger > self.ledger;
        self.reset_as(if own { self.holder } else { renewed });
        self.ledger = reply.ledger;
        (own, stranded)
    }

    fn reset_as(&mut self, holder: Holder) {
        self.holder = holder;
        (self.ledger, self.granted, self.spent, self.returned) = (0, 0, 0, 0);
        (self.returned_acknowledged, self.return_at_us, self.grant_count) = (0, u64::MAX, 0);
    }

    /// Units whose time has passed go back.
    fn expire(&mut self, now_us: u64) {
        while self.grant_count > 0 && now_us >= self.grants[0].expires_us {
            let part = self.pop_oldest_grant();
            self.queue_return(part.units, part.granted_us);
        }
    }

    /// They leave the balance before anybody is told.
    fn queue_return(&mut self, units: u64, granted_us: u64) {
        if units > 0 {
            self.returned += units;
            self.return_at_us = self.return_at_us.min(granted_us);
        }
    }

    fn take_oldest_first(&mut self, mut units: u64) {
        while self.grant_count > 0 {
            let part = &mut self.grants[0];
            let taken = units.min(part.units);
            part.units -= taken;
            units -= taken;
            if part.units > 0 {
                return;
            }
            self.pop_oldest_grant();
        }
    }

    fn add_grant(&mut self, part: Grant) {
        if self.grant_count == GRANTS_MAX {
            let oldest = self.pop_oldest_grant();
            self.grants[0].units += oldest.units;
            self.grants[0].expires_us = self.grants[0].expires_us.min(oldest.expires_us);
            self.grants[0].granted_us = self.grants[0].granted_us.min(oldest.granted_us);
        }
        // Kept in the order in which they end.
        let place = self.grants[..self.grant_count]
            .partition_point(|one| one.expires_us <= part.expires_us);
        self.grants[place..=self.grant_count].rotate_right(1);
        self.grants[place] = part;
        self.grant_count += 1;
    }

    fn pop_oldest_grant(&mut self) -> Grant {
        let part = self.grants[0];
        self.grants[..self.grant_count].rotate_left(1);
        self.grant_count -= 1;
        part
    }
}

fn is_window(terms: &LeaseTerms) -> bool {
    matches!(terms.store_params, tollgate_core::LimitParams::FixedWindow(_))
}

#[cfg(test)]
mod tests;
