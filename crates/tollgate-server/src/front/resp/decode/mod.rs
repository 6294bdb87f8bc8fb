//! Decodes commands in the bytes of a connection: arrays of bulk strings, or inline commands.
//!
//! Nothing is copied: an argument is a range of the bytes. For an incomplete command, the decoder
//! returns how many bytes it needs before it can get further. So a long argument that arrives byte
//! by byte is not parsed again for every byte.

mod inline;

use std::ops::Range;

/// Limit of an argument, in bytes.
pub(crate) const BULK_BYTES_MAX: usize = 64 * 1024;
/// Limit of arguments in a command, its name included.
pub(crate) const ARGUMENTS_MAX: usize = 1024;
/// Limit of a command, in bytes, also of an inline command.
pub(crate) const COMMAND_BYTES_MAX: usize = 64 * 1024 + 16 * 1024;
/// Limit of an inline command, in bytes.
pub(crate) const LINE_BYTES_MAX: usize = 16 * 1024;

/// Caps on the input of a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    /// Limit of an argument, in bytes.
    pub(crate) bulk_bytes_max: usize,
    /// Limit of arguments in a command.
    pub(crate) arguments_max: usize,
}

impl Caps {
    /// Caps for authenticated clients.
    pub(crate) const AUTHENTICATED: Self =
        Self { bulk_bytes_max: BULK_BYTES_MAX, arguments_max: ARGUMENTS_MAX };
    /// Caps before AUTH: enough for AUTH and HELLO.
    pub(crate) const UNAUTHENTICATED: Self = Self { bulk_bytes_max: 4096, arguments_max: 10 };
}

/// The result of decoding some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodeStatus {
    /// A command of this many bytes. One without arguments is empty, and gets no reply.
    Complete(usize),
    /// A partial command, which needs at least this many bytes to get further.
    Partial(usize),
}

/// Invalid bytes, after which nothing can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    /// The array count is not a number, or too large.
    #[error("invalid multibulk length")]
    Count,
    /// The length of an argument is not a number, or too large.
    #[error("invalid bulk length")]
    Length,
    /// An array element that is not a bulk string.
    #[error("expected '$', got '{}'", shown(*.0))]
    Argument(u8),
    /// An argument without a line end after it.
    #[error("a bulk string goes on where it should end")]
    End,
    /// A line that is too long.
    #[error("too big inline request")]
    Line,
    /// An unclosed quote.
    #[error("unbalanced quotes in request")]
    Quotes,
    /// A command that is too large in total.
    #[error("too big request")]
    Size,
}

/// The arguments of one command, as ranges of its bytes.
pub(crate) type Arguments = Vec<Range<usize>>;

/// The longest possible `*` or `$` with digits and line end.
const LENGTH_LINE_BYTES_MAX: usize = 16;

/// Decodes the first command of `bytes`. An inline command with escapes is rewritten in place.
#[inline(always)]
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
            // Nothing can be wrong before these bytes are there.
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

/// The integer from `at` to the end of its line, and the start of the next line; `None` if the line
/// is incomplete.
// Always inlined: a call passes its result through memory.
#[inline(always)]
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

/// Like [`head`], for any number of digits.
#[cold]
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

fn shown(byte: u8) -> String {
    match byte {
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    }
}

/// Parses a signed 64-bit decimal integer, like Rust's own parser.
#[inline]
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    // This many digits cannot overflow.
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
