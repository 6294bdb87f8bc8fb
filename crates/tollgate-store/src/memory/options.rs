//! How a memory store is made.

use super::table::address::SHARD_BITS;

const MAX_BYTES: u64 = 256 << 20;
/// What a shard may use at least: with fewer bytes than this for each there are fewer shards.
const SHARD_BYTES: u64 = 64 << 10;

/// What a [`MemoryStore`](super::MemoryStore) is to be like.
#[derive(Clone, Copy, Debug)]
pub struct MemoryOptions {
    pub(crate) max_bytes: u64,
    pub(crate) shards: Option<usize>,
    pub(crate) seed: Option<u64>,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self { max_bytes: MAX_BYTES, shards: None, seed: None }
    }
}

impl MemoryOptions {
    /// The cap on bytes; 256 MiB unless told otherwise. Memory follows the keys, so a high cap
    /// costs nothing.
    pub const fn max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// How many shards, rounded up to a power of two; at most 4,096. For tests that need keys to
    /// meet in one.
    pub const fn shards(mut self, shards: usize) -> Self {
        self.shards = Some(shards);
        self
    }

    /// Fixed hash keys instead of random ones. Only for tests: whoever knows the seed can choose
    /// keys that collide.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    pub(crate) fn shard_count(&self) -> usize {
        let most = 1 << SHARD_BITS;
        let wanted = self.shards.unwrap_or((self.max_bytes / SHARD_BYTES) as usize);
        wanted.clamp(1, most).next_power_of_two()
    }
}
