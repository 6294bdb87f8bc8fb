//! A store that cannot be reached.

use tollgate::store::{
    Adjustment, Answers, Charge, Ended, Opened, Opening, Place, Plan, Request, StoreErrorKind,
    Ticket,
};
use tollgate::{MemoryStore, Store, StoreError};
use tollgate_core::Numbers;

/// Decides nothing, ever.
#[derive(Debug, Default)]
pub(crate) struct Broken(MemoryStore);

fn error() -> StoreError {
    StoreError::new(StoreErrorKind::Unreachable, "nobody is there")
}

impl Store for Broken {
    async fn decide<'a>(
        &'a self,
        _: u64,
        _: &'a [Request<'a>],
        _: &'a mut Answers,
    ) -> Result<(), StoreError> {
        Err(error())
    }

    async fn adjust<'a>(
        &'a self,
        _: u64,
        _: &'a [Adjustment<'a>],
        _: &'a mut Answers,
    ) -> Result<(), StoreError> {
        Err(error())
    }

    async fn reset<'a>(&'a self, _: u64, _: &'a [u8]) -> Result<(), StoreError> {
        Err(error())
    }

    async fn open_reservation<'a>(
        &'a self,
        _: u64,
        _: &'a Opening<'a>,
    ) -> Result<Opened, StoreError> {
        Err(error())
    }

    async fn end_reservation<'a>(
        &'a self,
        _: u64,
        _: &'a str,
        _: u64,
        _: &'a Plan<'a>,
        _: &'a mut Answers,
    ) -> Result<Option<Ended>, StoreError> {
        Err(error())
    }

    fn place(&self, charge: &Charge<'_>) -> Place {
        self.0.place(charge)
    }

    fn enroll(&self, numbers: &Numbers) -> Ticket {
        self.0.enroll(numbers)
    }
}
