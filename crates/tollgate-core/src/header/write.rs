//! How single values are spelled: Structured Field items (RFC 9651) and decimal seconds.

use super::{SF_INTEGER_MAX, US_PER_S};
use alloc::vec::Vec;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const HEX: &[u8; 16] = b"0123456789abcdef";

/// A number of eight digits has this many values.
const EIGHT_DIGITS: u64 = 100_000_000;

/// Digits, at most the largest Structured Field integer.
#[inline]
pub(super) fn uint(out: &mut Vec<u8>, value: u64) {
    match value {
        0..10 => out.push(b'0' + value as u8),
        10..EIGHT_DIGITS => short(out, value),
        _ => long(out, value.min(SF_INTEGER_MAX)),
    }
}

/// Up to eight digits.
fn short(out: &mut Vec<u8>, value: u64) {
    let (digits, zeros) = eight(value);
    let end = out.len() + 8 - zeros;
    // All eight bytes at once, since a copy of a length that is not known costs more than the
    // number itself.
    out.extend_from_slice(&(digits >> (8 * zeros)).to_le_bytes());
    out.truncate(end);
}

/// More than that.
fn long(out: &mut Vec<u8>, value: u64) {
    short(out, value / EIGHT_DIGITS);
    out.extend_from_slice(&eight(value % EIGHT_DIGITS).0.to_le_bytes());
}

/// A number after what it is called.
#[inline]
pub(super) fn parameter<const N: usize>(out: &mut Vec<u8>, key: &[u8; N], value: u64) {
    out.extend_from_slice(key);
    uint(out, value);
}

/// The eight digits of a number, its first in the lowest byte, and how many of them are zeros
/// before it; the last digit is none of these.
///
/// All are computed side by side: the number is cut in halves, these in halves and these again,
/// each part in its own bits of one word.
fn eight(number: u64) -> (u64, usize) {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let high = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = high | ((fours - 100 * high) << 16);
    let high = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = high | ((twos - 10 * high) << 8);
    let zeros = ones.trailing_zeros() as usize / 8;
    (ones | 0x3030_3030_3030_3030, zeros.min(7))
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

/// Names are checked when a policy is loaded. Should one slip through, a line break in it must
/// still not become a line break in the answer's head.
fn printable(c: char) -> u8 {
    if matches!(c, ' '..='~') { c as u8 } else { b'?' }
}
