//! Path normalisation: `/login`, `/%6Cogin` and `/x/../login` share one limit.
//!
//! The steps, in order: drop the query and the fragment. Decode escapes of unreserved characters,
//! and write all other escapes in upper case. Escape bytes that RFC 3986 does not allow in a path
//! (spaces, quotes, non-ASCII). Merge runs of slashes. Resolve dot segments. Case and a trailing
//! slash are kept.
//!
//! Upstreams read some paths in more than one way. [`ambiguity`] detects such paths, and
//! [`readings`] lists their readings.
//!
//! A broken escape (`%zz`, `%4`) is kept, and so is a valid escape directly after it. Decoding the
//! valid one could complete the broken one, and normalising twice would then give another path. A
//! path without a leading slash stays without one. A path that becomes empty is `/`; an empty path
//! stays empty.

mod readings;
mod server_model;
#[cfg(test)]
mod tests;

pub use readings::{AmbiguousPath, ambiguity, readings};

use crate::hex::{self, decode_byte as escaped};
use std::borrow::Cow;

/// Returns the path in normal form; borrowed if it already is.
///
/// ```
/// use tollgate_policy::path::normalise;
///
/// assert_eq!(normalise("/%6cogin"), "/login");
/// assert_eq!(normalise("/a//b/../c/?q=1"), "/a/c/");
/// assert_eq!(normalise("/a%2fb/\u{e9}"), "/a%2Fb/%C3%A9");
/// ```
pub fn normalise(path: &str) -> Cow<'_, str> {
    if is_plain(path) {
        return Cow::Borrowed(path);
    }
    let mut out = String::new();
    normalise_into(path, &mut out);
    Cow::Owned(out)
}

/// A quick test: `true` means that the path is in normal form and has one reading. `false` means
/// nothing.
pub(crate) fn is_plain(path: &str) -> bool {
    let bytes = path.as_bytes();
    // Without branches, since most paths are plain.
    let (mut unclear, mut refused) = (0, UNCLEAR | STARTS_NO_SEGMENT);
    for &byte in bytes.strip_prefix(b"/").unwrap_or(bytes) {
        let class = CLASSES[byte as usize];
        unclear |= class & refused;
        // After a slash, the bit of the slash becomes that of `STARTS_NO_SEGMENT`.
        refused = UNCLEAR | (class & SLASH) << 1;
    }
    // Some servers ignore trailing dots.
    unclear == 0 && !path.ends_with('.')
}

/// Writes the path in normal form into `out`, replacing its content.
pub(crate) fn normalise_into(path: &str, out: &mut String) {
    rewrite(without_query(path).as_bytes(), is_clear, is_unreserved, out);
}

/// Normalises a path pattern like the paths it is to match. Wildcards are kept, and `?` does not
/// start a query. An escape of a character that may stand unescaped is decoded, as in the
/// [`readings`] of a path.
pub(crate) fn normalise_pattern(pattern: &str) -> String {
    let mut out = String::new();
    let is_clear_or_wildcard = |byte| byte == b'?' || is_clear(byte);
    let is_decoded = |byte| byte != b'*' && is_pchar(byte);
    rewrite(pattern.as_bytes(), is_clear_or_wildcard, is_decoded, &mut out);
    out
}

fn without_query(path: &str) -> &str {
    let end = path.find(['?', '#']).unwrap_or(path.len());
    &path[..end]
}

fn rewrite(
    path: &[u8],
    is_clear: impl Fn(u8) -> bool,
    is_decoded: impl Fn(u8) -> bool,
    out: &mut String,
) {
    out.clear();
    let mut rest = path;
    if let Some(relative) = path.strip_prefix(b"/") {
        out.push('/');
        rest = relative;
    }
    let root = out.len();
    let mut segment_start = root;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'/' => {
                if end_segment(out, segment_start, root) {
                    out.push('/');
                }
                segment_start = out.len();
            }
            b'%' => match escaped(after) {
                Some(byte) => {
                    rest = &after[2..];
                    if is_decoded(byte) && !ends_in_broken_escape(out) {
                        out.push(char::from(byte));
                    } else {
                        push_escape(out, byte);
                    }
                }
                None => out.push('%'),
            },
            _ if is_clear(byte) => out.push(char::from(byte)),
            _ => push_escape(out, byte),
        }
    }
    end_segment(out, segment_start, root);
    if out.is_empty() {
        out.push('/');
    }
}

/// Drops the segment that has just ended if it is a dot segment, with its parent if it is `..`.
/// Returns whether a slash must follow: after an empty segment there is one already.
fn end_segment(out: &mut String, segment_start: usize, root: usize) -> bool {
    match &out[segment_start..] {
        "" => {}
        "." => out.truncate(segment_start),
        ".." => {
            let parents = &out[..segment_start];
            let parent = parents.strip_suffix('/').and_then(|before| before.rfind('/'));
            out.truncate(parent.map_or(root, |slash| slash + 1));
        }
        _ => return true,
    }
    false
}

/// Whether one or two more hexadecimal digits would complete an escape at the end of `out`.
fn ends_in_broken_escape(out: &str) -> bool {
    match out.as_bytes() {
        [.., b'%'] => true,
        [.., b'%', digit] => digit.is_ascii_hexdigit(),
        _ => false,
    }
}

fn push_escape(out: &mut String, byte: u8) {
    out.push('%');
    hex::push(out, hex::UPPER, &[byte]);
}

/// RFC 3986 `unreserved`.
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// RFC 3986 `pchar` without escapes.
const fn is_pchar(byte: u8) -> bool {
    let is_reserved = matches!(
        byte,
        b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b':' | b'@'
    );
    is_unreserved(byte) || is_reserved
}

/// Whether a byte may be in a path without an escape.
const fn is_clear(byte: u8) -> bool {
    byte == b'/' || is_pchar(byte)
}

/// The classes of a byte, for [`is_plain`]: bits of [`CLASSES`]. `;` is unclear, since some servers
/// cut a segment there.
const UNCLEAR: u8 = 1;
const SLASH: u8 = 2;
/// A dot or a slash: a segment of a plain path does not start with it.
const STARTS_NO_SEGMENT: u8 = SLASH << 1;

const CLASSES: [u8; 256] = {
    let mut table = [UNCLEAR; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'/' => SLASH | STARTS_NO_SEGMENT,
            b'.' => STARTS_NO_SEGMENT,
            b';' => UNCLEAR,
            other if is_clear(other) => 0,
            _ => UNCLEAR,
        };
        byte += 1;
    }
    table
};
