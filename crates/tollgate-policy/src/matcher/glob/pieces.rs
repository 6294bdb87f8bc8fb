//! Matches a pattern with several wildcards in one pass.
//!
//! A run across segments (`**`, or `*` outside paths) can absorb any text. So the pieces between
//! runs are found one after the other, each at its earliest end, since a later end never helps
//! later pieces. A piece without wildcards is found by substring search. Any other piece is found
//! by a bit-parallel automaton with one bit per byte of the piece.

use super::Token;
use memchr::memmem;

/// The number of 64-bit words that the longest piece needs.
pub(super) const WORDS_MAX: usize = 16;

/// The pieces of a pattern, and the runs between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pieces {
    /// The pieces that a run follows. The first one must be at the start of the text.
    before_runs: Box<[(Piece, WildcardRun)]>,
    /// The piece after the last run, at the end of the text.
    last: Piece,
}

/// A wildcard that may cross segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WildcardRun {
    /// Any text.
    Any,
    /// Nothing, or a slash and any text. In the pattern, its end or another slash follows.
    Below,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(Literal),
    Wild(Automaton),
}

/// A piece without wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Literal {
    /// The text and a slash. The slash is part of the search if [`WildcardRun::Below`] follows.
    with_slash: Box<[u8]>,
}

/// A piece with `*` or `?`. State `n` means that its first `n` bytes have matched.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Automaton {
    /// The class of each byte; bytes that the piece does not distinguish share a class.
    classes: Box<[u8; 256]>,
    /// For each class, the states that a byte of the class advances, as `words` words.
    masks: Box<[u64]>,
    /// The states that stay active on any byte but a slash, because `*` follows them.
    loops: Box<[u64]>,
    words: usize,
    /// The accepting state.
    end: usize,
}

/// The part of the text that a piece must match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Anchor {
    /// The start of the text, up to the earliest position where the run can begin.
    Start(WildcardRun),
    /// Any part of the text, up to the earliest position where the run can begin.
    Anywhere(WildcardRun),
    /// The end of the text.
    End,
    /// The whole text.
    Whole,
}

impl Pieces {
    pub(super) fn new(tokens: &[Token]) -> Self {
        let mut before_runs: Vec<(Piece, WildcardRun)> = Vec::new();
        let mut piece = Vec::new();
        let mut tokens = tokens.iter();
        while let Some(token) = tokens.next() {
            let run = match token {
                Token::Any => WildcardRun::Any,
                Token::Enter => {
                    // Skips the `Any` that follows `Enter`.
                    tokens.next();
                    WildcardRun::Below
                }
                Token::Byte(_) | Token::One | Token::InSegment => {
                    piece.push(*token);
                    continue;
                }
            };
            match before_runs.last_mut().filter(|_| piece.is_empty()) {
                // Consecutive runs merge: `/**/**` is `/**`, and `Any` beside another run is `Any`.
                Some((_, last)) if run == WildcardRun::Any => *last = WildcardRun::Any,
                Some(_) => {}
                None => before_runs.push((Piece::new(&piece), run)),
            }
            piece.clear();
        }
        Self { before_runs: before_runs.into(), last: Piece::new(&piece) }
    }

    pub(super) fn matches(&self, text: &[u8]) -> bool {
        let Some(((first, run), inner)) = self.before_runs.split_first() else {
            return self.last.end_in(text, Anchor::Whole).is_some();
        };
        let Some(mut at) = first.end_in(text, Anchor::Start(*run)) else { return false };
        for (piece, run) in inner {
            match piece.end_in(&text[at..], Anchor::Anywhere(*run)) {
                Some(end) => at += end,
                None => return false,
            }
        }
        self.last.end_in(&text[at..], Anchor::End).is_some()
    }

    /// Whether every nonempty match begins with a slash.
    pub(super) fn begins_with_slash(&self) -> bool {
        let empty =
            |piece: &Piece| matches!(piece, Piece::Literal(literal) if literal.text().is_empty());
        self.before_runs
            .first()
            .is_some_and(|(first, run)| empty(first) && *run == WildcardRun::Below)
    }
}

impl WildcardRun {
    /// Whether the run can begin at the start of `rest`.
    fn can_begin(self, rest: &[u8]) -> bool {
        self == Self::Any || matches!(rest, [] | [b'/', ..])
    }
}

impl Piece {
    fn new(tokens: &[Token]) -> Self {
        let byte = |token: &Token| match token {
            Token::Byte(byte) => Some(*byte),
            _ => None,
        };
        match tokens.iter().map(byte).chain([Some(b'/')]).collect() {
            Some(with_slash) => Self::Literal(Literal { with_slash }),
            None => Self::Wild(Automaton::new(tokens)),
        }
    }

