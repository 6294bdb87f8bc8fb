//! Integers as arguments have them.

/// A signed 64-bit integer in decimal digits, with a sign if need be, as Rust's own reader takes
/// it.
#[inline]
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    // Up to this many digits nothing can overflow.
    if let 1..=18 = text.len() {
        let mut sum = 0;
        for byte in text {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return unusual(text);
            }
            sum = sum * 10 + i64::from(digit);
        }
        return Some(sum);
    }
    unusual(text)
}

#[cold]
fn unusual(text: &[u8]) -> Option<i64> {
    str::from_utf8(text).ok()?.parse().ok()
}
