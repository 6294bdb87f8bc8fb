//! Single values: from Structured Field items, and from the plain numbers of older headers.

use super::scan::BareItem;
use crate::header::US_PER_S;
use alloc::{string::String, vec::Vec};

/// Returns a non-negative integer.
pub(super) fn uint(value: BareItem<'_>) -> Option<u64> {
    match value {
        BareItem::Integer(value) => u64::try_from(value).ok(),
        _ => None,
    }
}

/// Returns the unescaped text of a string, or of a token: drafts use both for names.
pub(super) fn text(value: BareItem<'_>) -> Option<String> {
    match value {
        BareItem::Token(token) => Some(token.into()),
        BareItem::String(raw) => {
            let mut text = String::with_capacity(raw.len());
            let mut chars = raw.chars();
            while let Some(c) = chars.next() {
                text.extend(if c == '\\' { chars.next() } else { Some(c) });
            }
            Some(text)
        }
        _ => None,
    }
}

/// Decodes a binary item. Padding may be missing and pad bits may be set (RFC 9651, section 4.2.7);
/// samples of the drafts have such bits.
pub(super) fn bytes(value: BareItem<'_>) -> Option<Vec<u8>> {
    let BareItem::Binary(encoded) = value else { return None };
    if !is_base64(encoded) {
        return None;
    }
    let digits = encoded.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    let (mut group, mut bits) = (0_u32, 0);
    for digit in digits.bytes() {
        group = group << 6 | sextet(digit)?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((group >> bits) as u8);
        }
    }
    Some(bytes)
}

/// Whether the text is well-formed base64: at most two complete padding characters, at the end
/// only.
pub(super) fn is_base64(encoded: &str) -> bool {
    let digits = encoded.trim_end_matches('=');
    let padding = encoded.len() - digits.len();
    digits.len() % 4 != 1
        && (padding == 0 || padding <= 2 && encoded.len().is_multiple_of(4))
        && digits.bytes().all(|digit| sextet(digit).is_some())
}

fn sextet(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

/// Converts decimal seconds to microseconds, clamped to the end of time. Digits after the sixth
/// place round up, so that a wait stays long enough.
pub(super) fn seconds_as_us(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let us = digits_saturating(whole)?.saturating_mul(US_PER_S);
    digits_saturating(fraction)?;
    let digit = |i| fraction.as_bytes().get(i).map_or(0, |byte| u64::from(byte - b'0'));
    let part_us = (0..6).fold(0, |sum, i| sum * 10 + digit(i));
    let beyond = fraction.bytes().skip(6).any(|byte| byte != b'0');
    Some(us.saturating_add(part_us + u64::from(beyond)))
}

/// Reads a count. The fraction that Reddit sends is dropped, since it is less than a whole unit.
pub(super) fn count(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    digits_saturating(fraction)?;
    digits_saturating(whole)
}

/// Reads one or more digits; larger values saturate.
pub(crate) fn digits_saturating(text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.bytes().try_fold(0_u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(sum.saturating_mul(10).saturating_add(digit))
    })
}

/// Trims the whitespace that HTTP allows around a value.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}
