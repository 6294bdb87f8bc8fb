//! Spelling of single values: Structured Field items (RFC 9651) and decimal seconds.

use super::{SF_INTEGER_MAX, US_PER_S};
use crate::push_decimal;
use alloc::vec::Vec;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends digits, at most the largest Structured Field integer.
#[inline(always)]
pub(super) fn uint(out: &mut Vec<u8>, value: u64) {
    push_decimal(out, value.min(SF_INTEGER_MAX));
}

/// Appends a parameter: its key, and a number.
#[inline(always)]
pub(super) fn parameter<const N: usize>(out: &mut Vec<u8>, key: &[u8; N], value: u64) {
    out.extend_from_slice(key);
    uint(out, value);
}

/// Appends seconds with up to six decimals, as many as are needed to be exact.
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

/// Appends a quoted string.
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

/// Appends a text without quotes.
pub(super) fn text(out: &mut Vec<u8>, value: &str) {
    out.extend(value.chars().map(printable));
}

/// Appends a byte sequence in padded base64 between colons.
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

/// Appends sixteen hexadecimal digits.
pub(super) fn hex(out: &mut Vec<u8>, value: u64) {
    out.extend((0..16).map(|i| HEX[(value >> (60 - 4 * i)) as usize & 15]));
}

/// Replaces characters that are not printable ASCII. Names are checked when a policy is loaded;
/// should an invalid one slip through, its line break must not end a header line.
fn printable(c: char) -> u8 {
    if matches!(c, ' '..='~') { c as u8 } else { b'?' }
}
