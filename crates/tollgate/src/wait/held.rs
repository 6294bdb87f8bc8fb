//! Something admitted that its waiter has not been told of yet.

use crate::limiter::{Limiter, Permit, Refusal, spawn_detached};
use std::time::Duration;
use tollgate_store::Store;

/// A permit that is given back unless somebody takes it.
pub(super) struct UnclaimedPermit<S: Store + 'static> {
    limiter: Limiter<S>,
    permit: Option<Permit>,
}

impl<S: Store> UnclaimedPermit<S> {
    pub(super) fn new(limiter: Limiter<S>, permit: Permit) -> Self {
        Self { limiter, permit: Some(permit) }
    }

    pub(super) fn delay(&self) -> Duration {
        self.permit.as_ref().map_or(Duration::ZERO, |permit| permit.delay)
    }

    /// Its turn has come: there is nothing left to wait for.
    pub(super) fn into_permit(mut self) -> Permit {
        match self.permit.take() {
            Some(mut permit) => {
                permit.delay = Duration::ZERO;
                permit
            }
            None => unreachable!("only this and dropping take the permit"),
        }
    }

    /// Gives it back, for a delay that is too long by `excess`.
    pub(super) fn give_up(self, excess: Duration) -> Refusal {
        let (limit, remaining, reset_after) = match &self.permit {
            Some(permit) => (permit.limit, permit.remaining, permit.reset_after),
            None => unreachable!("only `into_permit` and dropping take the permit"),
        };
        Refusal {
            limit,
            remaining,
            retry_after: Some(excess),
            reset_after,
            blocked: false,
            earliest: Some(excess),
        }
    }
}

impl<S: Store + 'static> Drop for UnclaimedPermit<S> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            let limiter = self.limiter.clone();
            spawn_detached(async move {
                // A store that cannot be told keeps the charge, which time returns.
                let _ = limiter.refund_async(permit).await;
            });
        }
    }
}
