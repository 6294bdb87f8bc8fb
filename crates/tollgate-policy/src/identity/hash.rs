//! Hashes of values in files: `sha256:` and 64 hexadecimal digits.
//!
//! The hash is SHA-256 of the value's bytes, without a salt or a key, as `sha256sum` computes it.
//! So it is the same on every node and after a restart. The hash does not reveal a random API key,
//! but it does reveal a value that can be guessed, such as a name.
//!
//! ```
//! let hash = tollgate_policy::hash("key-1");
//! assert!(hash.starts_with("sha256:be297454"), "{hash}");
//! ```

use crate::hex;
use sha2::{Digest, Sha256};

/// The prefix of every hash.
pub const HASH_PREFIX: &str = "sha256:";

/// Returns the hash of a value, in the form that a tier map accepts.
pub fn hash(value: &str) -> String {
    let mut text = HASH_PREFIX.to_owned();
    hex::push(&mut text, hex::LOWER, &digest(value));
    text
}

/// Returns the 32 bytes of the hash.
pub(crate) fn digest(value: &str) -> [u8; 32] {
    Sha256::digest(value).into()
}

/// Parses the digits after [`HASH_PREFIX`]; `None` if they are not 64 hexadecimal digits.
pub(crate) fn parse(digits: &str) -> Option<[u8; 32]> {
    let pairs = digits.as_bytes().chunks(2).map(hex::decode_byte);
    pairs.collect::<Option<Vec<u8>>>()?.try_into().ok()
}
