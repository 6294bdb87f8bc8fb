//! What this process has of one limit for one key, with what its protocol does not need to know.

use super::registry::LeasedLimit;
use crate::lease::{Lease, SpentUnits};
use crate::{Answer, Charge, Origin, ParamsId};
use tollgate_core::{Outcome, Receipt};

/// A lease, under the name that its limit's state has.
#[derive(Debug)]
pub(super) struct LeaseEntry {
    pub(super) lease: Lease,
    pub(super) params_id: ParamsId,
    pub(super) name: Box<[u8]>,
    pub(super) slot: u16,
    /// Whether the task knows that there is something to say to the store.
    pub(super) queued: bool,
    /// The most that a request needed which found too little, since the store was last asked.
    pub(super) unmet_cost: u64,
    /// Whether the store may have forgotten it.
    pub(super) must_reassert: bool,
    /// After a failure the store is left alone until then.
    pub(super) backoff_until_us: u64,
    /// When its limit had other numbers last.
    pub(super) params_changed_us: u64,
}

/// What became of a charge in this process.
#[derive(Debug)]
pub(crate) enum LeaseDecision {
    /// It was taken from a lease.
    Spent(Answer, SpentUnits),
    /// The store has said lately that there is nothing left.
    Refused(Answer),
    /// There is no lease, so that the store has to decide.
    Direct,
    /// The lease is too small, and more is on its way.
    Wait,
    /// The lease is too small, and the store did not answer.
    Failed,
    /// The store forgot something, and nobody knows yet what is left.
    GracePeriod,
}

impl LeaseEntry {
    /// Takes a charge from the lease, or says what is known.
    #[inline]
    pub(super) fn take(
        &mut self,
        now_us: u64,
        charge: &Charge<'_>,
        leased: &LeasedLimit,
        counted: bool,
    ) -> LeaseDecision {
        // What never fits says nothing about what is wanted or left, and the store need not be
        // asked for it.
        if charge.cost > leased.cost_max {
            return LeaseDecision::Refused(self.refusal(now_us, charge, leased));
        }
        let spent = match counted {
            false => self.lease.spend(now_us, charge.cost),
            true => self.lease.spend_counted(now_us, charge.cost),
        };
        if let Some(spent) = spent {
            return LeaseDecision::Spent(self.answer(now_us, charge, leased, &spent), spent);
        }
        if now_us < self.lease.snapshot().quiet_until_us {
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

    /// Whether the store is to be asked for more.
    #[inline]
    pub(super) fn should_renew(&self, now_us: u64, need: u64) -> bool {
        !self.queued && now_us >= self.backoff_until_us && self.lease.should_ask(now_us, need)
    }

    /// Units that are known to be there: those that are held, and what the store had left when it
    /// last answered.
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
        // It was counted when it was granted.
        let receipt = Receipt { cost: charge.cost, at_us: spent.granted_us, ..Receipt::default() };
        Answer { outcome, blocked: false, receipt: Some(receipt), origin: Origin::Lease }
    }

    /// What the store said, and no sooner than it will be asked again.
    fn refusal(&self, now_us: u64, charge: &Charge<'_>, leased: &LeasedLimit) -> Answer {
        let view = self.lease.snapshot();
        let asks_us = self.lease.ask_not_before_us();
        let wait_us = view.retry_us.unwrap_or(asks_us).max(asks_us).saturating_sub(now_us);
        let mut outcome = Outcome::refusing(leased.capacity, wait_us);
        outcome.remaining = self.known_remaining(now_us, leased).min(charge.cost.saturating_sub(1));
        outcome.reset_after_us = view.reset_us.saturating_sub(now_us).max(wait_us);
        if charge.cost > leased.cost_max {
            outcome.retry_after_us = None;
        }
        Answer { outcome, blocked: false, receipt: None, origin: Origin::CachedRefusal }
    }
}
