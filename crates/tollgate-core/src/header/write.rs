//! How single values are spelled: Structured Field items (RFC 9651) and decimal seconds.

use super::{SF_INTEGER_MAX, US_PER_S};
use alloc::string::String;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const HEX: &[u8; 16] = b"0123456789abcdef";

/// Digits, at most the largest Structured Field integer.
pub(super) fn uint(out: &mut String, value: u64) {
    let mut value = value.min(SF_INTEGER_MAX);
    let mut digits = [b'0'; 15];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] += (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.push_str(core::str::from_utf8(&digits[first..]).unwrap_or_default());
}

/// Seconds with as many of six decimals as it takes to be exact.
pub(super) fn decimal_seconds(out: &mut String, us: u64) {
    uint(out, us / US_PER_S);
    let mut rest = us % US_PER_S;
    if rest > 0 {
        out.push('.');
    }
    let mut unit = US_PER_S / 10;
    while rest > 0 {
        out.push(char::from(b'0' + (rest / unit) as u8));
        rest %= unit;
        unit /= 10;
    }
}

/// A quoted string.
pub(super) fn string(out: &mut String, value: &str) {
    out.push('"');
    if value.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) {
        out.push_str(value);
    } else {
        for c in value.chars() {
            if matches!(c, '"' | '\\') {
                out.push('\\');
            }
            out.push(printable(c));
        }
    }
    out.push('"');
}

/// The text as it is.
pub(super) fn text(out: &mut String, value: &str) {
    out.extend(value.chars().map(printable));
}

/// A byte sequence in padded base64 between colons.
pub(super) fn binary(out: &mut String, bytes: &[u8]) {
    out.push(':');
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let sextet = (group >> (18 - 6 * i)) & 63;
            out.push(if i > chunk.len() { '=' } else { char::from(BASE64[sextet as usize]) });
        }
    }
    out.push(':');
}

/// Sixteen hexadecimal digits.
pub(super) fn hex(out: &mut String, value: u64) {
    out.extend((0..16).map(|i| char::from(HEX[(value >> (60 - 4 * i)) as usize & 15])));
}

/// Names are checked when a policy is loaded. Should one slip through, a line break in it must still not
/// become a line break in the answer's head.
fn printable(c: char) -> char {
    if matches!(c, ' '..='~') { c } else { '?' }
}
