//! What this process has of one limit for one key, with what its protocol does not need to know.

use super::registry::Leased;
use crate::lease::{Lease, Spent};
use crate::{Answer, Charge, Origin, Ticket};
use tollgate_core::{Outcome, Receipt};

/// A lease, under the name that its limit's state has.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) lease: Lease,
    pub(super) ticket: Ticket,
    pub(super) name: Box<[u8]>,
    pub(super) slot: u16,
    /// Whether the task knows that there is something to say to the store.
    pub(super) queued: bool,
    /// The most that a request needed which found too little, since the store was last asked.
    pub(super) short: u64,
    /// Whether the store may have forgotten it.
    pub(super) assert: bool,
    /// After a failure the store is left alone until then.
    pub(super) rest_until_us: u64,
    /// When its limit had other numbers last.
    pub(super) changed_us: u64,
}

/// What became of a charge in this process.
#[derive(Debug)]
pub(in crate::redis) enum Local {
    /// It was taken from a lease.
    Spent(Answer, Spent),
    /// The store has said lately that there is nothing left.
    Refused(Answer),
    /// There is no lease, so that the store has to decide.
    Direct,
    /// The lease is too small, and more is on its way.
    Wait,
    /// The lease is too small, and the store did not answer.
    Failed,
    /// The store forgot something, and nobody knows yet what is left.
    Quiet,
}

impl Entry {
    /// Takes a charge from the lease, or says what is known.
    #[inline]
    pub(super) fn take(
        &mut self,
        now_us: u64,
        charge: &Charge<'_>,
        leased: &Leased,
        counted: bool,
    ) -> Local {
        // What never fits says nothing about what is wanted or left, and the store need not be asked for it.
        if charge.cost > leased.most {
            return Local::Refused(self.refusal(now_us, charge, leased));
        }
        let spent = match counted {
            false => self.lease.spend(now_us, charge.cost),
            true => self.lease.spend_again(now_us, charge.cost),
        };
        if let Some(spent) = spent {
            return Local::Spent(self.answer(now_us, charge, leased, &spent), spent);
        }
        if now_us < self.lease.view().quiet_until_us {
            return Local::Quiet;
        }
        if now_us < self.lease.patient_until_us() {
            return Local::Refused(self.refusal(now_us, charge, leased));
        }
        if now_us < self.rest_until_us && !self.lease.is_asking() {
            return Local::Failed;
        }
        self.short = self.short.max(charge.cost);
        Local::Wait
    }

    /// Whether the store is to be asked for more.
    #[inline]
    pub(super) fn wants(&self, now_us: u64, need: u64) -> bool {
        !self.queued && now_us >= self.rest_until_us && self.lease.should_ask(now_us, need)
    }

    /// Units that are known to be there: those that are held, and what the store had left when it last answered.
    fn known(&self, now_us: u64, leased: &Leased) -> u64 {
        let left = self.lease.view().left;
        self.lease.good(now_us).saturating_add(left).min(leased.capacity)
    }

    fn answer(&self, now_us: u64, charge: &Charge<'_>, leased: &Leased, spent: &Spent) -> Answer {
        let reset_after_us = self.lease.view().reset_us.saturating_sub(now_us);
        let mut outcome = Outcome::unasked(leased.capacity);
        outcome.remaining = self.known(now_us, leased);
        outcome.reset_after_us = reset_after_us;
        outcome.more_after_us = (reset_after_us > 0).then_some(reset_after_us);
        // It was counted when it was granted.
        let receipt = Receipt { cost: charge.cost, at_us: spent.granted_us, ..Receipt::default() };
        Answer { outcome, blocked: false, receipt: Some(receipt), origin: Origin::Lease }
    }

    /// What the store said, and no sooner than it will be asked again.
    fn refusal(&self, now_us: u64, charge: &Charge<'_>, leased: &Leased) -> Answer {
        let view = self.lease.view();
        let asks_us = self.lease.patient_until_us();
        let wait_us = view.retry_us.unwrap_or(asks_us).max(asks_us).saturating_sub(now_us);
        let mut outcome = Outcome::withheld(leased.capacity, wait_us);
        outcome.remaining = self.known(now_us, leased).min(charge.cost.saturating_sub(1));
        outcome.reset_after_us = view.reset_us.saturating_sub(now_us).max(wait_us);
        if charge.cost > leased.most {
            outcome.retry_after_us = None;
        }
        Answer { outcome, blocked: false, receipt: None, origin: Origin::Refusal }
    }
}
