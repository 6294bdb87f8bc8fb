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

use sha2::{Digest, Sha256};

/// The prefix of every hash.
pub const HASH_PREFIX: &str = "sha256:";

/// The hash of a value, as a tier map may hold it in place of the value.
pub fn hash(value: &str) -> String {
    let mut text = HASH_PREFIX.to_owned();
    push_hex(&mut text, &digest(value));
    text
}

/// The 32 bytes of the hash.
pub(crate) fn digest(value: &str) -> [u8; 32] {
    Sha256::digest(value).into()
}

/// The bytes after [`HASH_PREFIX`]; `None` where they are not 64 hexadecimal digits.
pub(crate) fn parse(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let digits: Option<Vec<u8>> =
        digits.chars().map(|digit| digit.to_digit(16).and_then(|n| u8::try_from(n).ok())).collect();
    let digits = digits.filter(|digits| digits.len() == 2 * bytes.len())?;
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Some(bytes)
}

/// Appends the bytes as hexadecimal digits in lower case.
pub(crate) fn push_hex(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}
