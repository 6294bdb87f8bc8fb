//! Paths that servers read in more than one way.
//!
//! A client can evade a limit that sees one reading when the service uses another. Two kinds of
//! path have several readings:
//!
//! * An [ambiguous](ambiguity) path, which few clients need. It is refused, unless the listener
//!   says `ambiguous_paths: match-all`. Then the limits of all its readings apply.
//! * An ordinary path with `;`, with an unneeded escape (`%40` for `@`) or with a dot segment at
//!   its end. The limits of all its readings always apply.

use super::{
    escaped, is_clear, is_pchar, is_plain, is_unreserved, normalise, push_escape, without_query,
};
use std::fmt;

/// Why servers read a path in more than one way.
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
    /// Dot segments and empty segments: their order decides.
    DotsAndEmptySegments,
    /// A dot, a slash or a backslash in more bytes of UTF-8 than it needs.
    Overlong,
    /// More readings than `ambiguous_paths: match-all` matches.
    TooManyReadings,
}

/// The most readings of one path. Each costs a search through the limits, and useful paths have
/// fewer.
const READINGS_MAX: usize = 16;

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
            Self::TooManyReadings => "too many readings",
        })
    }
}

impl std::error::Error for AmbiguousPath {}

/// Why servers read the path in more than one way, if they do. The query does not count.
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
        if let Some(found) = odd_byte(segment) {
            return Some(found);
        }
        match dots(segment) {
            Dots::None => {}
            Dots::Clear => has_dots = true,
            Dots::Escaped => return Some(AmbiguousPath::EscapedDots),
            Dots::WithParameter => return Some(AmbiguousPath::DotsWithParameter),
        }
        has_empty |= segment.is_empty() && segments.peek().is_some();
    }
    (has_dots && has_empty).then_some(AmbiguousPath::DotsAndEmptySegments)
}

/// The first byte of a segment, escaped or not, that servers treat differently.
fn odd_byte(segment: &[u8]) -> Option<AmbiguousPath> {
    let mut rest = segment;
    let mut last_four = 0_u32;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let is_escape = byte == b'%';
        let byte = match is_escape {
            true => {
                let Some(byte) = escaped(after) else { return Some(AmbiguousPath::InvalidEscape) };
                rest = &after[2..];
                byte
            }
            false => byte,
        };
        last_four = last_four << 8 | u32::from(byte);
        match byte {
            b'/' if is_escape => return Some(AmbiguousPath::EscapedSlash),
            b'\\' => return Some(AmbiguousPath::Backslash),
            0..=0x1f | 0x7f => return Some(AmbiguousPath::Control),
            _ if overlong(last_four).is_some() => return Some(AmbiguousPath::Overlong),
            _ => {}
        }
    }
    None
}

/// The dot, slash or backslash that the last bytes stand for in some decoders, and how many bytes
/// that takes.
fn overlong(last_four: u32) -> Option<(u8, usize)> {
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

/// The dots at the start of a segment.
#[derive(Clone, Copy)]
enum Dots {
    /// Part of a name.
    None,
    /// A dot segment.
    Clear,
    /// A dot segment once its escapes are decoded.
    Escaped,
    /// A dot segment for servers that cut a segment at `;`.
    WithParameter,
}

fn dots(segment: &[u8]) -> Dots {
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
        (1 | 2, []) if has_escape => Dots::Escaped,
        (1 | 2, []) => Dots::Clear,
        (1 | 2, [b';', ..] | [b'%', b'3', b'b' | b'B', ..]) => Dots::WithParameter,
        _ => Dots::None,
    }
}

