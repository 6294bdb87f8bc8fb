//! Locations of the shards' tables, to prefetch a cell before its shard is locked.
//!
//! Every decision writes a shard's lock, so it is often in another core's cache. Locations change
//! only when a table grows. Read first, they let the cell and the lock be fetched at the same time.

use super::address::CellAddress;
use super::{Slot, home};
use crate::raw::prefetch::prefetch;
use std::sync::atomic::{AtomicU64, Ordering};
// Not loom's atomics: hints have nothing to explore.

/// Bits of a location that hold the number of slots; the others hold the address of the first line.
const LEN_BITS: u32 = 22;
/// Bytes in a cache line.
pub(crate) const LINE: usize = 64;

/// The location of a table: its first cache line that begins with a slot, and its number of slots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TableLocation(u64);

impl TableLocation {
    pub(crate) fn new(address: usize, len: usize) -> Self {
        let (line, len) = (address.div_ceil(LINE) as u64, (len as u64).min((1 << LEN_BITS) - 1));
        Self(line << LEN_BITS | len)
    }

    /// Prefetches the slot where a search for `tag` begins.
    #[inline(always)]
    fn prefetch<const W: usize>(self, tag: u64) -> SlotHint {
        let len = (self.0 & ((1 << LEN_BITS) - 1)) as usize;
        let home = home::<W>(tag, len, 0);
        prefetch((self.0 >> LEN_BITS) as usize * LINE + home * size_of::<Slot<W>>());
        SlotHint { len, home }
    }
}

/// Where a search begins, if the table still has `len` slots. Computed before the lock is taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlotHint {
    pub(crate) len: usize,
    /// Without the slots before the first whole line.
    pub(crate) home: usize,
}

/// The locations of all tables. They may be out of date, so they are only prefetched.
#[derive(Debug)]
pub(crate) struct TableHints {
    narrow: Box<[AtomicU64]>,
    wide: Box<[AtomicU64]>,
}

impl TableHints {
    /// Bytes for each shard.
    pub(crate) const SHARD_BYTES: usize = 2 * size_of::<AtomicU64>();

    pub(crate) fn new(shards: usize) -> Self {
        let unknown = || (0..shards).map(|_| AtomicU64::new(0)).collect();
        Self { narrow: unknown(), wide: unknown() }
    }

    /// Publishes the location of a shard's table of cells with `W` words.
    pub(crate) fn publish<const W: usize>(&self, shard: usize, location: TableLocation) {
        let all = if W == 1 { &self.narrow } else { &self.wide };
        all[shard].store(location.0, Ordering::Relaxed);
    }

    /// Prefetches the cell at `address`.
    #[inline(always)]
    pub(crate) fn prefetch(&self, address: CellAddress, wide: bool) -> SlotHint {
        let location =
            |all: &[AtomicU64]| TableLocation(all[address.shard].load(Ordering::Relaxed));
        if wide {
            location(&self.wide).prefetch::<2>(address.tag)
        } else {
            location(&self.narrow).prefetch::<1>(address.tag)
        }
    }
}
