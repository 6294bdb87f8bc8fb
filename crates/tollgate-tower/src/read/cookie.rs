//! One cookie among all.

use super::query::{Plus, unescape};
use std::borrow::Cow;

/// The values of all cookies of that name, over all lines.
pub(super) fn all<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
    name: &str,
) -> impl Iterator<Item = Value<'a>> {
    let pairs = lines.flat_map(|line| line.split(|byte| *byte == b';')).map(<[u8]>::trim_ascii);
    pairs.filter_map(move |pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let is_it = pair[..at].trim_ascii_end() == name.as_bytes();
        is_it.then(|| Value(pair[at + 1..].trim_ascii_start()))
    })
}

/// The value of a cookie, as it was sent.
#[derive(Clone, Copy)]
pub(super) struct Value<'a>(&'a [u8]);

impl<'a> Value<'a> {
    /// The value without quotes and with its escapes decoded: PHP and Express read `sid=%61` as
    /// `sid=a`, and most servers read `sid="a"` so.
    pub(super) fn text(self) -> Cow<'a, [u8]> {
        let inner = match self.0 {
            [b'"', inner @ .., b'"'] => inner,
            value => value,
        };
        if inner.contains(&b'%') {
            Cow::Owned(unescape(inner, Plus::Literal))
        } else {
            Cow::Borrowed(inner)
        }
    }

    /// Whether servers differ in what the value is: Python decodes `"\141"` to `a`.
    pub(super) fn is_unclear(self) -> bool {
        self.0.starts_with(b"\"") && self.0.contains(&b'\\')
    }
}
