//! One node and one leased limit.

use crate::support::server::Server;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tollgate_core::{Intent, LimitParams};
use tollgate_store::redis::{BootClock, Endpoint, LeaseStats, RedisOptions};
use tollgate_store::{
    Answer, Answers, Charge, ChargeMode, GracePolicy, LeaseSettings, LeaseStore, ManualClock,
    Origin, ParamsId, RedisStore, Request, Store, StoreCall, StoreError,
};

/// Leases of a quarter of a second. A busy machine may be slow, and a store that nobody knows yet
/// has a grace period of a second.
pub(crate) const LEASING: LeaseSettings = LeaseSettings {
    lifetime_us: 250_000,
    min_limit: 100,
    grace_us: 1_000_000,
    grace_policy: GracePolicy::Refuse,
};

/// Why there is no decision.
#[derive(Debug)]
pub(crate) enum Undecided {
    Failed,
    GracePeriod,
}

/// One node and one limit.
pub(crate) struct LeasedClient {
    pub(crate) store: RedisStore,
    pub(crate) params: LimitParams,
    pub(crate) params_id: Option<ParamsId>,
    warm_up: AtomicU64,
}

/// A clock that stands still until it is moved.
pub(crate) fn manual() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(1_000_000_000_000))
}

/// The ticket of such a limit, if it is leased.
pub(crate) fn leased(store: &RedisStore, params: &LimitParams) -> Option<ParamsId> {
    store.register_leased(params, &LEASING)
}

/// By the server's clock, with patience.
pub(crate) fn options() -> RedisOptions {
    let mut options = RedisOptions::default();
    options.deadline = Duration::from_secs(20);
    options
}

/// The same with a clock that a test moves.
pub(crate) fn with_clock(clock: &Arc<ManualClock>) -> RedisOptions {
    let mut options = options();
    options.boot_clock = BootClock::custom(clock.clone());
    options
}

impl LeasedClient {
    pub(crate) fn open(server: &Server, params: &LimitParams) -> Self {
        Self::at(&server.endpoint(), params, options())
    }

    /// With a clock that a test moves.
    pub(crate) fn with_clock(
        server: &Server,
        params: &LimitParams,
        clock: &Arc<ManualClock>,
    ) -> Self {
        Self::at(&server.endpoint(), params, with_clock(clock))
    }

    pub(crate) fn at(endpoint: &Endpoint, params: &LimitParams, options: RedisOptions) -> Self {
        let store = RedisStore::open(endpoint, options).unwrap();
        let params_id = leased(&store, params);
        Self { store, params: *params, params_id, warm_up: AtomicU64::new(0) }
    }

    pub(crate) fn charge(&self, cost: u64) -> Charge<'_> {
        Charge {
            limit: 1,
            key: b"hot",
            params: &self.params,
            params_id: self.params_id.unwrap_or_default(),
            cost,
            mode: ChargeMode::Enforce,
            penalty: None,
        }
    }

    /// Takes units, unless the store cannot decide, or is in a grace period.
    pub(crate) async fn try_take(&self, cost: u64) -> Result<(bool, Answer), Undecided> {
        let (admitted, rows) =
            self.ask(&[self.charge(cost)], Intent::Take).await.map_err(|_| Undecided::Failed)?;
        match rows[0].origin {
            Origin::GracePeriod => Err(Undecided::GracePeriod),
            _ => Ok((admitted, rows[0])),
        }
    }

    /// Takes units.
    pub(crate) async fn take(&self, cost: u64) -> (bool, Answer) {
        self.try_take(cost).await.unwrap()
    }

    /// One request.
    pub(crate) async fn ask(
        &self,
        charges: &[Charge<'_>],
        intent: Intent,
    ) -> Result<(bool, Vec<Answer>), StoreError> {
        let mut answers = Answers::default();
        self.store.call(0, StoreCall::Decide(&[Request { charges, intent }]), &mut answers).await?;
        let (admitted, rows) = answers.get(0).unwrap();
        Ok((admitted, rows.to_vec()))
    }

    /// Asks until the store has been the same for long enough, and remembers what that took.
    pub(crate) async fn until_trusted(&self) {
        for _ in 0..6_000 {
            match self.try_take(1).await {
                Ok((admitted, _)) => {
                    self.warm_up.fetch_add(u64::from(admitted), Ordering::Relaxed);
                    return;
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
        panic!("the store is not trusted within 30 s");
    }

    /// Asks until the key is decided here.
    pub(crate) async fn until_leased(&self) {
        for _ in 0..6_000 {
            let (admitted, row) = self.take(1).await;
            assert!(admitted);
            self.warm_up.fetch_add(1, Ordering::Relaxed);
            if row.origin == Origin::Lease {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("there is no lease within 30 s: {:?}", self.store.lease_stats());
    }

    /// The same at once, by a clock that skips the grace period of a new store.
    pub(crate) async fn until_leased_at(&self, clock: &ManualClock) {
        for _ in 0..1_000 {
            if let Ok((admitted, _)) = self.try_take(1).await {
                self.warm_up.fetch_add(u64::from(admitted), Ordering::Relaxed);
                return self.until_leased().await;
            }
            clock.advance(LEASING.grace_us / 4);
        }
        panic!("the store is never trusted");
    }

    /// What is left for everybody and here.
    pub(crate) async fn remaining(&self) -> u64 {
        let (_, rows) = self.ask(&[self.charge(1)], Intent::Peek).await.unwrap();
        rows[0].outcome.remaining
    }

    /// Waits for what the store does by itself.
    pub(crate) async fn until(&self, is: impl Fn(&LeaseStats) -> bool) {
        for _ in 0..6_000 {
            if is(&self.store.lease_stats()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("it did not happen within 30 s: {:?}", self.store.lease_stats());
    }

    /// What was admitted meanwhile.
    pub(crate) fn warm_up(&self) -> u64 {
        self.warm_up.load(Ordering::Relaxed)
    }
}
