//! Names that look like another, and how servers trim values.

use http::HeaderName;
use tollgate_policy::address::{fold_name_byte, is_odd_name};

/// Whether a name can be confused with another. Few can, so most names are not compared.
pub(super) fn is_suspicious(name: &HeaderName) -> bool {
    is_odd_name(name.as_str().as_bytes())
}

/// Whether some servers take `name` for `field`: they read `_`, `.` and other characters as `-`.
pub(super) fn is_alias(field: &HeaderName, name: &HeaderName) -> bool {
    fn folded(name: &HeaderName) -> impl Iterator<Item = u8> {
        name.as_str().bytes().map(fold_name_byte)
    }
    field != name && folded(field).eq(folded(name))
}

/// Whether the case of a name is significant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaseSensitivity {
    Sensitive,
    Insensitive,
}

/// Whether some servers read a parameter or a cookie of a different name, `key`, under `name`.
///
/// PHP ends a name at NUL and reads a space, a dot and `[` as `_`. Express, PHP and Rails read
/// `name[]` as a list, Express reads `[name]` as `name`. Python trims Unicode spaces.
pub(super) fn is_lookalike(key: &[u8], name: &[u8], case: CaseSensitivity) -> bool {
    let folded = |byte: &u8| match byte {
        b'.' | b' ' | b'[' => b'_',
        byte if case == CaseSensitivity::Insensitive => byte.to_ascii_lowercase(),
        byte => *byte,
    };
    let is_edge = |byte: &u8| !byte.is_ascii_graphic();
    let ends_at = |text: &[u8], end: u8| text.iter().position(|byte| *byte == end);
    let trimmed = trim_by(key, is_edge);
    let whole = trim_by(&trimmed[..ends_at(trimmed, 0).unwrap_or(trimmed.len())], is_edge);
    let base = trim_by(&whole[..ends_at(whole, b'[').unwrap_or(whole.len())], is_edge);
    let inner = whole.strip_prefix(b"[").unwrap_or_default();
    let inner = &inner[..ends_at(inner, b']').unwrap_or(inner.len())];
    let name_folded = || trim_by(name, is_edge).iter().map(folded);
    key != name
        && [whole, base, inner].into_iter().any(|form| form.iter().map(folded).eq(name_folded()))
}

/// A value without ASCII white space and control bytes at its ends: some servers trim them.
pub(super) fn trim(value: &[u8]) -> &[u8] {
    trim_by(value, |byte| *byte == b' ' || byte.is_ascii_control())
}

/// Whether a value begins or ends with a non-ASCII space or control character, in Unicode or
/// Latin-1. Some servers trim it.
pub(super) fn is_unclear_at_ends(value: &[u8]) -> bool {
    if value.is_ascii() {
        return false;
    }
    match str::from_utf8(value) {
        Ok(text) => text.starts_with(is_space) || text.ends_with(is_space),
        Err(_) => trim_by(value, |byte| matches!(byte, 0x80..=0xa0)).len() < value.len(),
    }
}

/// Whether some servers trim this character.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || c.is_control() || c == '\u{feff}'
}

fn trim_by(mut value: &[u8], goes: impl Fn(&u8) -> bool) -> &[u8] {
    while let [first, rest @ ..] = value
        && goes(first)
    {
        value = rest;
    }
    while let [rest @ .., last] = value
        && goes(last)
    {
        value = rest;
    }
    value
}
