//! What a limit's state for one key is called in Redis.
//!
//! `tg:{tag}:name`: the tag, a keyed hash of the key's first value, puts all limits of one client
//! into one slot of a cluster; the name is a keyed hash of limit and key. So no two tuples of
//! values collide, nothing that a client sent stands in Redis, and nobody outside can choose a
//! slot.

use sha2::{Digest, Sha256};
use tollgate_core::{LimitParams, lua};

/// Names keys. Every node of a store has to have the same secret.
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

/// 64 characters that need no quoting anywhere.
const DIGITS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
/// 36 bits: enough to spread over 16,384 slots.
const TAG_CHARACTERS: usize = 6;
/// 126 bits.
const NAME_CHARACTERS: usize = 21;

/// The secret of whoever was given none: nodes that share a server share its password and their
/// prefix.
pub(super) fn secret(password: &str, prefix: &str) -> Vec<u8> {
    let hash = Sha256::new_with_prefix(b"tollgate key secret\0");
    let hash = hash.chain_update((password.len() as u64).to_be_bytes());
    hash.chain_update(password).chain_update(prefix).finalize().to_vec()
}

impl KeyNamer {
    /// Under `prefix`, with a secret that no client knows.
    pub(super) fn new(prefix: &str, secret: &[u8]) -> Self {
        // A block of its own, so that its hash is worked out once.
        let mut block = [0; 64];
        block[..32].copy_from_slice(&Sha256::digest(secret));
        Self { prefix: prefix.as_bytes().into(), keyed: Sha256::new_with_prefix(block) }
    }

    /// The name of what `limit` has for `key` under an algorithm, by its place among those of
    /// [`LimitParams`]: what another algorithm left there cannot be read, so it has a name of its
    /// own.
    pub(super) fn state_key(&self, limit: u64, key: &[u8], params: &LimitParams) -> Vec<u8> {
        self.name_at(limit, key, lua::to_lua_params(params)[0] as u8)
    }

    /// The names under every algorithm.
    pub(super) fn state_keys(&self, limit: u64, key: &[u8]) -> Vec<Vec<u8>> {
        (1..=lua::MIRRORS.len() as u8).map(|place| self.name_at(limit, key, place)).collect()
    }

    /// The name of a reservation's record, which is that of no limit's state: algorithms are
    /// counted from one.
    pub(super) fn reservation_key(&self, id: &str) -> Vec<u8> {
        self.name_at(0, id.as_bytes(), 0)
    }

    /// Names of keys by which servers are known again, in any slot: they hold nothing of anybody's,
    /// so that their tags need no secret.
    pub(super) fn marker_keys(&self) -> impl Iterator<Item = Vec<u8>> {
        let name = |n: u32| [&self.prefix, format!(":{{{n}}}:m").as_bytes()].concat();
        (0..1 << 17).map(name)
    }

    fn name_at(&self, limit: u64, key: &[u8], algorithm: u8) -> Vec<u8> {
        let tag = self.keyed.clone().chain_update(b"t").chain_update(first_value(key)).finalize();
        let name = self.keyed.clone().chain_update([algorithm]).chain_update(limit.to_be_bytes());
        let name = name.chain_update(key).finalize();
        let mut out = Vec::with_capacity(self.prefix.len() + 4 + TAG_CHARACTERS + NAME_CHARACTERS);
        out.extend_from_slice(&self.prefix);
        out.extend_from_slice(b":{");
        push_digits(&mut out, &tag, TAG_CHARACTERS);
        out.extend_from_slice(b"}:");
        push_digits(&mut out, &name, NAME_CHARACTERS);
        out
    }
}

/// The name of what nodes hold of the state with this name: in the same slot, and that of no state.
pub(super) fn grant_book_key(name: &[u8]) -> Vec<u8> {
    [name, b":l"].concat()
}

/// The bytes of the key's first value, or all of it where there is no telling: the policy writes
/// each value behind its length plus one, in groups of seven bits.
fn first_value(key: &[u8]) -> &[u8] {
    let (mut length, mut shift) = (0_usize, 0);
    for (place, byte) in key.iter().enumerate().take(5) {
        length |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            let end = (place + 1).saturating_add(length.saturating_sub(1));
            return key.get(..end).unwrap_or(key);
        }
    }
    key
}

/// Six bits of the hash to a character.
fn push_digits(out: &mut Vec<u8>, hash: &[u8], characters: usize) {
    for place in 0..characters {
        let (byte, bit) = (place * 6 / 8, place * 6 % 8);
        let two = u16::from_be_bytes([hash[byte], hash.get(byte + 1).copied().unwrap_or(0)]);
        out.push(DIGITS[usize::from(two >> (10 - bit) & 63)]);
    }
}

#[cfg(test)]
mod tests;
