//! Numbers that cells were written under, by ticket.

use super::shard::pack::always_packs;
use crate::ParamsId;
use crate::sync::{Lock, lock};
use std::collections::HashMap;
use std::sync::OnceLock;
use tollgate_core::LimitParams;

/// Bits of a ticket in a cell's tag.
pub(crate) const PARAMS_ID_BITS: u32 = 12;
const PARAMS_IDS: usize = 1 << PARAMS_ID_BITS;
const PAGE: usize = 64;

type ParamsPage = [OnceLock<LimitParams>; PAGE];

/// Read without a lock by every decision on state that other numbers wrote; written on enrolment
/// only.
#[derive(Debug)]
pub(crate) struct ParamsRegistry {
    pages: Box<[OnceLock<Box<ParamsPage>>]>,
    ids: Lock<HashMap<LimitParams, u16>>,
}

impl ParamsRegistry {
    pub(crate) fn new() -> Self {
        let pages = (0..PARAMS_IDS / PAGE).map(|_| OnceLock::new()).collect();
        Self { pages, ids: Lock::new(HashMap::new()) }
    }

    /// The ticket of `numbers`. Once all are given out it is zero, which is valid and merely takes
    /// more memory. So it is for numbers whose state may outgrow its words: spilled from the start,
    /// it is paid for when the key is new and can still be turned away.
    pub(crate) fn register(&self, params: &LimitParams) -> ParamsId {
        if !always_packs(params) {
            return ParamsId::default();
        }
        let mut tickets = lock(&self.ids);
        if let Some(&params_id) = tickets.get(params) {
            return ParamsId(params_id);
        }
        let params_id = tickets.len() + 1;
        let Some(page) = self.pages.get(params_id / PAGE) else {
            return ParamsId::default();
        };
        let page = page.get_or_init(|| Box::new([const { OnceLock::new() }; PAGE]));
        // The map holds one entry for each cell that is set, so this one is empty.
        let _ = page[params_id % PAGE].set(*params);
        tickets.insert(*params, params_id as u16);
        ParamsId(params_id as u16)
    }

    /// The numbers behind a ticket; `None` for zero and for one never given out.
    #[inline]
    pub(crate) fn get(&self, params_id: ParamsId) -> Option<&LimitParams> {
        let params_id = usize::from(params_id.0);
        self.pages.get(params_id / PAGE)?.get()?[params_id % PAGE].get()
    }
}