/// Every reading of a path that has more than one, in the spelling that limits are matched with.
/// The first is [`normalise`]'s. A path with one reading has none here.
///
/// ```
/// use tollgate_policy::path::readings;
///
/// assert_eq!(readings("/a/b")?, [""; 0]);
/// assert_eq!(readings("/login;x=1")?, ["/login;x=1", "/login"]);
/// assert!(readings("/x//../login")?.iter().any(|reading| reading == "/login"));
/// # Ok::<(), tollgate_policy::path::AmbiguousPath>(())
/// ```
///
/// # Errors
///
/// When there are too many of them.
pub fn readings(path: &str) -> Result<Vec<String>, AmbiguousPath> {
    if is_plain(path) {
        return Ok(Vec::new());
    }
    let is_ambiguous = ambiguity(path).is_some();
    let path_alone = without_query(path);
    let ends_in_dots = path_alone.ends_with("/.") || path_alone.ends_with("/..");
    let has_several =
        is_ambiguous || ends_in_dots || path_alone.contains(';') || has_escaped_pchar(path_alone);
    if !has_several {
        return Ok(Vec::new());
    }
    let tokens = tokens(path_alone.as_bytes());
    let mut found = vec![normalise(path).into_owned()];
    for server in servers(&tokens, is_ambiguous) {
        let reading = server.read(&tokens);
        // Caddy and Python serve `/login` for `/login/.`, nginx serves `/login/`.
        let shorter = match path_alone.ends_with('/') {
            false => reading.strip_suffix('/').filter(|shorter| !shorter.is_empty()),
            true => None,
        };
        for reading in shorter.into_iter().chain([&*reading]) {
            if !found.iter().any(|known| known == reading) {
                found.push(reading.to_owned());
            }
        }
        if found.len() > READINGS_MAX {
            return Err(AmbiguousPath::TooManyReadings);
        }
    }
    if found.len() == 1 {
        found.clear();
    }
    Ok(found)
}

/// Whether the path has an escape that could stand in clear and is not decoded by [`normalise`].
fn has_escaped_pchar(path: &str) -> bool {
    let escapes = path.as_bytes().split(|byte| *byte == b'%').skip(1).filter_map(escaped);
    escapes.into_iter().any(|byte| is_pchar(byte) && !is_unreserved(byte))
}

/// How one server reads a path.
#[derive(Clone, Copy)]
struct Server {
    decodes: Decodes,
    /// Cuts segments at `;`.
    cuts_parameters: bool,
    backslashes: Backslashes,
    order: Order,
    controls: Controls,
}

/// Which escapes a server decodes before it looks for dot segments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decodes {
    Nothing,
    Unreserved,
    Pchar,
    Everything,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    SlashesFirst,
    DotsFirst,
    /// Neither is done: the service routes by the path as it was sent.
    Neither,
}

/// Which backslashes a server takes for slashes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Backslashes {
    None,
    Unescaped,
    All,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Controls {
    Kept,
    Removed,
    EndThePath,
}

/// The servers whose readings differ: few for an ordinary path, more for an ambiguous one.
fn servers(tokens: &[Token], is_ambiguous: bool) -> Vec<Server> {
    use {Backslashes as B, Controls as C, Decodes as D, Order as O};
    let has = |is_it: fn(u8) -> bool| tokens.iter().any(|token| is_it(token.byte()));
    // Overlong bytes may stand for a backslash.
    let has_backslash = is_ambiguous && has(|byte| byte == b'\\' || byte == 0x9c);
    let has_control = is_ambiguous && has(is_control);
    let backslashes: &[B] = match has_backslash {
        true => &[B::None, B::Unescaped, B::All],
        false => &[B::None],
    };
    let parameters: &[bool] = if has(|byte| byte == b';') { &[false, true] } else { &[false] };
    let controls: &[C] = match has_control {
        true => &[C::Kept, C::Removed, C::EndThePath],
        false => &[C::Kept],
    };
    let (decodings, orders): (&[D], &[O]) = match is_ambiguous {
        false => (&[D::Unreserved, D::Pchar], &[O::SlashesFirst]),
        true => (
            &[D::Unreserved, D::Everything, D::Pchar, D::Nothing],
            &[O::SlashesFirst, O::DotsFirst, O::Neither],
        ),
    };
    let mut servers = Vec::new();
    for &decodes in decodings {
        for &order in orders {
            for &cuts_parameters in parameters {
                for &backslashes in backslashes {
                    servers.extend(controls.iter().map(|&controls| Server {
                        decodes,
                        cuts_parameters,
                        backslashes,
                        order,
                        controls,
                    }));
                }
            }
        }
    }
    servers
}

const fn is_control(byte: u8) -> bool {
    byte < b' ' || byte == 0x7f
}

