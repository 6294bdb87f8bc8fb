//! How single values are spelled: Structured Field items (RFC 9651) and decimal seconds.

use super::{SF_INTEGER_MAX, US_PER_S};
use alloc::string::String;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Every pair of digits: text already, which digits put together one by one would first have to be proved to be.
const PAIRS: &str = "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
    5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
const HEX: &[u8; 16] = b"0123456789abcdef";

/// Digits, at most the largest Structured Field integer.
pub(super) fn uint(out: &mut String, value: u64) {
    let mut value = value.min(SF_INTEGER_MAX);
    let mut pairs = [0; 8];
    let mut count = 0;
    while value >= 100 {
        pairs[count] = (value % 100) as usize;
        value /= 100;
        count += 1;
    }
    let leading = &PAIRS[value as usize * 2..value as usize * 2 + 2];
    out.push_str(if value < 10 { &leading[1..] } else { leading });
    for &pair in pairs[..count].iter().rev() {
        out.push_str(&PAIRS[pair * 2..pair * 2 + 2]);
    }
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
