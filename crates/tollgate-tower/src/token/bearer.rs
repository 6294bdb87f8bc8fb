//! Finds the bearer token of a request.

use http::header::AUTHORIZATION;
use tollgate_policy::facts::Unverified;

use crate::Head;

/// The bearer token of a request. `Ok(None)`: the request carries none, or credentials of another
/// scheme.
///
/// Services find a token after a tab, after several spaces and after other spellings of `Bearer`.
/// So a header that begins with that word carries a token, which is verified or refused. It never
/// counts as absent. Some services ignore the scheme, so a JWT after another scheme, or without
/// one, is refused.
pub(crate) fn find<H: Head>(head: &H) -> Result<Option<&str>, Unverified> {
    let mut lines = head.header_values(&AUTHORIZATION);
    let Some(first) = lines.next() else { return Ok(None) };
    // With two headers, services differ in which one they read.
    if lines.any(|line| line.trim_ascii() != first.trim_ascii()) {
        let is_bearer = |line: &[u8]| !matches!(token(line), Ok(None));
        return if head.header_values(&AUTHORIZATION).any(is_bearer) {
            Err(Unverified::Ambiguous)
        } else {
            Ok(None)
        };
    }
    token(first)
}

/// The token of one header.
fn token(line: &[u8]) -> Result<Option<&str>, Unverified> {
    // Some services trim control characters and Latin-1 spaces.
    let start = line.iter().position(u8::is_ascii_graphic).unwrap_or(line.len());
    let (before, value) = line.split_at(start);
    let Some((scheme, rest)) = value.split_at_checked(SCHEME.len()) else { return Ok(None) };
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return if has_jwt(value) { Err(Unverified::Malformed) } else { Ok(None) };
    }
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let starts_well = before.iter().all(is_space) && rest.first().is_some_and(is_space);
    let token = rest.trim_ascii();
    if starts_well && !token.is_empty() && token.iter().all(u8::is_ascii_graphic) {
        str::from_utf8(token).map(Some).map_err(|_| Unverified::Malformed)
    } else {
        Err(Unverified::Malformed)
    }
}

/// Whether one of the words is a JWT: three parts, and the first names an algorithm.
fn has_jwt(value: &[u8]) -> bool {
    let separates = |byte: &u8| !byte.is_ascii_graphic() || matches!(byte, b',' | b';' | b'"');
    value.split(separates).filter_map(|word| str::from_utf8(word).ok()).any(|word| {
        let mut parts = word.split('.');
        let header = parts.next().filter(|_| parts.count() == 2).and_then(super::decode_object);
        header.is_some_and(|header| header.contains_key("alg"))
    })
}

const SCHEME: &[u8] = b"bearer";

#[cfg(test)]
mod tests;