/// One character of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Clear(u8),
    Escaped(u8),
}

impl Token {
    const fn byte(self) -> u8 {
        match self {
            Self::Clear(byte) | Self::Escaped(byte) => byte,
        }
    }
}

fn tokens(path: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        tokens.push(match escaped(after).filter(|_| byte == b'%') {
            Some(byte) => {
                rest = &after[2..];
                Token::Escaped(byte)
            }
            None => Token::Clear(byte),
        });
    }
    tokens
}

impl Server {
    fn read(&self, tokens: &[Token]) -> String {
        let tokens = self.decode(tokens);
        let is_absolute = tokens.first() == Some(&Token::Clear(b'/'));
        let segments: Vec<&[Token]> = tokens[usize::from(is_absolute)..]
            .split(|token| *token == Token::Clear(b'/'))
            .collect();
        let mut out = String::new();
        if is_absolute {
            out.push('/');
        }
        let kept = self.resolve(&segments);
        for (place, segment) in kept.iter().enumerate() {
            if place > 0 {
                out.push('/');
            }
            for token in *segment {
                match *token {
                    Token::Clear(byte) if is_clear(byte) || byte == b'%' => {
                        out.push(char::from(byte))
                    }
                    Token::Clear(byte) | Token::Escaped(byte) => push_escape(&mut out, byte),
                }
            }
        }
        if out.is_empty() {
            out.push('/');
        }
        out
    }

    fn decode(&self, tokens: &[Token]) -> Vec<Token> {
        let mut out = Vec::with_capacity(tokens.len());
        let (mut is_parameter, mut last_four) = (false, 0_u32);
        for &token in tokens {
            is_parameter = match token {
                Token::Clear(b'/') => false,
                Token::Clear(b'\\') if self.backslashes != Backslashes::None => false,
                Token::Clear(b';') if self.cuts_parameters => true,
                _ => is_parameter,
            };
            let byte = token.byte();
            if is_control(byte) {
                match self.controls {
                    Controls::Kept => {}
                    Controls::Removed => continue,
                    Controls::EndThePath => break,
                }
            }
            if is_parameter {
                continue;
            }
            if token == Token::Clear(b'\\') && self.backslashes != Backslashes::None {
                out.push(Token::Clear(b'/'));
                continue;
            }
            let is_decoded = match self.decodes {
                Decodes::Nothing => false,
                Decodes::Unreserved => is_unreserved(byte),
                Decodes::Pchar => is_pchar(byte),
                // A decoded `%` stays apart from one that is no escape at all.
                Decodes::Everything => byte != b'%',
            };
            out.push(if is_decoded { Token::Clear(byte) } else { token });
            last_four = last_four << 8 | u32::from(byte);
            if self.decodes == Decodes::Everything
                && let Some((character, bytes)) = overlong(last_four)
            {
                out.truncate(out.len().saturating_sub(bytes));
                out.push(Token::Clear(character));
            }
        }
        if self.backslashes == Backslashes::All {
            for token in &mut out {
                if token.byte() == b'\\' {
                    *token = Token::Clear(b'/');
                }
            }
        }
        out
    }

    /// The segments that are left; the last is empty where the path ends in a slash.
    fn resolve<'t>(&self, segments: &[&'t [Token]]) -> Vec<&'t [Token]> {
        const DOT: Token = Token::Clear(b'.');
        let last = segments.len().saturating_sub(1);
        let mut kept: Vec<&[Token]> = Vec::with_capacity(segments.len());
        for (place, &segment) in segments.iter().enumerate() {
            let dots = match segment {
                _ if self.order == Order::Neither => 0,
                [DOT] => 1,
                [DOT, DOT] => 2,
                [] if self.order == Order::SlashesFirst && place < last => continue,
                _ => 0,
            };
            match dots {
                0 => kept.push(segment),
                1 => {}
                _ => drop(kept.pop()),
            }
            if dots > 0 && place == last {
                kept.push(&[]);
            }
        }
        if self.order == Order::DotsFirst {
            let end = kept.len().saturating_sub(1);
            let mut place = 0;
            kept.retain(|segment| {
                place += 1;
                !segment.is_empty() || place > end
            });
        }
        kept
    }
}
