//! Hexadecimal digits, and percent-encoding.

use std::fmt::Write as _;

/// Decodes the first two digits into a byte.
#[inline]
pub fn decode_byte(digits: &[u8]) -> Option<u8> {
    Some(digit(*digits.first()?)? << 4 | digit(*digits.get(1)?)?)
}

/// The value of a digit in either case.
#[inline]
fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Percent-encodes every byte for which `is_plain` is false.
pub fn percent_encode(bytes: &[u8], is_plain: impl Fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if is_plain(byte) {
            out.push(byte.into());
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Decodes percent-encoding. Returns `None` for a broken escape, or if the result is not UTF-8.
pub fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        bytes.push(decode_byte(part.as_bytes())?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

/// The meaning of `+`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plus {
    /// A space, as in queries.
    Space,
    /// A plus sign, as in cookies.
    Literal,
}

/// Decodes percent-encoding, and `+` if it means a space. Broken escapes stay as they are.
pub fn unescape(text: &[u8], plus: Plus) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        bytes.push(match (byte, after) {
            (b'+', _) if plus == Plus::Space => b' ',
            (b'%', after) => match decode_byte(after) {
                Some(decoded) => {
                    rest = &after[2..];
                    decoded
                }
                None => byte,
            },
            _ => byte,
        });
    }
    bytes
}

/// Appends each byte as two digits of the given alphabet.
pub fn push(out: &mut String, digits: &[u8; 16], bytes: &[u8]) {
    for byte in bytes {
        out.push(char::from(digits[usize::from(byte >> 4)]));
        out.push(char::from(digits[usize::from(byte & 15)]));
    }
}

/// Each byte as two lower-case digits.
pub fn lower(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    push(&mut text, LOWER, bytes);
    text
}

/// Lower-case digits.
pub const LOWER: &[u8; 16] = b"0123456789abcdef";
pub(crate) const UPPER: &[u8; 16] = b"0123456789ABCDEF";
