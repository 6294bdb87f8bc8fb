//! The params that cells were written under, by id.

use super::shard::pack::always_packs;
use crate::ParamsId;
use crate::registry::Registry;
use tollgate_core::LimitParams;

/// Bits of a params id in a cell's tag.
pub(crate) const PARAMS_ID_BITS: u32 = 12;

/// The first id of a grouped limit.
const GROUPED_FIRST: u16 = (1 << PARAMS_ID_BITS) / 8 * 7;

/// The params that cells were written under, by id.
#[derive(Debug)]
pub(crate) struct ParamsRegistry {
    alone: Registry<LimitParams>,
    grouped: Registry<LimitParams>,
}

impl ParamsId {
    /// Whether threads may decide without the lock under this id. Words of a grouped limit are read
    /// and written under the lock only, so that their holder needs no swap for each of them.
    #[inline(always)]
    pub(crate) const fn is_lock_free(self) -> bool {
        (self.0 as u32).wrapping_sub(1) < GROUPED_FIRST as u32 - 1
    }

    /// Whether the id is that of a grouped limit.
    #[inline(always)]
    pub(crate) const fn is_grouped(self) -> bool {
        self.0 >= GROUPED_FIRST
    }
}

impl ParamsRegistry {
    pub(crate) fn new() -> Self {
        let grouped = (1 << PARAMS_ID_BITS) - usize::from(GROUPED_FIRST);
        Self { alone: Registry::new(GROUPED_FIRST.into()), grouped: Registry::new(grouped) }
    }

    /// The id of `params`; zero when all ids are taken, which is valid and only takes more memory.
    /// Params whose state may outgrow a cell get zero too: such state is spilled from the start,
    /// while the key is new and can still be refused room.
    pub(crate) fn register(&self, params: &LimitParams) -> ParamsId {
        if !always_packs(params) {
            return ParamsId::default();
        }
        self.alone.register(params).unwrap_or_default()
    }

    /// [`register`](Self::register) for a grouped limit.
    pub(crate) fn register_grouped(&self, params: &LimitParams) -> ParamsId {
        if !always_packs(params) {
            return ParamsId::default();
        }
        let ParamsId(index) = self.grouped.register(params).unwrap_or_default();
        if index == 0 { ParamsId::default() } else { ParamsId(GROUPED_FIRST + index) }
    }

    #[inline]
    pub(crate) fn get(&self, params_id: ParamsId) -> Option<&LimitParams> {
        match params_id.0.checked_sub(GROUPED_FIRST) {
            Some(index) => self.grouped.get(ParamsId(index)),
            None => self.alone.get(params_id),
        }
    }
}
