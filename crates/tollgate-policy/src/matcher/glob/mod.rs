//! Wildcard patterns, matched in one pass over the text.
//!
//! In a path, `*` is any run of characters within a segment, and `?` is one character of a segment.
//! `**` is any run across segments. A segment that is just `**` stands for any number of segments,
//! including none: `/api/**` also matches `/api`, and `/a/**/b` also matches `/a/b`. In other
//! attributes, `*` is any run, and no other character is special.

mod pieces;
#[cfg(test)]
pub(crate) mod tests;

use pieces::Pieces;

/// The most bytes between the first and the last wildcard of a pattern.
pub(crate) const TOKENS_MAX: usize = pieces::WORDS_MAX * 64 - 1;

/// A compiled pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Glob {
    /// A pattern without wildcards.
    Exact(Box<str>),
    /// The text before the first wildcard, everything from the first to the last wildcard, and the
    /// text after the last.
    Wild { head: Box<str>, middle: Middle, tail: Box<str> },
}

/// The pattern between head and tail. The usual forms need no search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Middle {
    /// Any text.
    Any,
    /// Any text without a slash.
    InSegment,
    /// Nothing, or a slash and any text: the `/**` of `/api/**`.
    Below,
    /// Any other combination of wildcards and text.
    Pieces(Box<Pieces>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Byte(u8),
    /// One byte, not a slash.
    One,
    /// Any run without a slash.
    InSegment,
    /// Any run.
    Any,
    /// The slash before `**`: it matches a slash, or nothing together with the `Any` after it.
    Enter,
}

/// Whether all of `text` matches a pattern in which `*` is any run of characters.
pub fn wildcard_matches(pattern: &str, text: &str) -> bool {
    Glob::text(pattern).is_ok_and(|glob| glob.matches(text))
}

/// The error for a pattern with more than [`TOKENS_MAX`] bytes between its first and last wildcard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PatternTooLong;

impl Glob {
    /// Compiles a path pattern, which must be in normal form.
    pub(crate) fn path(pattern: &str) -> Result<Self, PatternTooLong> {
        let mut tokens = Vec::new();
        let mut rest = pattern.as_bytes();
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match byte {
                b'?' => tokens.push(Token::One),
                b'*' if after.first() != Some(&b'*') => tokens.push(Token::InSegment),
                b'*' => {
                    while let [b'*', after @ ..] = rest {
                        rest = after;
                    }
                    let ends_segment = matches!(rest, [] | [b'/', ..]);
                    if ends_segment && tokens.last() == Some(&Token::Byte(b'/')) {
                        tokens.pop();
                        tokens.push(Token::Enter);
                    }
                    tokens.push(Token::Any);
                }
                _ => tokens.push(Token::Byte(byte)),
            }
        }
        Self::compile(pattern, &tokens)
    }

    /// Compiles a pattern for any other attribute.
    pub(crate) fn text(pattern: &str) -> Result<Self, PatternTooLong> {
        let token = |byte| if byte == b'*' { Token::Any } else { Token::Byte(byte) };
        let tokens: Vec<_> = pattern.bytes().map(token).collect();
        Self::compile(pattern, &tokens)
    }

    fn compile(pattern: &str, tokens: &[Token]) -> Result<Self, PatternTooLong> {
        let is_wild = |token: &Token| !matches!(token, Token::Byte(_));
        let (Some(first), Some(last)) =
            (tokens.iter().position(is_wild), tokens.iter().rposition(is_wild))
        else {
            return Ok(Self::Exact(pattern.into()));
        };
        let middle = match &tokens[first..=last] {
            [Token::Any] => Middle::Any,
            [Token::InSegment] => Middle::InSegment,
            [Token::Enter, Token::Any] => Middle::Below,
            tokens if tokens.len() > TOKENS_MAX => return Err(PatternTooLong),
            tokens => Middle::Pieces(Box::new(Pieces::new(tokens))),
        };
        // Wildcards are ASCII, so both cuts fall between characters. Every token before the first
        // wildcard and after the last is one byte of the pattern.
        let head = pattern.get(..first).unwrap_or_default();
        let tail = pattern.get(pattern.len() - (tokens.len() - 1 - last)..).unwrap_or_default();
        Ok(Self::Wild { head: head.into(), middle, tail: tail.into() })
    }

    /// Whether the whole text matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let (head, middle, tail) = match self {
            Self::Exact(exact) => return **exact == *text,
            Self::Wild { head, middle, tail } => (head, middle, tail),
        };
        let (head, tail) = (head.as_bytes(), tail.as_bytes());
        let between = text.as_bytes().strip_prefix(head).and_then(|rest| rest.strip_suffix(tail));
        between.is_some_and(|between| match middle {
            Middle::Any => true,
            Middle::InSegment => !between.contains(&b'/'),
            Middle::Below => matches!(between, [] | [b'/', ..]),
            Middle::Pieces(pieces) => pieces.matches(between),
        })
    }

    /// The whole segments that every matching path begins with, if there are any.
    pub(crate) fn anchor(&self) -> Option<&str> {
        match self {
            Self::Exact(path) => Some(path),
            Self::Wild { head, middle: Middle::Below, .. } => Some(head),
            Self::Wild { head, middle: Middle::Pieces(pieces), .. }
                if pieces.begins_with_slash() =>
            {
                Some(head)
            }
            Self::Wild { head, .. } => head.rfind('/').map(|slash| &head[..slash]),
        }
    }

    /// Whether every path that begins with the anchor's segments matches.
    pub(crate) fn is_whole_subtree(&self) -> bool {
        match self {
            Self::Exact(_) => false,
            Self::Wild { head, middle: Middle::Any, tail } => head.is_empty() && tail.is_empty(),
            Self::Wild { middle, tail, .. } => *middle == Middle::Below && tail.is_empty(),
        }
    }
}
