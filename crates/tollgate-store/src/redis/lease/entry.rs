//! One lease, with its Redis key, backoff and queueing.

use super::registry::LeasedLimit;
use crate::lease::{Lease, SpentUnits};
use crate::{Answer, Charge, Origin, ParamsId};
use tollgate_core::{Outcome, Receipt};

/// A lease, with the Redis key of its limit's state.
#[derive(Debug)]
pub(super) struct LeaseEntry {
    pub(super) lease: Lease,
    pub(super) params_id: ParamsId,
    pub(super) name: Box<[u8]>,
    pub(super) slot: u16,
    /// Whether a renewal command for this lease is queued.
    pub(super) queued: bool,
    /// The largest cost that did not fit, since the last request for units.
    pub(super) unmet_cost: u64,
    /// Whether the store may have lost this lease.
    pub(super) must_reassert: bool,
    /// The earliest time of the next renewal after a failure.
    pub(super) backoff_until_us: u64,
    /// The time of the last change of the limit's params.
    pub(super) params_changed_us: u64,
}

/// The decision of a lease on a charge.
#[derive(Debug)]
pub(crate) enum LeaseDecision {
    /// The units were taken from the lease.
    Spent(Answer, SpentUnits),
    /// The store recently replied that nothing is left.
    Refused(Answer),
    /// There is no lease; the store decides.
    Direct,
    /// The lease is too small, and a renewal is in flight.
    Wait,
    /// The lease is too small, and the last renewal failed.
    Failed,
    /// Grace period: the store lost data, and the units left are unknown.
    GracePeriod,
}

impl LeaseEntry {
    /// Takes a charge from the lease, or returns the reason why not.
    #[inline]
    pub(super) fn take(
        &mut self,
        now_us: u64,
        charge: &Charge<'_>,
        leased: &LeasedLimit,
        counted: bool,
    ) -> LeaseDecision {
        // A cost that never fits is no demand, and the store need not be asked.
        if charge.cost > leased.cost_max {
            return LeaseDecision::Refused(self.refusal(now_us, charge, leased));
        }
        let spent = if counted {
            self.lease.spend_counted(now_us, charge.cost)
        } else {
            self.lease.spend(now_us, charge.cost)
        };
        if let Some(spent) = spent {
            return LeaseDecision::Spent(self.answer(now_us, charge, leased, &spent), spent);
        }
        if now_us < self.lease.snapshot().grace_until_us {
            return LeaseDecision::GracePeriod;
        }
        if now_us < self.lease.ask_not_before_us() {
            return LeaseDecision::Refused(self.refusal(now_us, charge, leased));
        }
        if now_us < self.backoff_until_us && !self.lease.has_request_in_flight() {
            return LeaseDecision::Failed;
        }
        self.unmet_cost = self.unmet_cost.max(charge.cost);
        LeaseDecision::Wait
    }

    /// Whether to ask the store for more units.
    #[inline]
    pub(super) fn should_renew(&self, now_us: u64, need: u64) -> bool {
        !self.queued && now_us >= self.backoff_until_us && self.lease.should_ask(now_us, need)
    }

    /// Units of this lease, plus the units left in the store's last reply.
    fn known_remaining(&self, now_us: u64, leased: &LeasedLimit) -> u64 {
        let left = self.lease.snapshot().left;
        self.lease.spendable(now_us).saturating_add(left).min(leased.capacity)
    }

    fn answer(
        &self,
        now_us: u64,
        charge: &Charge<'_>,
        leased: &LeasedLimit,
        spent: &SpentUnits,
    ) -> Answer {
        let reset_after_us = self.lease.snapshot().reset_us.saturating_sub(now_us);
        let mut outcome = Outcome::admitting(leased.capacity);
        outcome.remaining = self.known_remaining(now_us, leased);
        outcome.reset_after_us = reset_after_us;
        outcome.more_after_us = (reset_after_us > 0).then_some(reset_after_us);
        // The units were counted at their grant.
        let receipt = Receipt { cost: charge.cost, at_us: spent.granted_us, ..Receipt::default() };
        Answer { outcome, blocked: false, receipt: Some(receipt), origin: Origin::Lease }
    }

    /// The store's last refusal. Its wait does not end before the store is asked again.
    fn refusal(&self, now_us: u64, charge: &Charge<'_>, leased: &LeasedLimit) -> Answer {
        let snapshot = self.lease.snapshot();
        let asks_us = self.lease.ask_not_before_us();
        let wait_us = snapshot.retry_us.unwrap_or(asks_us).max(asks_us).saturating_sub(now_us);
        let mut outcome = Outcome::refusing(leased.capacity, wait_us);
        outcome.remaining = self.known_remaining(now_us, leased).min(charge.cost.saturating_sub(1));
        outcome.reset_after_us = snapshot.reset_us.saturating_sub(now_us).max(wait_us);
        if charge.cost > leased.cost_max {
            outcome.retry_after_us = None;
        }
        Answer { outcome, blocked: false, receipt: None, origin: Origin::CachedRefusal }
    }
}
