//! Names of keys in Redis: `tg:{tag}:name`.
//!
//! The tag, a keyed hash of the key's first value, puts all limits of one client into one cluster
//! slot. The name is a keyed hash of limit and key. So no two tuples of values collide, Redis
//! contains no data from clients, and clients cannot choose a slot.

use sha2::{Digest, Sha256};
use tollgate_core::{LimitParams, lua};

/// Names keys. All nodes of a store need the same secret.
#[derive(Clone)]
pub(super) struct KeyNamer {
    prefix: Box<[u8]>,
    keyed: Sha256,
}

impl std::fmt::Debug for KeyNamer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyNamer").field("prefix", &String::from_utf8_lossy(&self.prefix)).finish()
    }
}

/// 64 characters that never need quoting.
const DIGITS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
/// 36 bits: enough to spread over 16,384 slots.
const TAG_CHARACTERS: usize = 6;
/// 126 bits.
const NAME_CHARACTERS: usize = 21;

/// The default secret: nodes on one server share its password and their prefix.
pub(super) fn secret(password: &str, prefix: &str) -> Vec<u8> {
    let hash = Sha256::new_with_prefix(b"tollgate key secret\0");
    let hash = hash.chain_update((password.len() as u64).to_be_bytes());
    hash.chain_update(password).chain_update(prefix).finalize().to_vec()
}

impl KeyNamer {
    pub(super) fn new(prefix: &str, secret: &[u8]) -> Self {
        // Padded to one hash block, so that the secret is hashed only once.
        let mut block = [0; 64];
        block[..32].copy_from_slice(&Sha256::digest(secret));
        Self { prefix: prefix.as_bytes().into(), keyed: Sha256::new_with_prefix(block) }
    }

    /// The key of a limit's state. Each algorithm has its own key, because it cannot read the state
    /// of another.
    pub(super) fn state_key(&self, limit: u64, key: &[u8], params: &LimitParams) -> Vec<u8> {
        self.name_at(limit, key, lua::to_lua_params(params)[0] as u8)
    }

    /// The keys of a limit's state under every algorithm.
    pub(super) fn state_keys(&self, limit: u64, key: &[u8]) -> Vec<Vec<u8>> {
        (1..=lua::MIRRORS.len() as u8).map(|index| self.name_at(limit, key, index)).collect()
    }

    /// The key of a reservation. Algorithms count from one, so zero collides with no state.
    pub(super) fn reservation_key(&self, id: &str) -> Vec<u8> {
        self.name_at(0, id.as_bytes(), 0)
    }

    /// Candidates for marker keys, in all slots. Markers contain no client data, so their tags need
    /// no secret.
    pub(super) fn marker_keys(&self) -> impl Iterator<Item = Vec<u8>> {
        let name = |n: u32| [&self.prefix, format!(":{{{n}}}:m").as_bytes()].concat();
        (0..1 << 17).map(name)
    }

    /// The key of a table that nodes share. It contains no client data.
    pub(super) fn table_key(&self, table: &str) -> Vec<u8> {
        [&self.prefix, format!(":{{{table}}}:t").as_bytes()].concat()
    }

    /// The key of a node's report, in the slot of the topic's table.
    pub(super) fn report_key(&self, topic: &str, node: &str) -> Vec<u8> {
        [&self.prefix, format!(":{{{topic}}}:n:{node}").as_bytes()].concat()
    }

    fn name_at(&self, limit: u64, key: &[u8], algorithm: u8) -> Vec<u8> {
        let tag = self.keyed.clone().chain_update(b"t").chain_update(first_value(key)).finalize();
        let name = self.keyed.clone().chain_update([algorithm]).chain_update(limit.to_be_bytes());
        let name = name.chain_update(key).finalize();
        let mut out = Vec::with_capacity(self.prefix.len() + 4 + TAG_CHARACTERS + NAME_CHARACTERS);
        out.extend_from_slice(&self.prefix);
        out.extend_from_slice(b":{");
        out.extend_from_slice(&digits::<TAG_CHARACTERS>(tag.into()));
        out.extend_from_slice(b"}:");
        out.extend_from_slice(&digits::<NAME_CHARACTERS>(name.into()));
        out
    }
}

/// The key of a state's ledger, in the same slot.
pub(super) fn grant_book_key(name: &[u8]) -> Vec<u8> {
    [name, b":l"].concat()
}

/// The key that marks a reservation's end in the slot of a state.
pub(super) fn end_marker_key(name: &[u8], record: &[u8]) -> Vec<u8> {
    let id = &record[record.len().saturating_sub(NAME_CHARACTERS)..];
    [name, b":e:", id].concat()
}

/// The first value of a key, or the whole key if malformed. The policy encodes each value after its
/// length plus one, in groups of seven bits.
fn first_value(key: &[u8]) -> &[u8] {
    let (mut length, mut shift) = (0_usize, 0);
    for (index, byte) in key.iter().enumerate().take(5) {
        length |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            let end = (index + 1).saturating_add(length.saturating_sub(1));
            return key.get(..end).unwrap_or(key);
        }
    }
    key
}

/// The first bits of a hash, six to a character.
fn digits<const N: usize>(hash: [u8; 32]) -> [u8; N] {
    const { assert!(N * 6 <= 128) };
    let bits = hash.iter().take(16).fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte));
    std::array::from_fn(|n| DIGITS[(bits >> (122 - 6 * n)) as usize & 63])
}

#[cfg(test)]
mod tests;
