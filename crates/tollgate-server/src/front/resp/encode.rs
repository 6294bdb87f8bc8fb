//! Encodes replies in RESP, appended to a buffer.

use std::fmt;
use tollgate_core::push_decimal;

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
#[inline]
pub(super) fn integer(out: &mut Vec<u8>, value: i64) {
    match value {
        // In one piece: most integers of a decision have one digit, or say that there is no wait.
        -1 => out.extend_from_slice(b":-1\r\n"),
        0..=9 => out.extend_from_slice(&[b':', b'0' + value as u8, b'\r', b'\n']),
        _ => {
            out.push(b':');
            decimal(out, value);
            out.extend_from_slice(b"\r\n");
        }
    }
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

/// Writes the reply to a decision: an array of five integers.
#[inline]
pub(super) fn decision(out: &mut Vec<u8>, five: [i64; 5]) {
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
    if value < 0 {
        out.push(b'-');
    }
    push_decimal(out, value.unsigned_abs());
}

#[cfg(test)]
mod tests;
