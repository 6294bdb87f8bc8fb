//! Patterns with wildcards, matched in one pass over the text.
//!
//! In a path `*` is any run of characters within a segment and `?` one character of it; `**` is any run across
//! segments. A segment that is just `**` stands for any number of segments, none included: `/api/**` also
//! matches `/api`, and `/a/**/b` also `/a/b`. Anywhere else `*` is any run and nothing else is special.

#[cfg(test)]
pub(crate) mod tests;

/// Set words on the stack while matching, one bit for each token; this bounds the tokens of one pattern.
const WORDS: usize = 16;

/// How many bytes a pattern may have between its first and its last wildcard.
pub(crate) const TOKENS_MAX: usize = WORDS * 64 - 1;

/// A compiled pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Glob {
    /// No wildcard.
    Exact(Box<str>),
    /// Text before the first wildcard, the wildcards with what lies between them, and text after the last.
    Wild { head: Box<str>, middle: Middle, tail: Box<str> },
}

/// The usual shapes of what lies between head and tail need no machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Middle {
    /// Anything.
    Any,
    /// Anything without a slash.
    InSegment,
    /// Nothing, or a slash and anything: the `/**` of `/api/**`.
    Below,
    /// Decided by following all ways at once.
    Tokens(Box<[Token]>),
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
    /// A slash that leads into the `Any` behind it, or nothing, with that `Any` left out too.
    Enter,
}

/// More than [`TOKENS_MAX`] bytes between the first and the last wildcard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Glob {
    /// A path glob; the pattern is in the one spelling of paths already.
    pub(crate) fn path(pattern: &str) -> Result<Self, TooLong> {
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

    /// A glob for any other attribute.
    pub(crate) fn text(pattern: &str) -> Result<Self, TooLong> {
        let token = |byte| if byte == b'*' { Token::Any } else { Token::Byte(byte) };
        let tokens: Vec<_> = pattern.bytes().map(token).collect();
        Self::compile(pattern, &tokens)
    }

    fn compile(pattern: &str, tokens: &[Token]) -> Result<Self, TooLong> {
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
            tokens if tokens.len() > TOKENS_MAX => return Err(TooLong),
            tokens => Middle::Tokens(tokens.into()),
        };
        // Wildcards are ASCII, so both cuts fall between characters: every token before the first wildcard
        // and after the last one is one byte of the pattern.
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
            Middle::Tokens(tokens) => follow(tokens, between),
        })
    }

    /// The whole segments with which every matching path begins, if there are any.
    pub(crate) fn anchor(&self) -> Option<&str> {
        match self {
            Self::Exact(path) => Some(path),
            Self::Wild { head, middle: Middle::Below, .. } => Some(head),
            Self::Wild { head, middle: Middle::Tokens(tokens), .. }
                if tokens.first() == Some(&Token::Enter) =>
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

/// Follows all ways through the tokens at once, one bit for each place, so the work is at most the product of
/// both lengths whatever the pattern and the text are.
fn follow(tokens: &[Token], text: &[u8]) -> bool {
    let words = tokens.len() / 64 + 1;
    let mut places = Places([0; WORDS]);
    places.reach(tokens, 0);
    for &byte in text {
        let mut next = Places([0; WORDS]);
        let mut is_dead = true;
        for word in 0..words {
            let mut bits = places.0[word];
            while bits != 0 {
                let place = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let reached = match tokens.get(place) {
                    Some(Token::Byte(expected)) if *expected == byte => place + 1,
                    Some(Token::One) if byte != b'/' => place + 1,
                    Some(Token::InSegment) if byte != b'/' => place,
                    Some(Token::Any) => place,
                    Some(Token::Enter) if byte == b'/' => place + 1,
                    _ => continue,
                };
                next.reach(tokens, reached);
                is_dead = false;
            }
        }
        if is_dead {
            return false;
        }
        places = next;
    }
    places.contains(tokens.len())
}

struct Places([u64; WORDS]);

impl Places {
    /// Adds a place and those that lead on from it without a byte of text.
    fn reach(&mut self, tokens: &[Token], mut place: usize) {
        while !self.contains(place) {
            self.0[place / 64] |= 1 << (place % 64);
            place += match tokens.get(place) {
                Some(Token::InSegment | Token::Any) => 1,
                Some(Token::Enter) => 2,
                _ => return,
            };
        }
    }

    fn contains(&self, place: usize) -> bool {
        self.0[place / 64] >> (place % 64) & 1 == 1
    }
}
