//! The length of a body, said once and in one way.

use hyper::{
    HeaderMap,
    header::{CONTENT_LENGTH, HeaderValue},
};

/// Two lengths, or what is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unclear;

/// Leaves one `Content-Length`, written as everybody writes it, where one was said several times or in another way: whoever comes next might
/// read `2, 2` as nothing and `010` as eight.
pub(super) fn settle(headers: &mut HeaderMap) -> Result<(), Unclear> {
    let mut lines = headers.get_all(CONTENT_LENGTH).iter();
    let Some(first) = lines.next() else { return Ok(()) };
    if lines.next().is_none() && is_canonical(first.as_bytes()) {
        return Ok(());
    }
    let lines = headers.get_all(CONTENT_LENGTH).iter();
    let mut said = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(decimal);
    let length = said.next().flatten().ok_or(Unclear)?;
    if said.any(|other| other != Some(length)) {
        return Err(Unclear);
    }
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    Ok(())
}

/// Digits of which the first is needed, and no more than make a number for certain.
fn is_canonical(digits: &[u8]) -> bool {
    (1..=18).contains(&digits.len())
        && digits.iter().all(u8::is_ascii_digit)
        && (digits[0] != b'0' || digits.len() == 1)
}

fn decimal(item: &[u8]) -> Option<u64> {
    let digits = str::from_utf8(item.trim_ascii()).ok()?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests;
