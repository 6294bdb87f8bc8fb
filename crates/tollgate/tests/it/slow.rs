//! A store that takes its time, with the memory store behind it: decisions have effect at once and are answered later, all else has
//! effect later.

use std::sync::atomic::{AtomicUsize, Ordering};
use tollgate::{MemoryStore, Store, StoreError};
use tollgate_core::Numbers;
use tollgate_store::{
    Adjustment, Answers, Charge, Ended, Opened, Opening, Place, Plan, Request, Ticket,
};

#[derive(Debug, Default)]
pub(crate) struct Slow {
    behind: MemoryStore,
    under_way: AtomicUsize,
}

impl Slow {
    /// Lets the tasks of others run until nothing is under way here.
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

struct Call<'a>(&'a AtomicUsize);

impl<'a> Call<'a> {
    fn new(under_way: &'a AtomicUsize) -> Self {
        under_way.fetch_add(1, Ordering::Relaxed);
        Self(under_way)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Store for Slow {
    async fn decide<'a>(
        &'a self,
        now_us: u64,
        requests: &'a [Request<'a>],
        answers: &'a mut Answers,
    ) -> Result<(), StoreError> {
        let _call = Call::new(&self.under_way);
        self.behind.decide(now_us, requests, answers).await?;
        self.pause().await;
        Ok(())
    }

    async fn adjust<'a>(
        &'a self,
        now_us: u64,
        adjustments: &'a [Adjustment<'a>],
        answers: &'a mut Answers,
    ) -> Result<(), StoreError> {
        let _call = Call::new(&self.under_way);
        self.pause().await;
        self.behind.adjust(now_us, adjustments, answers).await
    }

    async fn reset<'a>(&'a self, limit: u64, key: &'a [u8]) -> Result<(), StoreError> {
        let _call = Call::new(&self.under_way);
        self.pause().await;
        self.behind.reset(limit, key).await
    }

    async fn open_reservation<'a>(
        &'a self,
        now_us: u64,
        opening: &'a Opening<'a>,
    ) -> Result<Opened, StoreError> {
        let _call = Call::new(&self.under_way);
        self.pause().await;
        self.behind.open_reservation(now_us, opening).await
    }

    async fn end_reservation<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: u64,
        plan: &'a Plan<'a>,
        answers: &'a mut Answers,
    ) -> Result<Option<Ended>, StoreError> {
        let _call = Call::new(&self.under_way);
        self.pause().await;
        self.behind.end_reservation(now_us, id, end, plan, answers).await
    }

    fn place(&self, charge: &Charge<'_>) -> Place {
        self.behind.place(charge)
    }

    fn enroll(&self, numbers: &Numbers) -> Ticket {
        self.behind.enroll(numbers)
    }
}
