//! One spelling for each path, so that `/login`, `/%6Cogin` and `/x/../login` share one limit.
//!
//! In this order: the query and the fragment go; escapes of unreserved characters are decoded and all other
//! escapes written in upper case, so `%2F` stays a character of its segment and never becomes a separator;
//! what RFC 3986 does not allow in a path in clear (spaces, quotes, backslashes, non-ASCII bytes) is escaped;
//! dot segments are resolved; runs of slashes become one. Case and a trailing slash are kept.
//!
//! An escape that is not one (`%zz`, `%4`) is kept as it is, and so is a good escape right behind it: decoding
//! that one could complete the broken one, and a second pass would then read another path than the first.
//! A path without a leading slash keeps that shape; one of which nothing is left is `/`. No path at all
//! stays none.

use std::borrow::Cow;

#[cfg(test)]
mod tests;

/// The path in its one spelling; borrowed when it already is.
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

/// Whether a glance shows that the path is in its one spelling. Some that are do not look like it.
pub(crate) fn is_plain(path: &str) -> bool {
    let bytes = path.as_bytes();
    let mut starts_segment = true;
    for &byte in bytes.strip_prefix(b"/").unwrap_or(bytes) {
        let may_be_special = starts_segment && matches!(byte, b'.' | b'/');
        if may_be_special || !is_clear(byte) {
            return false;
        }
        starts_segment = byte == b'/';
    }
    true
}

/// Replaces what `out` holds by the path in its one spelling.
pub(crate) fn normalise_into(path: &str, out: &mut String) {
    let end = path.find(['?', '#']).unwrap_or(path.len());
    rewrite(&path.as_bytes()[..end], is_clear, out);
}

/// A path glob in the spelling of the paths it is to match: its wildcards are kept, and `?` starts no query.
pub(crate) fn normalise_pattern(pattern: &str) -> String {
    let mut out = String::new();
    rewrite(pattern.as_bytes(), |byte| byte == b'?' || is_clear(byte), &mut out);
    out
}

fn rewrite(path: &[u8], is_clear: impl Fn(u8) -> bool, out: &mut String) {
    out.clear();
    let is_absolute = path.first() == Some(&b'/');
    let mut segment_start = 0;
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'/' => {
                if resolve_dots(out, segment_start, is_absolute) {
                    out.push('/');
                }
                segment_start = out.len();
            }
            b'%' => match escaped(after) {
                Some(byte) => {
                    rest = &after[2..];
                    if is_unreserved(byte) && !ends_in_broken_escape(out) {
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
    resolve_dots(out, segment_start, is_absolute);
    if out.contains("//") {
        let mut previous = '\0';
        out.retain(|character| {
            let keep = character != '/' || previous != '/';
            previous = character;
            keep
        });
    }
    if out.is_empty() {
        out.push('/');
    }
}

/// Drops the segment that has just ended if it is a dot segment, with its parent if it has two dots. Answers
/// whether a slash belongs behind it.
fn resolve_dots(out: &mut String, segment_start: usize, is_absolute: bool) -> bool {
    match &out[segment_start..] {
        "." => out.truncate(segment_start),
        ".." => {
            let parents = &out[..segment_start];
            let parent = parents.strip_suffix('/').and_then(|before| before.rfind('/'));
            let end = parent.map_or(usize::from(is_absolute), |slash| slash + 1);
            out.truncate(end);
        }
        _ => return true,
    }
    false
}

/// The byte that two hexadecimal digits at the start of `digits` stand for.
fn escaped(digits: &[u8]) -> Option<u8> {
    let high = hexadecimal(*digits.first()?)?;
    let low = hexadecimal(*digits.get(1)?)?;
    Some(high << 4 | low)
}

fn hexadecimal(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Whether one or two more hexadecimal digits would make an escape of the end of `out`.
fn ends_in_broken_escape(out: &str) -> bool {
    match out.as_bytes() {
        [.., b'%'] => true,
        [.., b'%', digit] => digit.is_ascii_hexdigit(),
        _ => false,
    }
}

fn push_escape(out: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

/// RFC 3986 `unreserved`.
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// RFC 3986 `pchar` without escapes, and the slash.
const fn is_clear(byte: u8) -> bool {
    CLEAR[byte as usize]
}

const CLEAR: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let character = byte as u8;
        let sub_delims_and_more = matches!(
            character,
            b'!' | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
                | b':'
                | b'@'
                | b'/'
        );
        table[byte] = is_unreserved(character) || sub_delims_and_more;
        byte += 1;
    }
    table
};
