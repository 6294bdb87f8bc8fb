//! A store that cannot be reached.

use tollgate::store::{Answers, Charge, ParamsId, StateKey, StoreCall, StoreErrorKind};
use tollgate::store::{LeaseStore, Store};
use tollgate::{MemoryStore, StoreError};
use tollgate_core::LimitParams;

/// A store whose calls always fail.
#[derive(Debug, Default)]
pub(crate) struct Broken(MemoryStore);

impl Store for Broken {
    type Undecided = ();

    fn begin(&self, _: u64, _: StoreCall<'_>, _: &mut Answers) -> Option<()> {
        Some(())
    }

    async fn finish<'a>(
        &'a self,
        _: u64,
        _: StoreCall<'a>,
        (): (),
        _: &'a mut Answers,
    ) -> Result<(), StoreError> {
        Err(StoreError::new(StoreErrorKind::Unreachable, "no server"))
    }

    fn state_key(&self, charge: &Charge<'_>) -> StateKey {
        self.0.state_key(charge)
    }

    fn register_params(&self, params: &LimitParams) -> ParamsId {
        self.0.register_params(params)
    }
}

impl LeaseStore for Broken {}
