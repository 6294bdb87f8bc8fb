//! Chunks that are passed on as they are.

use super::Came;

/// A chunk's size has fewer digits than that: what is plain is far smaller.
const DIGITS_MAX: usize = 8;

/// What has come of a body in chunks. It is plain if nobody can read it in another way: sizes in digits alone, lines with their right ends, and
/// no trailers after the last chunk.
pub(super) fn came(mut rest: &[u8]) -> Came {
    loop {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (size, after) = rest.split_at(digits);
        match (digits, after) {
            (DIGITS_MAX.., _) => return Came::Unusual,
            (_, [] | b"\r") if digits > 0 || rest.is_empty() => return Came::Part,
            (1.., [b'\r', b'\n', after @ ..]) => rest = after,
            _ => return Came::Unusual,
        }
        let size = size.iter().fold(0, |sum, digit| sum << 4 | value(*digit));
        let Some((_, after)) = rest.split_at_checked(size) else { return Came::Part };
        match (size, after) {
            (_, [] | b"\r") => return Came::Part,
            (0, b"\r\n") => return Came::Whole,
            (1.., [b'\r', b'\n', after @ ..]) => rest = after,
            _ => return Came::Unusual,
        }
    }
}

/// A hexadecimal digit's.
fn value(digit: u8) -> usize {
    char::from(digit).to_digit(16).unwrap_or_default() as usize
}
