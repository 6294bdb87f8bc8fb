//! Decides requests from leases, on the calling thread.

use super::RedisStore;
use super::lease::{LeaseAddress, LeaseDecision, LeasedLimit};
use crate::lease::SpentUnits;
use crate::{Answer, Answers, Charge, ChargeMode, Origin, Request};
use smallvec::SmallVec;
use std::time::Duration;
use tollgate_core::Intent;

/// Limit of charges per request that leases decide. The store decides larger requests.
const LOCAL_CHARGES_MAX: usize = 8;

/// The requests of a batch that leases did not decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct UndecidedRequests {
    /// The index of the first one.
    pub(super) first: usize,
    /// Whether the leases of the first request were tried and did not suffice.
    pub(super) leases_tried: bool,
    /// The part of the deadline already spent.
    pub(super) spent: Duration,
}

impl UndecidedRequests {
    /// Counts time that the request has already waited: all calls of a request share one deadline.
    #[must_use]
    pub fn after(self, spent: Duration) -> Self {
        Self { spent, ..self }
    }
}

impl RedisStore {
    /// Answers the first requests, as far as leases suffice. Allocates nothing.
    #[inline]
    pub(super) fn decide_locally(
        &self,
        requests: &[Request<'_>],
        answers: &mut Answers,
    ) -> Option<UndecidedRequests> {
        if !self.leases.is_enabled() {
            return Some(UndecidedRequests::default());
        }
        for (first, request) in requests.iter().enumerate() {
            let decided = match request.charges {
                [charge] => self.decide_one_locally(charge, request.intent, answers),
                charges => self.decide_many_locally(charges, request.intent, answers),
            };
            if let Err(rest) = decided {
                return Some(UndecidedRequests { first, ..rest });
            }
        }
        None
    }

    #[inline]
    fn decide_one_locally(
        &self,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) -> Result<(), UndecidedRequests> {
        let rest = UndecidedRequests { leases_tried: true, ..UndecidedRequests::default() };
        let Some(leased) = self.leased_limit(charge, intent) else {
            return Err(UndecidedRequests { leases_tried: false, ..rest });
        };
        let (answer, admitted) = match self.leases.take(charge, leased).0 {
            LeaseDecision::Spent(answer, _) => (answer, true),
            LeaseDecision::Refused(answer) => (answer, false),
            LeaseDecision::Direct
            | LeaseDecision::Wait
            | LeaseDecision::Failed
            | LeaseDecision::GracePeriod => return Err(rest),
        };
        answers.push(answer);
        answers.finish(admitted);
        Ok(())
    }

    /// Decides a request with several charges, if all are of leased limits.
    fn decide_many_locally(
        &self,
        charges: &[Charge<'_>],
        intent: Intent,
        answers: &mut Answers,
    ) -> Result<(), UndecidedRequests> {
        let rest = UndecidedRequests::default();
        let leased = |charge| self.leased_limit(charge, intent);
        if charges.len() > LOCAL_CHARGES_MAX
            || charges.is_empty()
            || !charges.iter().all(|one| leased(one).is_some())
        {
            return Err(rest);
        }
        let mut spent: [Option<(LeaseAddress, SpentUnits)>; LOCAL_CHARGES_MAX] =
            [None; LOCAL_CHARGES_MAX];
        let mut refusals = SmallVec::<[LeaseAddress; LOCAL_CHARGES_MAX]>::new();
        let (mut admitted, mut decided) = (true, true);
        for (charge, spent) in charges.iter().zip(&mut spent) {
            let Some(leased) = leased(charge) else { continue };
            let (decision, address) = self.leases.take(charge, leased);
            match decision {
                LeaseDecision::Spent(answer, units) => {
                    *spent = Some((address, units));
                    answers.push(answer);
                }
                LeaseDecision::Refused(answer) => {
                    admitted = false;
                    refusals.push(address);
                    answers.push(answer);
                }
                LeaseDecision::Direct
                | LeaseDecision::Wait
                | LeaseDecision::Failed
                | LeaseDecision::GracePeriod => decided = false,
            }
        }
        if !(decided && admitted) {
            spent.iter().flatten().for_each(|(at, units)| self.leases.refund(*at, units));
        }
        if !decided {
            refusals.into_iter().for_each(|address| self.leases.uncount_refusal(address));
            answers.discard_current_rows();
            return Err(UndecidedRequests { leases_tried: true, ..rest });
        }
        if !admitted {
            answers.current_rows().iter_mut().for_each(show_refunded);
        }
        answers.finish(admitted);
        Ok(())
    }

    /// The leased limit of a charge, if a lease can decide the charge.
    #[inline]
    pub(super) fn leased_limit(&self, charge: &Charge<'_>, intent: Intent) -> Option<&LeasedLimit> {
        let plain = charge.mode == ChargeMode::Enforce && charge.penalty.is_none();
        // A peek or a cost of zero charges nothing.
        let takes = charge.cost > 0 && intent == Intent::Take;
        if plain && takes { self.leases.leased_limit(charge.params_id) } else { None }
    }
}

/// Marks a charge as put back, because another limit refused.
pub(super) fn show_refunded(answer: &mut Answer) {
    if let Some(receipt) = answer.receipt.take_if(|_| answer.origin == Origin::Lease) {
        let remaining = answer.outcome.remaining.saturating_add(receipt.cost);
        answer.outcome.remaining = remaining.min(answer.outcome.limit);
    }
}
