//! Options of the memory store.

use super::table::address::SHARD_BITS;

const MAX_BYTES: u64 = 256 << 20;
/// The least memory per shard: a small cap means fewer shards.
const SHARD_BYTES: u64 = 64 << 10;

/// Options of a [`MemoryStore`](super::MemoryStore).
#[derive(Clone, Copy, Debug)]
pub struct MemoryOptions {
    pub(crate) max_bytes: u64,
    pub(crate) shards: Option<usize>,
    pub(crate) shards_max: usize,
    pub(crate) seed: Option<u64>,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self { max_bytes: MAX_BYTES, shards: None, shards_max: 1 << SHARD_BITS, seed: None }
    }
}

impl MemoryOptions {
    /// The cap on bytes; 256 MiB by default. Memory follows the keys, so a high cap costs nothing.
    pub const fn max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// The number of shards, rounded up to a power of two; at most 4,096. For tests that need keys
    /// in one shard.
    pub const fn shards(mut self, shards: usize) -> Self {
        self.shards = Some(shards);
        self
    }

    /// The most shards. A small cap has fewer.
    pub const fn shards_max(mut self, shards: usize) -> Self {
        self.shards_max = shards;
        self
    }

    /// Fixed hash keys instead of random ones. Only for tests: with the seed, clients could choose
    /// keys that collide.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    pub(crate) fn shard_count(&self) -> usize {
        let shards = self.shards.unwrap_or((self.max_bytes / SHARD_BYTES) as usize);
        shards.clamp(1, self.shards_max.clamp(1, 1 << SHARD_BITS)).next_power_of_two()
    }
}
