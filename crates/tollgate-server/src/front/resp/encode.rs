//! Answers, as bytes at the end of a buffer.

use std::fmt;

/// Which form of the protocol a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Version {
    /// What every client understands.
    #[default]
    Two,
    /// With maps and a null of its own, after `HELLO 3`.
    Three,
}

impl Version {
    pub(super) const fn number(self) -> i64 {
        match self {
            Self::Two => 2,
            Self::Three => 3,
        }
    }
}

/// `+text`; the text has no line ends.
pub(super) fn simple(out: &mut Vec<u8>, text: &str) {
    out.push(b'+');
    line(out, text.as_bytes());
}

/// `-text`, of which line ends and other invisible characters become spaces.
#[cold]
pub(super) fn error(out: &mut Vec<u8>, text: impl fmt::Display) {
    out.push(b'-');
    let start = out.len();
    out.extend_from_slice(text.to_string().as_bytes());
    out[start..].iter_mut().filter(|byte| byte.is_ascii_control()).for_each(|byte| *byte = b' ');
    out.extend_from_slice(b"\r\n");
}

/// `:value`
#[inline]
pub(super) fn integer(out: &mut Vec<u8>, value: i64) {
    out.push(b':');
    decimal(out, value);
    out.extend_from_slice(b"\r\n");
}

/// `$length` and the bytes.
pub(super) fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    head(out, b'$', bytes.len());
    line(out, bytes);
}

/// Nothing at all.
pub(super) fn null(out: &mut Vec<u8>, version: Version) {
    out.extend_from_slice(match version {
        Version::Two => b"$-1\r\n",
        Version::Three => b"_\r\n",
    });
}

/// The start of an array of so many things.
#[inline]
pub(super) fn array(out: &mut Vec<u8>, count: usize) {
    head(out, b'*', count);
}

/// The start of so many pairs of a name and a value.
pub(super) fn map(out: &mut Vec<u8>, version: Version, pairs: usize) {
    match version {
        Version::Two => head(out, b'*', 2 * pairs),
        Version::Three => head(out, b'%', pairs),
    }
}

/// The start of so many words in no order.
pub(super) fn set(out: &mut Vec<u8>, version: Version, count: usize) {
    match version {
        Version::Two => head(out, b'*', count),
        Version::Three => head(out, b'~', count),
    }
}

/// The five integers that every decision is answered with.
#[inline]
pub(super) fn five(out: &mut Vec<u8>, five: [i64; 5]) {
    out.extend_from_slice(b"*5\r\n");
    five.into_iter().for_each(|value| integer(out, value));
}

fn head(out: &mut Vec<u8>, kind: u8, count: usize) {
    out.push(kind);
    decimal(out, i64::try_from(count).unwrap_or(i64::MAX));
    out.extend_from_slice(b"\r\n");
}

fn line(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

#[inline]
fn decimal(out: &mut Vec<u8>, value: i64) {
    if let 0..=9 = value {
        return out.push(b'0' + value as u8);
    }
    if value < 0 {
        out.push(b'-');
    }
    let mut digits = [0; 20];
    let (mut first, mut rest) = (digits.len(), value.unsigned_abs());
    while rest > 0 {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[first..]);
}

#[cfg(test)]
mod tests;