    /// Returns the end of the piece in the text; for `End` and `Whole`, the length of the text.
    fn end_in(&self, text: &[u8], anchor: Anchor) -> Option<usize> {
        match self {
            Self::Literal(literal) => literal.end_in(text, anchor),
            Self::Wild(automaton) => automaton.end_in(text, anchor),
        }
    }
}

impl Literal {
    fn text(&self) -> &[u8] {
        &self.with_slash[..self.with_slash.len() - 1]
    }

    fn end_in(&self, text: &[u8], anchor: Anchor) -> Option<usize> {
        let literal = self.text();
        let end = literal.len();
        steps(end);
        match anchor {
            Anchor::Start(run) => {
                (text.starts_with(literal) && run.can_begin(&text[end..])).then_some(end)
            }
            Anchor::End => text.ends_with(literal).then_some(text.len()),
            Anchor::Whole => (text == literal).then_some(end),
            Anchor::Anywhere(WildcardRun::Any) => find(text, literal).map(|at| at + end),
            Anchor::Anywhere(WildcardRun::Below) => find(text, &self.with_slash)
                .map(|at| at + end)
                .or_else(|| text.ends_with(literal).then_some(text.len())),
        }
    }
}

fn find(text: &[u8], literal: &[u8]) -> Option<usize> {
    let found = memmem::find(text, literal);
    steps(found.map_or(text.len(), |at| at + literal.len()));
    found
}

impl Automaton {
    fn new(tokens: &[Token]) -> Self {
        let end = tokens.iter().filter(|token| **token != Token::InSegment).count();
        let words = end / 64 + 1;
        let mut classes = Box::new([0_u8; 256]);
        // Class 0 has all bytes that the piece does not name. Class 1 is the slash, which `?` never
        // matches.
        classes[usize::from(b'/')] = 1;
        let mut count = 2_u8;
        for token in tokens {
            if let Token::Byte(byte) = token
                && classes[usize::from(*byte)] == 0
            {
                classes[usize::from(*byte)] = count;
                // Thirteen byte values never occur in UTF-8, so 256 class numbers are enough.
                count = count.saturating_add(1);
            }
        }
        let mut masks = vec![0; usize::from(count) * words];
        let mut loops = vec![0; words];
        let mut state = 0;
        for token in tokens {
            let (word, bit) = (state / 64, 1 << (state % 64));
            match token {
                Token::Byte(byte) => {
                    masks[usize::from(classes[usize::from(*byte)]) * words + word] |= bit;
                    state += 1;
                }
                Token::InSegment => loops[word] |= bit,
                Token::One | Token::Any | Token::Enter => {
                    let but_slash = (0..usize::from(count)).filter(|class| *class != 1);
                    but_slash.for_each(|class| masks[class * words + word] |= bit);
                    state += 1;
                }
            }
        }
        Self { classes, masks: masks.into(), loops: loops.into(), words, end }
    }

    fn end_in(&self, text: &[u8], anchor: Anchor) -> Option<usize> {
        let (run, is_anywhere) = match anchor {
            Anchor::Start(run) => (Some(run), false),
            Anchor::Anywhere(run) => (Some(run), true),
            Anchor::End => (None, true),
            Anchor::Whole => (None, false),
        };
        let mut states = [0_u64; WORDS_MAX];
        let states = &mut states[..self.words];
        states[0] = 1;
        let is_found = |states: &[u64]| states[self.end / 64] >> (self.end % 64) & 1 == 1;
        let can_end = |at: usize| match run {
            Some(run) => run.can_begin(&text[at..]),
            None => at == text.len(),
        };
        for (at, &byte) in text.iter().enumerate() {
            if is_found(states) && can_end(at) {
                return Some(at);
            }
            steps(self.words);
            let class = usize::from(self.classes[usize::from(byte)]);
            let masks = &self.masks[class * self.words..][..self.words];
            let mut carry = u64::from(is_anywhere);
            let mut left = 0;
            for (state, (mask, loops)) in states.iter_mut().zip(masks.iter().zip(&*self.loops)) {
                let moved = *state & mask;
                let kept = if byte == b'/' { 0 } else { *state & loops };
                *state = (moved << 1) | carry | kept;
                carry = moved >> 63;
                left |= *state;
            }
            if left == 0 {
                return None;
            }
        }
        (is_found(states) && can_end(text.len())).then_some(text.len())
    }
}

/// Counts examined bytes, for the test that bounds them by the length of the text.
#[cfg(not(test))]
#[inline(always)]
const fn steps(_: usize) {}

#[cfg(test)]
pub(super) use counted::steps;

#[cfg(test)]
pub(super) mod counted {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn steps(count: usize) {
        STEPS.with(|steps| steps.set(steps.get() + count));
    }

    /// Returns the count and resets it.
    pub(crate) fn take() -> usize {
        STEPS.with(|steps| steps.replace(0))
    }
}
