//! Finds one cookie in all `Cookie` headers.

use super::lookalike::{CaseSensitivity, is_lookalike, is_unclear_at_ends, trim};
use std::borrow::Cow;
use tollgate_policy::hex::{Plus, unescape};

/// The values of all cookies of that name, over all lines. `name` without `=` is an empty one, as
/// PHP reads it.
pub(super) fn all<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
    name: &str,
) -> impl Iterator<Item = CookieValue<'a>> {
    let pairs = lines.flat_map(|line| line.split(|byte| *byte == b';')).map(<[u8]>::trim_ascii);
    pairs.filter_map(move |pair| {
        let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let is_it = pair[..at].trim_ascii_end() == name.as_bytes();
        is_it.then(|| CookieValue(pair.get(at + 1..).unwrap_or_default().trim_ascii_start()))
    })
}

/// The values that only some servers read under this name. PHP reads `na.me` as `na_me`. Python
/// starts a new cookie after white space within a value, older Java and Ruby after a comma. The
/// work is linear in the bytes: each is in one piece between two `=`.
pub(super) fn lookalikes<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
    name: &str,
) -> impl Iterator<Item = CookieValue<'a>> {
    let pairs = lines.flat_map(|line| line.split(|byte| *byte == b';')).map(<[u8]>::trim_ascii);
    pairs.flat_map(move |pair| {
        let mut start = 0;
        pair.iter().enumerate().filter(|(_, byte)| **byte == b'=').filter_map(move |(at, _)| {
            let before = pair[start..at].trim_ascii_end();
            let is_first = std::mem::replace(&mut start, at + 1) == 0;
            let is_sent = is_first && before == name.as_bytes();
            let separates = |byte: &u8| !byte.is_ascii_graphic() || *byte == b',';
            let word = before.rsplit(separates).find(|word| !word.is_empty()).unwrap_or_default();
            let is_it = !is_sent
                && (word == name.as_bytes()
                    || is_like(word, name)
                    || is_first && is_like(before, name));
            is_it.then(|| CookieValue(pair[at + 1..].trim_ascii_start()))
        })
    })
}

/// Older versions of PHP decode the names of cookies.
fn is_like(key: &[u8], name: &str) -> bool {
    let is_escaped = key.iter().any(|byte| matches!(byte, b'%' | b'+'));
    let key = if is_escaped { Cow::Owned(unescape(key, Plus::Space)) } else { Cow::Borrowed(key) };
    // Case is significant: two applications may have `sid` and `SID`.
    is_lookalike(&key, name.as_bytes(), CaseSensitivity::Sensitive)
        || matches!(key, Cow::Owned(_)) && *key == *name.as_bytes()
}

/// The value of a cookie, as it was sent.
#[derive(Clone, Copy)]
pub(super) struct CookieValue<'a>(&'a [u8]);

impl<'a> CookieValue<'a> {
    /// The value without quotes, with its escapes decoded, and without white space and control
    /// bytes at its ends. PHP and Express read `sid=%61` as `sid=a`, and most servers read
    /// `sid="a"` so.
    pub(super) fn text(self) -> Cow<'a, [u8]> {
        let inner = self.quoted().unwrap_or(self.0);
        if inner.contains(&b'%') {
            Cow::Owned(trim(&unescape(inner, Plus::Literal)).to_vec())
        } else {
            Cow::Borrowed(trim(inner))
        }
    }

    /// Whether servers differ in what the value is. Python decodes `"\141"` to `a`, and reads
    /// `a b` as `a`. Older Java and Ruby end a value at a comma. Express reads `j:"a"` as `a`.
    pub(super) fn is_unclear(self) -> bool {
        let quoted = self.quoted().filter(|inner| !inner.contains(&b'"'));
        let text = self.text();
        self.0.starts_with(b"\"") && self.0.contains(&b'\\')
            || quoted.is_none() && self.0.trim_ascii().iter().any(u8::is_ascii_whitespace)
            || self.0.contains(&b',')
            || text.starts_with(b"j:")
            || is_unclear_at_ends(&text)
    }

    fn quoted(self) -> Option<&'a [u8]> {
        match self.0 {
            [b'"', inner @ .., b'"'] => Some(inner),
            _ => None,
        }
    }
}
