//! Commands in the bytes of a connection: arrays of bulk strings, or lines as a person types them.
//!
//! Nothing is copied: an argument is a place in the bytes. A command that is not complete says how
//! many bytes have to be there before there is anything new to find, so that a long argument which
//! comes byte by byte is not read again for every one of them.

mod inline;

use std::fmt;
use std::ops::Range;

/// An argument, in bytes.
pub(crate) const BULK_BYTES_MAX: usize = 64 * 1024;
/// Arguments of a command, its name included.
pub(crate) const ARGUMENTS_MAX: usize = 1024;
/// A command in all, in bytes; as a line, too.
pub(crate) const COMMAND_BYTES_MAX: usize = 64 * 1024 + 16 * 1024;
/// A line that a person could type, in bytes.
pub(crate) const LINE_BYTES_MAX: usize = 16 * 1024;

/// How much a peer may send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    /// An argument, in bytes.
    pub(crate) bulk_bytes_max: usize,
    /// Arguments of a command.
    pub(crate) arguments_max: usize,
}

impl Caps {
    /// For authenticated clients.
    pub(crate) const AUTHENTICATED: Self =
        Self { bulk_bytes_max: BULK_BYTES_MAX, arguments_max: ARGUMENTS_MAX };
    /// Before AUTH: enough for AUTH and HELLO.
    pub(crate) const UNAUTHENTICATED: Self = Self { bulk_bytes_max: 4096, arguments_max: 10 };
}

/// What some bytes begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodeStatus {
    /// A command of this many bytes. Without arguments it is nothing, and has no answer.
    Complete(usize),
    /// Part of a command; fewer bytes than this say nothing more about it.
    Partial(usize),
}

/// Bytes that are no command; nothing after them can be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// The array count is not a number, or too large.
    Count,
    /// The length of an argument is not a number, or too large.
    Length,
    /// Something else than an argument in an array.
    Argument(u8),
    /// An argument that goes on where it should end.
    End,
    /// A line without an end.
    Line,
    /// Quotation marks without an end.
    Quotes,
    /// A command that is too large in all.
    Size,
}

/// The arguments of one command, as places in its bytes.
pub(crate) type Arguments = Vec<Range<usize>>;

/// The longest that `*`, `$`, digits and the end of the line can be.
const LENGTH_LINE_BYTES_MAX: usize = 16;

/// Reads the first command of `bytes`. A line with escapes is rewritten in its place.
pub(crate) fn next_command(
    bytes: &mut [u8],
    caps: Caps,
    arguments: &mut Arguments,
) -> Result<DecodeStatus, Malformed> {
    arguments.clear();
    match bytes.first() {
        Some(b'*') => array(bytes, caps, arguments),
        Some(_) => inline::read_line(bytes, caps, arguments),
        None => Ok(DecodeStatus::Partial(1)),
    }
}

#[inline]
fn array(bytes: &[u8], caps: Caps, arguments: &mut Arguments) -> Result<DecodeStatus, Malformed> {
    let Some((count, mut at)) = head(bytes, 1).map_err(|()| Malformed::Count)? else {
        return Ok(DecodeStatus::Partial(bytes.len() + 1));
    };
    let count = usize::try_from(count).unwrap_or(0);
    if count > caps.arguments_max {
        return Err(Malformed::Count);
    }
    for _ in 0..count {
        match bytes.get(at) {
            Some(b'$') => {}
            Some(other) => return Err(Malformed::Argument(*other)),
            None => return partial(at + 1),
        }
        let Some((length, start)) = head(bytes, at + 1).map_err(|()| Malformed::Length)? else {
            return partial(bytes.len() + 1);
        };
        let length = usize::try_from(length).map_err(|_| Malformed::Length)?;
        if length > caps.bulk_bytes_max {
            return Err(Malformed::Length);
        }
        let end = start + length;
        match bytes.get(end..end + 2) {
            Some(b"\r\n") => {}
            Some(_) => return Err(Malformed::End),
            // Until then nothing can be wrong with it.
            None => return partial(end + 2),
        }
        arguments.push(start..end);
        at = end + 2;
        if at > COMMAND_BYTES_MAX {
            return Err(Malformed::Size);
        }
    }
    Ok(DecodeStatus::Complete(at))
}

fn partial(least: usize) -> Result<DecodeStatus, Malformed> {
    if least > COMMAND_BYTES_MAX { Err(Malformed::Size) } else { Ok(DecodeStatus::Partial(least)) }
}

/// The integer from `at` to the end of its line, and where the next one starts; `None` while there
/// is no end.
#[inline]
fn head(bytes: &[u8], at: usize) -> Result<Option<(i64, usize)>, ()> {
    let rest = bytes.get(at..).unwrap_or_default();
    let value = |digit: u8| i64::from(digit - b'0');
    match rest {
        [one @ b'0'..=b'9', b'\r', b'\n', ..] => Ok(Some((value(*one), at + 3))),
        [ten @ b'0'..=b'9', one @ b'0'..=b'9', b'\r', b'\n', ..] => {
            Ok(Some((value(*ten) * 10 + value(*one), at + 4)))
        }
        _ => long_head(bytes, at),
    }
}

/// The same for any number of digits.
fn long_head(bytes: &[u8], at: usize) -> Result<Option<(i64, usize)>, ()> {
    let rest = bytes.get(at..).unwrap_or_default();
    let (mut value, mut digits) = (0_i64, 0);
    let negative = rest.first() == Some(&b'-');
    for byte in rest.iter().skip(usize::from(negative)).take(LENGTH_LINE_BYTES_MAX) {
        match byte {
            b'0'..=b'9' => value = value * 10 + i64::from(byte - b'0'),
            b'\r' if digits > 0 => {
                let end = at + usize::from(negative) + digits;
                return match bytes.get(end + 1) {
                    Some(b'\n') => Ok(Some((if negative { -value } else { value }, end + 2))),
                    Some(_) => Err(()),
                    None => Ok(None),
                };
            }
            _ => return Err(()),
        }
        digits += 1;
    }
    if digits < LENGTH_LINE_BYTES_MAX { Ok(None) } else { Err(()) }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("invalid multibulk length"),
            Self::Length => f.write_str("invalid bulk length"),
            Self::Argument(byte @ b' '..=b'~') => {
                write!(f, "expected '$', got '{}'", char::from(*byte))
            }
            Self::Argument(byte) => write!(f, "expected '$', got '\\x{byte:02x}'"),
            Self::End => f.write_str("a bulk string goes on where it should end"),
            Self::Line => f.write_str("too big inline request"),
            Self::Quotes => f.write_str("unbalanced quotes in request"),
            Self::Size => f.write_str("too big request"),
        }
    }
}

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

#[cfg(test)]
mod tests;
