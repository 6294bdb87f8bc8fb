//! Decides requests: without a lock, or with the locks of all its shards; and applies adjustments.

mod adjust;
mod known;
mod lock_free;
mod locked;

use super::MemoryStore;
use super::table::address::CellAddress;
use crate::{Answer, Answers, Charge, FixedClock, Request};
use locked::{ChargeCell, ChargeCells};
use std::ptr;
use tollgate_core::Intent;

/// How many requests ahead cells are prefetched.
const AHEAD: usize = 16;

impl MemoryStore {
    /// Answers `requests` in order. Prefetches cells, so that cache misses overlap.
    #[inline]
    pub(crate) fn decide_batch(
        &self,
        now_us: u64,
        requests: &[Request<'_>],
        answers: &mut Answers,
    ) {
        match requests {
            [Request { charges: [charge], intent }] => {
                let address = self.addresses.address(charge.limit, charge.key);
                self.decide_single(address, now_us, charge, *intent, answers);
            }
            [request] => self.decide_several(now_us, request.charges, request.intent, answers),
            requests => self.decide_batch_prefetching(now_us, requests, answers),
        }
    }

    // Not inlined: a single request would have to clear a batch's stack.
    #[inline(never)]
    fn decide_batch_prefetching(
        &self,
        now_us: u64,
        requests: &[Request<'_>],
        answers: &mut Answers,
    ) {
        let mut ahead = [CellAddress::default(); AHEAD];
        for (address, request) in ahead.iter_mut().zip(requests) {
            *address = self.prefetch_cell(request);
        }
        for (n, request) in requests.iter().enumerate() {
            let address = ahead[n % AHEAD];
            if let Some(later) = requests.get(n + AHEAD) {
                ahead[n % AHEAD] = self.prefetch_cell(later);
            }
            match request.charges {
                [charge] => self.decide_single(address, now_us, charge, request.intent, answers),
                charges => self.decide_several(now_us, charges, request.intent, answers),
            }
        }
    }

    /// Prefetches the cell of a request with one charge. A request with several charges prefetches
    /// its own.
    #[inline(always)]
    fn prefetch_cell(&self, request: &Request<'_>) -> CellAddress {
        let [charge] = request.charges else { return CellAddress::default() };
        let address = self.addresses.address(charge.limit, charge.key);
        self.shared.locations.prefetch(address, charge.params);
        address
    }

    #[inline(always)]
    fn decide_single(
        &self,
        address: CellAddress,
        now_us: u64,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) {
        let finish = |answer: Answer| {
            answers.push(answer);
            answers.finish(answer.outcome.admitted || !charge.mode.is_enforced());
        };
        self.decide_lock_free(address, FixedClock(now_us), charge, intent, finish, |mut finish| {
            finish(self.decide_at_locked(address, now_us, charge, intent));
        });
    }

    /// Decides a request with no charge or several.
    // Not inlined: a request with one charge would have to save its registers.
    #[inline(never)]
    fn decide_several(
        &self,
        now_us: u64,
        charges: &[Charge<'_>],
        intent: Intent,
        answers: &mut Answers,
    ) {
        // Filled in its place: a collected vector would be moved.
        let (mut cells, mut hashed) = (ChargeCells::new(), None);
        for charge in charges {
            // Limits of one request often have one key.
            let hash = match hashed {
                Some((key, hash)) if ptr::eq(key, charge.key) || key == charge.key => hash,
                _ => self.addresses.hash(charge.key),
            };
            hashed = Some((charge.key, hash));
            let address = self.addresses.address_hashed(charge.limit, charge.key, hash);
            self.shared.locations.prefetch(address, charge.params);
            cells.push(ChargeCell::at(address));
        }
        let rows = answers.add_rows(charges.len());
        let admitted = self.decide_locked(&mut cells, now_us, charges, intent, rows);
        answers.finish(admitted);
    }

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
        self.decide_locked(&mut cells, now_us, charges, intent, &mut rows);
        let [answer] = rows;
        answer
    }
}
