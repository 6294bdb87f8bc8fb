//! A keyed hash of a key's bytes.
//!
//! The construction is that of wyhash, and of aHash on processors without AES: products of 64 by 64
//! bits, folded to 64 bits, with secret operands. Keys of up to 16 bytes take two products.

/// Hashes keys. Without the secrets, a client cannot choose keys that collide.
#[derive(Debug)]
pub(crate) struct KeyHash {
    secrets: [u64; 3],
}

/// Bytes of a block, which one product mixes in.
const BLOCK: usize = 16;

impl KeyHash {
    /// The secrets should be random.
    pub(crate) const fn new(secrets: [u64; 3]) -> Self {
        Self { secrets }
    }

    /// The hash of `key`. Every bit depends on every byte and on the length.
    #[inline(always)]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        let [first, second, last] = self.secrets;
        let (a, b) = match (key.first_chunk(), key.last_chunk()) {
            _ if key.len() > BLOCK => self.mix_blocks(key),
            // The two overlap if the key is shorter than a block.
            (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
            _ => short_words(key),
        };
        fold(fold(a ^ first, b ^ second) ^ key.len() as u64, last)
    }

    /// The last block of a long key, with the blocks before it mixed in.
    // Inlined: after a call, the compiler would not know what it read before.
    #[inline(always)]
    fn mix_blocks(&self, key: &[u8]) -> (u64, u64) {
        let [first, second, _] = self.secrets;
        // Without the last byte, so that a whole last block is not mixed in twice.
        let (blocks, _) = key.split_last().map_or(key, |(_, rest)| rest).as_chunks::<BLOCK>();
        let mixed = blocks.iter().fold(0, |mixed, block| {
            let (a, b) = words(block);
            fold(a ^ first ^ mixed, b ^ second)
        });
        let (a, b) = key.last_chunk().map_or((0, 0), words);
        (a ^ mixed, b)
    }
}

/// The bytes of a key of fewer than eight, in two words.
#[inline(always)]
fn short_words(key: &[u8]) -> (u64, u64) {
    match (key.first_chunk(), key.last_chunk()) {
        (Some(head), Some(tail)) => {
            (u32::from_le_bytes(*head).into(), u32::from_le_bytes(*tail).into())
        }
        _ => match *key {
            [] => (0, 0),
            [a] => (a.into(), 0),
            [a, b] => (a.into(), b.into()),
            [a, .., b, c] => (a.into(), u64::from(b) << 8 | u64::from(c)),
        },
    }
}

#[inline(always)]
fn words(block: &[u8; BLOCK]) -> (u64, u64) {
    let block = u128::from_le_bytes(*block);
    (block as u64, (block >> 64) as u64)
}

/// The product of two words, folded to one.
#[inline(always)]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(all(test, not(loom)))]
mod tests;
