//! Integers as arguments have them.

/// A signed 64-bit integer in decimal digits, with a sign if need be, as Rust's own reader takes it.
#[inline]
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    // Up to this many digits nothing can overflow.
    if let 1..=18 = text.len()
        && text.iter().all(u8::is_ascii_digit)
    {
        return Some(text.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')));
    }
    str::from_utf8(text).ok()?.parse().ok()
}
