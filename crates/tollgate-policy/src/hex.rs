//! Hexadecimal digits, as in hashes and percent-escapes.

/// The byte that the first two digits stand for.
#[inline]
pub fn decode_byte(digits: &[u8]) -> Option<u8> {
    Some(digit(*digits.first()?)? << 4 | digit(*digits.get(1)?)?)
}

/// The value of a digit, in either case.
#[inline]
fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Appends bytes as digits of this alphabet.
pub(crate) fn push(out: &mut String, digits: &[u8; 16], bytes: &[u8]) {
    for byte in bytes {
        out.push(char::from(digits[usize::from(byte >> 4)]));
        out.push(char::from(digits[usize::from(byte & 15)]));
    }
}

pub(crate) const LOWER: &[u8; 16] = b"0123456789abcdef";
pub(crate) const UPPER: &[u8; 16] = b"0123456789ABCDEF";
