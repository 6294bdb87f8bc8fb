//! Decides batches: prefetches cells, so that cache misses overlap.

use crate::memory::MemoryStore;
use crate::memory::shard::is_wide;
use crate::memory::table::address::CellAddress;
use crate::raw::prefetch::prefetch_ref;
use crate::{Answers, Request};

/// How many requests ahead cells and locks are prefetched.
const AHEAD: usize = 16;

impl MemoryStore {
    /// Answers `requests` in order.
    pub(crate) fn decide_batch(
        &self,
        now_us: u64,
        requests: &[Request<'_>],
        answers: &mut Answers,
    ) {
        match requests {
            [Request { charges: [charge], intent }] => {
                self.decide_single(now_us, charge, *intent, answers);
            }
            [request] => self.decide_multi(now_us, request.charges, request.intent, answers),
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
        let mut ahead = [CellAddress { shard: 0, tag: 0 }; AHEAD];
        for (address, request) in ahead.iter_mut().zip(requests) {
            *address = self.prefetch_cell(request);
        }
        for (n, request) in requests.iter().enumerate() {
            let address = ahead[n % AHEAD];
            if let Some(later) = requests.get(n + AHEAD) {
                ahead[n % AHEAD] = self.prefetch_cell(later);
            }
            match request.charges {
                [charge] => {
                    self.decide_prefetched(address, now_us, charge, request.intent, answers)
                }
                charges => self.decide_multi(now_us, charges, request.intent, answers),
            }
        }
    }

    /// Prefetches the cell and the lock of a request with one charge. A request with several
    /// charges prefetches its own.
    #[inline(always)]
    fn prefetch_cell(&self, request: &Request<'_>) -> CellAddress {
        let [charge] = request.charges else { return CellAddress { shard: 0, tag: 0 } };
        let address = self.addresses.address(charge.limit, charge.key);
        prefetch_ref(&self.shards[address.shard]);
        self.shared.table_hints.prefetch(address, is_wide(charge.params));
        address
    }
}
