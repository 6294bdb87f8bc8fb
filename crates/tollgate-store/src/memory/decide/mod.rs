//! Decides requests: without a lock, or with the locks of all its shards; and applies adjustments.

mod adjust;
mod batch;
mod lock_free;
mod locked;

use super::MemoryStore;
use super::table::address::CellAddress;
use crate::{Answer, Charge};
use locked::ChargeCell;
use tollgate_core::Intent;

impl MemoryStore {
    /// Decides a request with one charge, whose cell is at `address`, with its shard locked.
    #[cold]
    #[inline(never)]
    fn decide_at_locked(
        &self,
        address: CellAddress,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
    ) -> Answer {
        let (mut cells, mut rows) = ([ChargeCell::at(address)], [Answer::PLACEHOLDER]);
        let charges = std::slice::from_ref(charge);
        self.decide_locked::<1>(&mut cells, now_us, charges, intent, &mut rows);
        let [answer] = rows;
        answer
    }
}
