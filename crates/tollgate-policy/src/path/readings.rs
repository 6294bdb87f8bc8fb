//! Paths that upstreams read in more than one way.
//!
//! A client can evade a limit that sees one reading if the upstream uses another. Two kinds of path
//! have several readings:
//!
//! * An [ambiguous](ambiguity) path, which few clients need. It is refused, unless the listener has
//!   `ambiguous_paths: match-all`. Then the limits of all its readings apply.
//! * An ordinary path with `;`, with an unneeded escape (`%40` for `@`), with a dot or a space at
//!   its end or with two slashes at its start. The limits of all its readings always apply.

use super::{escaped, is_pchar, is_plain, is_unreserved, normalise, without_query};
use std::fmt;

/// Why upstreams read a path in more than one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AmbiguousPath {
    /// A `%` without two hexadecimal digits.
    InvalidEscape,
    /// A control character, escaped or not.
    Control,
    /// `%2F`.
    EscapedSlash,
    /// A backslash, escaped or not.
    Backslash,
    /// A dot segment with an escaped dot.
    EscapedDots,
    /// A dot segment with a parameter, as in `/..;/`.
    DotsWithParameter,
    /// Dot segments together with empty segments: the result depends on the order of normalisation.
    DotsAndEmptySegments,
    /// A dot, a slash or a backslash in overlong UTF-8.
    Overlong,
    /// `%u006C`, which IIS and old versions of Jetty decode. It is refused even with
    /// `ambiguous_paths: match-all`.
    UnicodeEscape,
    /// More bytes than `ambiguous_paths: match-all` accepts in an ambiguous path.
    TooLong,
    /// More readings than `ambiguous_paths: match-all` accepts.
    TooManyReadings,
}

/// The most readings of one path. Each costs a search through the limits, and useful paths have
/// fewer.
const READINGS_MAX: usize = 16;

/// The longest ambiguous path whose readings are listed. Each reading takes a pass over the path.
const AMBIGUOUS_BYTES_MAX: usize = 4096;

impl fmt::Display for AmbiguousPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("servers read this path in more than one way: it has ")?;
        f.write_str(match self {
            Self::InvalidEscape => "an invalid escape; write `%` as `%25`",
            Self::Control => "a control character",
            Self::EscapedSlash => "an escaped slash (`%2F`)",
            Self::Backslash => "a backslash",
            Self::EscapedDots => "escaped dots (`%2E`) that form a dot segment",
            Self::DotsWithParameter => "a dot segment with a parameter (`..;`)",
            Self::DotsAndEmptySegments => "both dot segments and `//`",
            Self::Overlong => "an overlong encoding",
            Self::UnicodeEscape => "an escape with `%u`; write `%` as `%25`",
            Self::TooLong => "more than 4096 bytes, too many to try all readings",
            Self::TooManyReadings => "too many readings",
        })
    }
}

impl std::error::Error for AmbiguousPath {}

/// Returns the reason why upstreams read the path in more than one way, if they do. The query is
/// ignored.
///
/// ```
/// use tollgate_policy::path::{AmbiguousPath, ambiguity};
///
/// assert_eq!(ambiguity("/x/../login"), None);
/// assert_eq!(ambiguity("/x//../login"), Some(AmbiguousPath::DotsAndEmptySegments));
/// assert_eq!(ambiguity("/x/..%2flogin"), Some(AmbiguousPath::EscapedSlash));
/// ```
pub fn ambiguity(path: &str) -> Option<AmbiguousPath> {
    if is_plain(path) {
        return None;
    }
    let path = without_query(path).as_bytes();
    let mut segments =
        path.strip_prefix(b"/").unwrap_or(path).split(|byte| *byte == b'/').peekable();
    let (mut has_dots, mut has_empty) = (false, false);
    while let Some(segment) = segments.next() {
        if let Some(found) = ambiguous_byte(segment) {
            return Some(found);
        }
        match dots(segment) {
            DotSegment::None => {}
            DotSegment::Clear => has_dots = true,
            DotSegment::Escaped => return Some(AmbiguousPath::EscapedDots),
            DotSegment::WithParameter => return Some(AmbiguousPath::DotsWithParameter),
        }
        has_empty |= segment.is_empty() && segments.peek().is_some();
    }
    (has_dots && has_empty).then_some(AmbiguousPath::DotsAndEmptySegments)
}

/// Finds the first byte of a segment, escaped or not, that upstreams treat differently.
fn ambiguous_byte(segment: &[u8]) -> Option<AmbiguousPath> {
    let mut rest = segment;
    let mut last_four = 0_u32;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let is_escape = byte == b'%';
        let byte = if is_escape {
            let Some(byte) = escaped(after) else { return Some(AmbiguousPath::InvalidEscape) };
            rest = &after[2..];
            byte
        } else {
            byte
        };
        last_four = last_four << 8 | u32::from(byte);
        match byte {
            b'/' if is_escape => return Some(AmbiguousPath::EscapedSlash),
            b'\\' => return Some(AmbiguousPath::Backslash),
            _ if is_control(byte) => return Some(AmbiguousPath::Control),
            _ if overlong(last_four).is_some() => return Some(AmbiguousPath::Overlong),
            _ => {}
        }
    }
    None
}

/// Decodes the last bytes as an overlong dot, slash or backslash. Also returns the number of bytes.
pub(super) fn overlong(last_four: u32) -> Option<(u8, usize)> {
    let (low, bytes) = match last_four {
        0xF080_80AE | 0xF080_80AF | 0xF080_819C => (last_four & 0xff, 4),
        _ => match last_four & 0xff_ffff {
            0xE0_80AE | 0xE0_80AF | 0xE0_819C => (last_four & 0xff, 3),
            _ => match last_four & 0xffff {
                0xC0AE | 0xC0AF | 0xC19C => (last_four & 0xff, 2),
                _ => return None,
            },
        },
    };
    let byte = match low {
        0xAE => b'.',
        0xAF => b'/',
        _ => b'\\',
    };
    Some((byte, bytes))
}

