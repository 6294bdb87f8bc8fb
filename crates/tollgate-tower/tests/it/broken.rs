//! A store that cannot be reached.

use tollgate::store::{Answers, Call, Charge, Place, StoreErrorKind, Ticket};
use tollgate::{LeaseStore, MemoryStore, Store, StoreError};
use tollgate_core::Numbers;

/// Decides nothing, ever.
#[derive(Debug, Default)]
pub(crate) struct Broken(MemoryStore);

impl Store for Broken {
    type Rest = ();

    fn begin(&self, _: u64, _: Call<'_>, _: &mut Answers) -> Option<()> {
        Some(())
    }

    async fn finish<'a>(
        &'a self,
        _: u64,
        _: Call<'a>,
        (): (),
        _: &'a mut Answers,
    ) -> Result<(), StoreError> {
        Err(StoreError::new(StoreErrorKind::Unreachable, "nobody is there"))
    }

    fn place(&self, charge: &Charge<'_>) -> Place {
        self.0.place(charge)
    }

    fn enroll(&self, numbers: &Numbers) -> Ticket {
        self.0.enroll(numbers)
    }
}

impl LeaseStore for Broken {}
