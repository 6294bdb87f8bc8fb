//! Several limits on one key: one shard, one lock.

use super::MemoryStore;
use super::fast::PendingWrite;
use super::locks::ChargeCell;
use super::shard::is_wide;
use super::views::{LINE, SlotHint};
use crate::raw::prefetch::prefetch;
use crate::sync::lock;
use crate::{Answers, Charge};
use tollgate_core::Intent;

impl MemoryStore {
    /// Decides a request with a few charges on one key that are all in the [usual
    /// case](super::fast) and all admitted, each found and computed once. Otherwise nothing has
    /// changed but the rows.
    #[inline(never)]
    pub(super) fn decide_one_key_fast(
        &self,
        now_us: u64,
        charges: &[Charge<'_>],
        intent: Intent,
        answers: &mut Answers,
    ) -> Option<()> {
        let key = charges.first()?.key;
        if key.is_empty() || charges.len() > ChargeCell::INLINE_FEW || intent == Intent::Peek {
            return None;
        }
        let hashed = self.addresses.hash(key);
        let shard = &self.shards[self.addresses.shard(&hashed)];
        // Its second line has the header of the other table.
        let line = std::ptr::from_ref(shard).addr();
        prefetch(line);
        prefetch(line + LINE);
        let mut cells = [(0, SlotHint::default()); ChargeCell::INLINE_FEW];
        for (cell, charge) in cells.iter_mut().zip(charges) {
            if !std::ptr::eq(charge.key, key) && charge.key != key {
                return None;
            }
            let address = self.addresses.address_hashed(charge.limit, key, &hashed);
            let guess = self.shared.table_hints.prefetch(address, is_wide(charge.params));
            *cell = (address.tag, guess);
        }
        let mut shard = lock(&shard.0);
        let mut pending = [PendingWrite::NOTHING; ChargeCell::INLINE_FEW];
        for (n, ((pending, &cell), charge)) in
            pending.iter_mut().zip(&cells).zip(charges).enumerate()
        {
            let admitted = shard.plan_fast(cell, charge, now_us, answers, pending)?;
            // After a refusal nothing is taken, so the rows have to show the numbers of now. And
            // two limits that share all their bits share a cell: what one of them takes must not
            // overwrite what the other does.
            let refused = !admitted && charge.mode.is_enforced();
            if refused || cells[..n].iter().any(|other| other.0 == cell.0) {
                return None;
            }
        }
        let rows = answers.current_rows();
        for ((charge, &pending), row) in charges.iter().zip(&pending).zip(rows) {
            shard.commit_plan(&self.shared, charge, now_us, pending, row);
        }
        answers.finish(true);
        Some(())
    }
}
