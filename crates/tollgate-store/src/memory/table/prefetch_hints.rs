//! Where the shards' cells lie, for whoever wants to ask for one before its shard is locked.
//!
//! A shard's lock is written by every decision, and so is often in another core's cache; these
//! words are written when a table grows. Read first, they let the cell and the lock be fetched at
//! the same time instead of one after the other.

use super::address::CellAddress;
use super::{Slot, home};
use crate::raw::prefetch::prefetch;
use std::sync::atomic::{AtomicU64, Ordering};
// Only hints are made of them, so loom has nothing to explore.

/// Bits of a view that hold the number of slots; the others hold the address of the first line.
const LEN_BITS: u32 = 22;
/// Bytes in a cache line.
pub(crate) const LINE: usize = 64;

/// Where a table's slots are: the first line that begins with a slot, and how many there are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TableLocation(u64);

impl TableLocation {
    pub(crate) fn new(address: usize, len: usize) -> Self {
        let (line, len) = (address.div_ceil(LINE) as u64, (len as u64).min((1 << LEN_BITS) - 1));
        Self(line << LEN_BITS | len)
    }

    /// Starts fetching the slot where a search for `tag` begins, unless the table is longer than a
    /// view can say.
    #[inline(always)]
    fn prefetch<const W: usize>(self, tag: u64) -> SlotHint {
        let len = (self.0 & ((1 << LEN_BITS) - 1)) as usize;
        let home = home::<W>(tag, len, 0);
        prefetch((self.0 >> LEN_BITS) as usize * LINE + home * size_of::<Slot<W>>());
        SlotHint { len, home }
    }
}

/// Where a search begins if the table has as many slots as it had when one last looked: worked out
/// while the lock is waited for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlotHint {
    pub(crate) len: usize,
    /// Not counting the slots before the first whole line.
    pub(crate) home: usize,
}

/// The views of all shards. They may be out of date, so nothing is ever read through them.
#[derive(Debug)]
pub(crate) struct TableHints {
    narrow: Box<[AtomicU64]>,
    wide: Box<[AtomicU64]>,
}

impl TableHints {
    /// Bytes for each shard.
    pub(crate) const SHARD_BYTES: usize = 2 * size_of::<AtomicU64>();

    pub(crate) fn new(shards: usize) -> Self {
        let nowhere = || (0..shards).map(|_| AtomicU64::new(0)).collect();
        Self { narrow: nowhere(), wide: nowhere() }
    }

    /// Tells where the table of cells with `W` words of `shard` is now.
    pub(crate) fn publish<const W: usize>(&self, shard: usize, view: TableLocation) {
        let views = if W == 1 { &self.narrow } else { &self.wide };
        views[shard].store(view.0, Ordering::Relaxed);
    }

    /// Starts fetching the cell at `address`.
    #[inline(always)]
    pub(crate) fn prefetch(&self, address: CellAddress, wide: bool) -> SlotHint {
        let view =
            |views: &[AtomicU64]| TableLocation(views[address.shard].load(Ordering::Relaxed));
        match wide {
            false => view(&self.narrow).prefetch::<1>(address.tag),
            true => view(&self.wide).prefetch::<2>(address.tag),
        }
    }
}
