//! Encodes replies in RESP, appended to a buffer.

use std::fmt;

/// The protocol version of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RespVersion {
    /// The default, which every client supports.
    #[default]
    Resp2,
    /// Set by `HELLO 3`: adds maps, sets and a null.
    Resp3,
}

impl RespVersion {
    pub(super) const fn number(self) -> i64 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

/// Writes `+text`; the text has no line ends.
pub(super) fn simple(out: &mut Vec<u8>, text: &str) {
    out.push(b'+');
    line(out, text.as_bytes());
}

/// Writes `-text`. Line ends and other control characters become spaces.
#[cold]
pub(super) fn error(out: &mut Vec<u8>, text: impl fmt::Display) {
    out.push(b'-');
    let start = out.len();
    out.extend_from_slice(text.to_string().as_bytes());
    out[start..].iter_mut().filter(|byte| byte.is_ascii_control()).for_each(|byte| *byte = b' ');
    out.extend_from_slice(b"\r\n");
}

/// Writes `:value`.
pub(super) fn integer(out: &mut Vec<u8>, value: i64) {
    out.push(b':');
    decimal(out, value);
    out.extend_from_slice(b"\r\n");
}

/// Writes `$length` and the bytes.
pub(super) fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    head(out, b'$', bytes.len());
    line(out, bytes);
}

/// Writes the null of the version.
pub(super) fn null(out: &mut Vec<u8>, version: RespVersion) {
    out.extend_from_slice(match version {
        RespVersion::Resp2 => b"$-1\r\n",
        RespVersion::Resp3 => b"_\r\n",
    });
}

/// Writes the head of an array with `count` elements, which follow.
#[inline]
pub(super) fn array(out: &mut Vec<u8>, count: usize) {
    head(out, b'*', count);
}

/// Writes the head of a map: `pairs` names and values follow. In RESP2 it is an array.
pub(super) fn map(out: &mut Vec<u8>, version: RespVersion, pairs: usize) {
    match version {
        RespVersion::Resp2 => head(out, b'*', 2 * pairs),
        RespVersion::Resp3 => head(out, b'%', pairs),
    }
}

/// Writes the head of a set with `count` elements, which follow. In RESP2 it is an array.
pub(super) fn set(out: &mut Vec<u8>, version: RespVersion, count: usize) {
    match version {
        RespVersion::Resp2 => head(out, b'*', count),
        RespVersion::Resp3 => head(out, b'~', count),
    }
}

/// Writes the reply to a decision: an array of five integers. It is built backwards in a local
/// buffer, and appended in one piece.
#[inline]
pub(super) fn decision(out: &mut Vec<u8>, five: [i64; 5]) {
    const HEAD: &[u8] = b"*5\r\n";
    let mut bytes = [0; HEAD.len() + 5 * INTEGER_BYTES_MAX];
    let mut first = bytes.len();
    for value in five.into_iter().rev() {
        first -= 2;
        bytes[first..first + 2].copy_from_slice(b"\r\n");
        first = digits(&mut bytes, first, value);
        first -= 1;
        bytes[first] = b':';
    }
    first -= HEAD.len();
    bytes[first..first + HEAD.len()].copy_from_slice(HEAD);
    out.extend_from_slice(&bytes[first..]);
}

/// Limit of an integer: `:`, a sign, nineteen digits and the line end.
const INTEGER_BYTES_MAX: usize = 23;

/// Writes a number that ends before `end`. Returns the index of its first byte.
#[inline]
fn digits(bytes: &mut [u8], end: usize, value: i64) -> usize {
    let (mut first, mut rest) = (end, value.unsigned_abs());
    while rest >= 10 {
        let pair = (rest % 100) as u8;
        first -= 2;
        bytes[first..first + 2].copy_from_slice(&[b'0' + pair / 10, b'0' + pair % 10]);
        rest /= 100;
    }
    if rest > 0 || first == end {
        first -= 1;
        bytes[first] = b'0' + rest as u8;
    }
    if value < 0 {
        first -= 1;
        bytes[first] = b'-';
    }
    first
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

fn decimal(out: &mut Vec<u8>, value: i64) {
    let mut bytes = [0; INTEGER_BYTES_MAX];
    let first = digits(&mut bytes, INTEGER_BYTES_MAX, value);
    out.extend_from_slice(&bytes[first..]);
}

#[cfg(test)]
mod tests;
