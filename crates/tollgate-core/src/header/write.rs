//! How single values are spelled: Structured Field items (RFC 9651) and decimal seconds.

use super::{SF_INTEGER_MAX, US_PER_S};
use alloc::vec::Vec;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Every pair of digits, since two cost as much as one.
const PAIRS: &[u8; 200] =
    b"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
    5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
const HEX: &[u8; 16] = b"0123456789abcdef";

/// As many digits as the largest Structured Field integer has, and one that makes it pairs.
const DIGITS_MAX: usize = 16;

/// Digits, at most the largest Structured Field integer.
pub(super) fn uint(out: &mut Vec<u8>, value: u64) {
    let mut value = value.min(SF_INTEGER_MAX);
    let mut digits = [0; DIGITS_MAX];
    let mut start = DIGITS_MAX;
    while value >= 10 {
        start -= 2;
        let pair = (value % 100) as usize * 2;
        digits[start..start + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
        value /= 100;
    }
    // What is left is the first digit, or nothing but the number zero.
    if value > 0 || start == DIGITS_MAX {
        start -= 1;
        digits[start] = b'0' + value as u8;
    }
    out.extend_from_slice(&digits[start..]);
}

/// Seconds with as many of six decimals as it takes to be exact.
pub(super) fn decimal_seconds(out: &mut Vec<u8>, us: u64) {
    uint(out, us / US_PER_S);
    let mut rest = us % US_PER_S;
    if rest > 0 {
        out.push(b'.');
    }
    let mut unit = US_PER_S / 10;
    while rest > 0 {
        out.push(b'0' + (rest / unit) as u8);
        rest %= unit;
        unit /= 10;
    }
}

/// A quoted string.
pub(super) fn string(out: &mut Vec<u8>, value: &str) {
    out.push(b'"');
    for c in value.chars() {
        if matches!(c, '"' | '\\') {
            out.push(b'\\');
        }
        out.push(printable(c));
    }
    out.push(b'"');
}

/// The text as it is.
pub(super) fn text(out: &mut Vec<u8>, value: &str) {
    out.extend(value.chars().map(printable));
}

/// A byte sequence in padded base64 between colons.
pub(super) fn binary(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b':');
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let sextet = (group >> (18 - 6 * i)) & 63;
            out.push(if i > chunk.len() { b'=' } else { BASE64[sextet as usize] });
        }
    }
    out.push(b':');
}

/// Sixteen hexadecimal digits.
pub(super) fn hex(out: &mut Vec<u8>, value: u64) {
    out.extend((0..16).map(|i| HEX[(value >> (60 - 4 * i)) as usize & 15]));
}

/// Names are checked when a policy is loaded. Should one slip through, a line break in it must still not
/// become a line break in the answer's head.
fn printable(c: char) -> u8 {
    if matches!(c, ' '..='~') { c as u8 } else { b'?' }
}
