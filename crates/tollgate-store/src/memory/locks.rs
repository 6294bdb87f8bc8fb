//! The locks of a request with several charges.

use super::MemoryStore;
use super::address::CellAddress;
use super::shard::{CellPosition, Shard};
use crate::sync::{Guard, lock};

/// Where one charge of a request is decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChargeCell {
    pub(crate) address: CellAddress,
    /// Whether that is an overflow cell.
    pub(crate) overflow: bool,
    /// Which of the request's locks holds it; none after there was no room for it.
    pub(crate) lock: usize,
    /// The cell, as long as none is added or taken away.
    pub(crate) found: CellPosition,
}

impl ChargeCell {
    /// As many charges as most requests have: for them little stack is cleared.
    pub(super) const INLINE_FEW: usize = 4;
    /// Charges of one request for which no memory is allocated.
    pub(super) const INLINE_MAX: usize = 16;
    pub(super) const NOWHERE: Self = Self::at(CellAddress { shard: 0, tag: 0 });

    pub(super) const fn at(address: CellAddress) -> Self {
        Self { address, overflow: false, lock: 0, found: CellPosition::Absent }
    }
}

impl MemoryStore {
    /// Locks the shards of `places`, each once and in ascending order, so that two requests cannot
    /// wait for each other. More than `INLINE` take memory.
    #[inline]
    pub(super) fn with_locks<const INLINE: usize, T>(
        &self,
        places: &mut [ChargeCell],
        work: impl FnOnce(&mut [Option<Guard<'_, Shard>>], &mut [ChargeCell]) -> T,
    ) -> T {
        let mut inline = [const { None }; INLINE];
        let mut heap = Vec::new();
        let guards = match inline.get_mut(..places.len()) {
            Some(guards) => guards,
            None => {
                heap.resize_with(places.len(), || None);
                &mut heap[..]
            }
        };
        let mut next = places.iter().map(|place| place.address.shard).min();
        let mut locked = 0;
        while let Some(shard) = next {
            guards[locked] = Some(lock(&self.shards[shard].0));
            next = None;
            for place in &mut *places {
                if place.address.shard == shard {
                    place.lock = locked;
                } else if place.address.shard > shard {
                    next = Some(next.map_or(place.address.shard, |n| place.address.shard.min(n)));
                }
            }
            locked += 1;
        }
        work(&mut guards[..locked], places)
    }
}