/// Whether a segment is a dot segment.
#[derive(Clone, Copy)]
enum DotSegment {
    /// Not a dot segment.
    None,
    /// A dot segment.
    Clear,
    /// A dot segment once its escapes are decoded.
    Escaped,
    /// A dot segment for servers that cut a segment at `;`.
    WithParameter,
}

fn dots(segment: &[u8]) -> DotSegment {
    let (mut rest, mut count, mut has_escape) = (segment, 0, false);
    loop {
        rest = match rest {
            [b'.', after @ ..] => after,
            [b'%', b'2', b'e' | b'E', after @ ..] => {
                has_escape = true;
                after
            }
            _ => break,
        };
        count += 1;
    }
    match (count, rest) {
        (1 | 2, []) if has_escape => DotSegment::Escaped,
        (1 | 2, []) => DotSegment::Clear,
        (1 | 2, [b';', ..] | [b'%', b'3', b'b' | b'B', ..]) => DotSegment::WithParameter,
        _ => DotSegment::None,
    }
}

/// Returns all readings of a path with more than one, in normal form. The first is that of
/// [`normalise`]. Returns nothing for a path with one reading.
///
/// ```
/// use tollgate_policy::path::readings;
///
/// assert_eq!(readings("/a/b")?, [""; 0]);
/// assert_eq!(readings("/login;x=1")?, ["/login;x=1", "/login"]);
/// assert_eq!(readings("/login.")?, ["/login.", "/login"]);
/// assert_eq!(readings("//h/login")?, ["/h/login", "/login"]);
/// assert!(readings("/x//../login")?.iter().any(|reading| reading == "/login"));
/// # Ok::<(), tollgate_policy::path::AmbiguousPath>(())
/// ```
///
/// # Errors
///
/// Fails if there are too many readings. Also fails for an ambiguous path that is longer than 4096
/// bytes or has an escape such as `%u006C`.
pub fn readings(path: &str) -> Result<Vec<String>, AmbiguousPath> {
    if is_plain(path) {
        return Ok(Vec::new());
    }
    let is_ambiguous = ambiguity(path).is_some();
    let path_alone = without_query(path);
    if is_ambiguous && path_alone.len() > AMBIGUOUS_BYTES_MAX {
        return Err(AmbiguousPath::TooLong);
    }
    if is_ambiguous && has_unicode_escape(path_alone) {
        return Err(AmbiguousPath::UnicodeEscape);
    }
    let has_several = is_ambiguous
        || may_end_in_dots(path_alone)
        || path_alone.starts_with("//")
        || path_alone.contains(';')
        || has_escaped_pchar(path_alone);
    if !has_several {
        return Ok(Vec::new());
    }
    let bytes = super::server_model::path_bytes(path_alone.as_bytes());
    let mut found = vec![normalise(path).into_owned()];
    let mut seen = Vec::new();
    for server in super::server_model::servers(&bytes, is_ambiguous) {
        let decoded = server.decode(&bytes);
        if seen.contains(&decoded) {
            continue;
        }
        for order in super::server_model::orders(is_ambiguous) {
            for part in [Some(&*decoded), super::server_model::without_authority(&decoded)]
                .into_iter()
                .flatten()
            {
                add_reading(&mut found, &order.read(part), path_alone);
                if let Some(part) = super::server_model::without_dots_at_end(part) {
                    add_new(&mut found, &order.read(part));
                }
            }
            if found.len() > READINGS_MAX {
                return Err(AmbiguousPath::TooManyReadings);
            }
        }
        seen.push(decoded);
    }
    if found.len() == 1 {
        found.clear();
    }
    Ok(found)
}

/// Whether the path may end in a dot or a space, escaped or not.
fn may_end_in_dots(path: &str) -> bool {
    let is_escape = |end: &[u8]| end[0] == b'%';
    path.ends_with(['.', ' '])
        || path.as_bytes().last_chunk::<3>().is_some_and(|end| is_escape(end))
}

/// Adds a reading of the path unless it is known. Also adds the reading without a trailing slash:
/// Caddy and Python serve `/login` for `/login/.`, nginx serves `/login/`.
fn add_reading(found: &mut Vec<String>, reading: &str, path: &str) {
    let shorter = reading.strip_suffix('/').filter(|_| !path.ends_with('/'));
    let shorter = shorter.filter(|shorter| !shorter.is_empty());
    for reading in shorter.into_iter().chain([reading]) {
        add_new(found, reading);
    }
}

fn add_new(found: &mut Vec<String>, reading: &str) {
    if !found.iter().any(|known| known == reading) {
        found.push(reading.to_owned());
    }
}

/// Whether the path has an unneeded escape that [`normalise`] does not decode.
fn has_escaped_pchar(path: &str) -> bool {
    let escapes = path.as_bytes().split(|byte| *byte == b'%').skip(1).filter_map(escaped);
    escapes.into_iter().any(|byte| is_pchar(byte) && !is_unreserved(byte))
}

/// Whether the path has a `%u` with four hexadecimal digits.
fn has_unicode_escape(path: &str) -> bool {
    path.as_bytes().split(|byte| *byte == b'%').skip(1).any(|after| match after {
        [b'u' | b'U', a, b, c, d, ..] => [a, b, c, d].into_iter().all(u8::is_ascii_hexdigit),
        _ => false,
    })
}

pub(super) const fn is_control(byte: u8) -> bool {
    byte < b' ' || byte == 0x7f
}
