//! A slow memory store: decisions take effect at once and are answered later. All other calls take
//! effect later.

use std::sync::atomic::{AtomicUsize, Ordering};
use tollgate::store::Store;
use tollgate::{MemoryStore, StoreError};
use tollgate_core::LimitParams;
use tollgate_store::{Answers, Charge, ParamsId, StateKey, StoreCall};

#[derive(Debug, Default)]
pub(crate) struct Slow {
    behind: MemoryStore,
    under_way: AtomicUsize,
}

impl Slow {
    /// Yields to other tasks until no call is in flight here.
    pub(crate) async fn settled(&self) {
        loop {
            tokio::task::yield_now().await;
            if self.under_way.load(Ordering::Relaxed) == 0 {
                return;
            }
        }
    }

    async fn pause(&self) {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
    }
}

struct InFlightGuard<'a>(&'a AtomicUsize);

impl<'a> InFlightGuard<'a> {
    fn new(under_way: &'a AtomicUsize) -> Self {
        under_way.fetch_add(1, Ordering::Relaxed);
        Self(under_way)
    }
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Store for Slow {
    type Undecided = ();

    fn begin(&self, _: u64, _: StoreCall<'_>, _: &mut Answers) -> Option<()> {
        Some(())
    }

    async fn finish<'a>(
        &'a self,
        now_us: u64,
        call: StoreCall<'a>,
        (): (),
        answers: &'a mut Answers,
    ) -> Result<(), StoreError> {
        let _call = InFlightGuard::new(&self.under_way);
        match call {
            StoreCall::Decide(_) => {
                self.behind.begin(now_us, call, answers);
                self.pause().await;
            }
            _ => {
                self.pause().await;
                self.behind.begin(now_us, call, answers);
            }
        }
        Ok(())
    }

    fn state_key(&self, charge: &Charge<'_>) -> StateKey {
        self.behind.state_key(charge)
    }

    fn register_params(&self, params: &LimitParams) -> ParamsId {
        self.behind.register_params(params)
    }
}
