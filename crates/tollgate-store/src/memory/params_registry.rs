//! The params that cells were written under, by id.

use super::shard::pack::always_packs;
use crate::ParamsId;
use crate::registry::Registry;
use tollgate_core::LimitParams;

/// Bits of a params id in a cell's tag.
pub(crate) const PARAMS_ID_BITS: u32 = 12;

/// The params that cells were written under, by id.
#[derive(Debug)]
pub(crate) struct ParamsRegistry(Registry<LimitParams>);

impl ParamsRegistry {
    pub(crate) fn new() -> Self {
        Self(Registry::new(1 << PARAMS_ID_BITS))
    }

    /// The id of `params`; zero when all ids are taken, which is valid and only takes more memory.
    /// Params whose state may outgrow a cell get zero too: such state is spilled from the start,
    /// while the key is new and can still be refused room.
    pub(crate) fn register(&self, params: &LimitParams) -> ParamsId {
        if !always_packs(params) {
            return ParamsId::default();
        }
        self.0.register(params).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn get(&self, params_id: ParamsId) -> Option<&LimitParams> {
        self.0.get(params_id)
    }
}
