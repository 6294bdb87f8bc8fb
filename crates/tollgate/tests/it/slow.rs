//! A store that takes its time, with the memory store behind it: decisions have effect at once and are answered later, all else has
//! effect later.

use std::sync::atomic::{AtomicUsize, Ordering};
use tollgate::{MemoryStore, Store, StoreError};
use tollgate_core::Numbers;
use tollgate_store::{Answers, Call, Charge, Place, Ticket};

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

struct UnderWay<'a>(&'a AtomicUsize);

impl<'a> UnderWay<'a> {
    fn new(under_way: &'a AtomicUsize) -> Self {
        under_way.fetch_add(1, Ordering::Relaxed);
        Self(under_way)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Store for Slow {
    type Rest = ();

    fn begin(&self, _: u64, _: Call<'_>, _: &mut Answers) -> Option<()> {
        Some(())
    }

    async fn finish<'a>(
        &'a self,
        now_us: u64,
        call: Call<'a>,
        (): (),
        answers: &'a mut Answers,
    ) -> Result<(), StoreError> {
        let _call = UnderWay::new(&self.under_way);
        match call {
            Call::Decide(_) => {
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

    fn place(&self, charge: &Charge<'_>) -> Place {
        self.behind.place(charge)
    }

    fn enroll(&self, numbers: &Numbers) -> Ticket {
        self.behind.enroll(numbers)
    }
}
