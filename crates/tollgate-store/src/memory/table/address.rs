//! The address of a cell: a keyed hash of limit and key.

use super::key_hash::KeyHash;
use crate::ParamsId;
use crate::sync::unlikely;
use std::hash::BuildHasher;

/// Overflow cells per limit.
const OVERFLOW_CELLS: u64 = 1_024;
/// Bits of the hash that choose a shard; the other 52 are the tag's.
pub(crate) const SHARD_BITS: u32 = 12;
// In a tag, the params id takes the place of the bits that choose the shard.
const _: () = assert!(SHARD_BITS == crate::memory::params_registry::PARAMS_ID_BITS);

/// Upper bits of a tag that choose where its search begins. The limits on one key share them, so
/// their cells are side by side. The largest array has 2^22 cache lines.
pub(crate) const HOME_BITS: u32 = 22;

/// A shard, and the hash that tells a key's cell there from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct CellAddress {
    pub(crate) shard: usize,
    hash: u64,
}

impl CellAddress {
    /// The key's tag, without a params id. It is never zero, which marks an empty slot.
    #[inline(always)]
    pub(crate) const fn tag(self) -> u64 {
        let tag = self.tag_with(ParamsId(0));
        if tag == 0 { 1 << SHARD_BITS } else { tag }
    }

    /// The key's tag with a params id. The tag of one key in 2^52 is wrong: no slot has it.
    #[inline(always)]
    pub(crate) const fn tag_with(self, params_id: ParamsId) -> u64 {
        self.hash & !((1 << SHARD_BITS) - 1) | params_id.0 as u64
    }
}

/// Hashes with random keys of this process, so that clients cannot choose keys that collide.
///
/// Two of n keys share all 64 bits, and so their state, with a chance of about n^2 / 2^65: 2.7e-6
/// at ten million. The limits on one key share its shard and its home, and are told apart by 30
/// bits: two of ten share their state with a chance of 4.2e-8 for each process. A store with fewer
/// than 4,096 shards (a cap below 256 MiB) uses fewer bits.
#[derive(Debug)]
pub(crate) struct CellHasher {
    keys: KeyHash,
    /// Spreads the ids of limits over all bits; odd, so that no two ids become one.
    limits: u64,
    /// The number of shards, less one.
    shard_mask: usize,
}

impl CellHasher {
    /// `shards` is a power of two of at most 4,096. Without a seed the keys are random.
    pub(crate) fn new(shards: usize, seed: Option<u64>) -> Self {
        let random = std::hash::RandomState::new();
        let key = |n: u64| match seed {
            Some(seed) => seed.wrapping_add(n).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            None => random.hash_one(n),
        };
        let keys = KeyHash::new([key(1), key(2), key(3)]);
        Self { keys, limits: key(4) | 1, shard_mask: shards - 1 }
    }

    /// The limits on one key are in one shard, so that a request takes one lock, and side by side.
    /// Limits without a key are busy, so they are spread.
    #[inline(always)]
    pub(crate) fn address(&self, limit: u64, key: &[u8]) -> CellAddress {
        self.address_hashed(limit, key, self.hash(key))
    }

    /// The part of the hash that all limits on `key` share.
    #[inline(always)]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.keys.hash(key)
    }

    /// The shard of all limits on a [hashed](Self::hash) key that is not empty.
    #[inline(always)]
    pub(crate) fn shard_hashed(&self, hashed: u64) -> usize {
        hashed as usize & self.shard_mask
    }

    /// [`address`](Self::address) of a [hashed](Self::hash) key.
    #[inline(always)]
    pub(crate) fn address_hashed(&self, limit: u64, key: &[u8], hashed: u64) -> CellAddress {
        if key.is_empty() {
            unlikely();
            let hash = hashed ^ limit.wrapping_mul(self.limits);
            return self.split(hash, hash);
        }
        self.split(hashed, hashed ^ (limit.wrapping_mul(self.limits) >> HOME_BITS))
    }

    /// The overflow cell that the key at `address` shares with others of its limit.
    pub(crate) fn overflow(&self, limit: u64, address: CellAddress) -> CellAddress {
        let cell = (address.tag() >> SHARD_BITS) % OVERFLOW_CELLS;
        let hash = self.hash(&(u128::from(limit) << 64 | u128::from(cell)).to_le_bytes());
        self.split(hash, hash)
    }

    #[inline(always)]
    fn split(&self, shard: u64, hash: u64) -> CellAddress {
        CellAddress { shard: self.shard_hashed(shard), hash }
    }
}
