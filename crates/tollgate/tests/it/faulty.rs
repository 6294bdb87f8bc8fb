//! A store that fails on demand and counts what it is asked, with the memory store behind it.

use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use tollgate::{MemoryStore, Store, StoreError};
use tollgate_core::Numbers;
use tollgate_store::{
    Adjustment, Answers, Charge, Ended, Opened, Opening, Place, Plan, Request, StoreErrorKind,
    Ticket,
};

#[derive(Debug, Default)]
pub(crate) struct Faulty {
    behind: MemoryStore,
    down: AtomicBool,
    slow: AtomicBool,
    calls: AtomicU64,
    /// The limit and the key that were charged last.
    last: Mutex<(u64, Vec<u8>)>,
}

impl Faulty {
    pub(crate) fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::Relaxed);
    }

    /// Has every decision and adjustment arrive a moment after it was made.
    pub(crate) fn set_slow(&self, slow: bool) {
        self.slow.store(slow, Ordering::Relaxed);
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Forgets the key that was charged last, as another node would have it.
    pub(crate) async fn reset_elsewhere(&self) {
        let (limit, key) = self.last.lock().unwrap().clone();
        self.behind.reset(limit, &key).await.unwrap();
    }

    async fn dawdle(&self) {
        let mut waits = self.slow.load(Ordering::Relaxed);
        poll_fn(|_| match std::mem::take(&mut waits) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
        .await;
    }

    fn ask(&self) -> Result<(), StoreError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match self.down.load(Ordering::Relaxed) {
            true => Err(StoreError::new(StoreErrorKind::Unreachable, "told to fail")),
            false => Ok(()),
        }
    }
}

impl Store for Faulty {
    async fn decide<'a>(
        &'a self,
        now_us: u64,
        requests: &'a [Request<'a>],
        answers: &'a mut Answers,
    ) -> Result<(), StoreError> {
        self.ask()?;
        if let Some(charge) = requests.first().and_then(|request| request.charges.first()) {
            *self.last.lock().unwrap() = (charge.limit, charge.key.to_vec());
        }
        self.behind.decide(now_us, requests, answers).await?;
        self.dawdle().await;
        Ok(())
    }

    async fn adjust<'a>(
        &'a self,
        now_us: u64,
        adjustments: &'a [Adjustment<'a>],
        answers: &'a mut Answers,
    ) -> Result<(), StoreError> {
        self.ask()?;
        self.behind.adjust(now_us, adjustments, answers).await?;
        self.dawdle().await;
        Ok(())
    }

    async fn reset<'a>(&'a self, limit: u64, key: &'a [u8]) -> Result<(), StoreError> {
        self.ask()?;
        self.behind.reset(limit, key).await
    }

    async fn open_reservation<'a>(
        &'a self,
        now_us: u64,
        opening: &'a Opening<'a>,
    ) -> Result<Opened, StoreError> {
        self.ask()?;
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
        self.ask()?;
        self.behind.end_reservation(now_us, id, end, plan, answers).await
    }

    fn place(&self, charge: &Charge<'_>) -> Place {
        self.behind.place(charge)
    }

    fn enroll(&self, numbers: &Numbers) -> Ticket {
        self.behind.enroll(numbers)
    }
}
