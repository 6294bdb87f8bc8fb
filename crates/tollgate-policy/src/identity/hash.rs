//! Values that are written down as a hash: `sha256:` and 64 hexadecimal digits.
//!
//! The hash is SHA-256 of the value's bytes, without a salt or a key. Every node computes the same
//! hash, also after a restart, and so does `sha256sum`. The hash does not reveal a random API key.
//! It does reveal a value that can be guessed, such as a name.
//!
//! ```
//! let hash = tollgate_policy::hash("key-1");
//! assert!(hash.starts_with("sha256:be297454"), "{hash}");
//! ```

use crate::hex;
use sha2::{Digest, Sha256};

/// The prefix of every hash.
pub const HASH_PREFIX: &str = "sha256:";

/// The hash of a value, as a tier map may hold it in place of the value.
pub fn hash(value: &str) -> String {
    let mut text = HASH_PREFIX.to_owned();
    hex::push(&mut text, hex::LOWER, &digest(value));
    text
}

/// The 32 bytes of the hash.
pub(crate) fn digest(value: &str) -> [u8; 32] {
    Sha256::digest(value).into()
}

/// The bytes after [`HASH_PREFIX`]; `None` where they are not 64 hexadecimal digits.
pub(crate) fn parse(digits: &str) -> Option<[u8; 32]> {
    let pairs = digits.as_bytes().chunks(2).map(hex::decode_byte);
    pairs.collect::<Option<Vec<u8>>>()?.try_into().ok()
}
