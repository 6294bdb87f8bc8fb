//! JSON reader: finds the number at one path, byte by byte.

mod member_name;

use member_name::MemberName;
use std::ops::Range;

/// Follows a path of names through objects. What is not on the path is skipped by counting
/// brackets, so the depth of a value costs nothing. Values that follow each other, as in lines of
/// JSON, are read one after the other.
#[derive(Debug)]
pub(crate) struct JsonPathReader {
    /// The names, with dots between them.
    path: Box<str>,
    /// How many names the path has.
    length: usize,
    /// Objects entered along the path.
    on_path: usize,
    /// Where the name that is wanted in the last of these objects lies in `path`.
    wanted: Range<usize>,
    /// Objects and arrays entered in all.
    depth: u64,
    state: JsonState,
    name: MemberName,
    number: Option<Number>,
    found: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonState {
    /// Between values, and between members of an object on the path.
    Between,
    /// In the name of a member.
    Name,
    /// Behind a name, up to the value; whether the name is on the path.
    Value { wanted: bool },
    /// In a number at the end of the path.
    Number,
    /// In a text that is no name.
    Text { escaped: bool },
}

/// A number so far.
#[derive(Clone, Copy, Debug, Default)]
struct Number {
    whole: u64,
    in_fraction: bool,
    rounds_up: bool,
}

impl JsonPathReader {
    pub(crate) fn new(path: &str) -> Self {
        Self {
            path: path.into(),
            length: 1 + path.bytes().filter(|byte| *byte == b'.').count(),
            on_path: 0,
            wanted: 0..0,
            depth: 0,
            state: JsonState::Between,
            name: MemberName::default(),
            number: None,
            found: None,
        }
    }

    /// Forgets where it was; the figure stays.
    pub(crate) fn restart(&mut self) {
        self.found = self.found();
        (self.on_path, self.depth, self.state, self.number) = (0, 0, JsonState::Between, None);
    }

    pub(crate) fn found(&self) -> Option<u64> {
        self.number.map(Number::value).or(self.found)
    }

    pub(crate) fn read(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            // Runs of bytes that change nothing are read at once.
            let run = match self.state {
                JsonState::Text { escaped: false } => run(rest, is_quote_or_escape),
                JsonState::Name if self.name.is_plain() => run(rest, is_quote_or_escape),
                JsonState::Between => run(rest, is_structural),
                _ => 0,
            };
            if run > 0 {
                let (read, unread) = rest.split_at(run);
                if self.state == JsonState::Name {
                    self.name.push(read, &self.path.as_bytes()[self.wanted.clone()]);
                }
                rest = unread;
                continue;
            }
            rest = after;
            match self.state {
                JsonState::Text { escaped } => self.text(byte, escaped),
                JsonState::Name => self.name(byte),
                JsonState::Value { wanted } => self.value(byte, wanted),
                JsonState::Number => self.digit(byte),
                JsonState::Between => self.between(byte),
            }
        }
    }

    /// Whether the members that follow are those of an object on the path.
    fn is_on_path(&self) -> bool {
        self.on_path > 0 && self.depth == self.on_path as u64
    }

    fn between(&mut self, byte: u8) {
        match byte {
            b'"' if self.is_on_path() => {
                self.name = MemberName::default();
                self.wanted = self.segment(self.on_path - 1);
                self.state = JsonState::Name;
            }
            b'"' => self.state = JsonState::Text { escaped: false },
            b'{' if self.depth == 0 => (self.depth, self.on_path) = (1, 1),
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                if self.is_on_path() {
                    self.on_path -= 1;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            _ => {}
        }
    }

    fn text(&mut self, byte: u8, escaped: bool) {
        self.state = match byte {
            _ if escaped => JsonState::Text { escaped: false },
            b'\\' => JsonState::Text { escaped: true },
            b'"' => JsonState::Between,
            _ => return,
        };
    }

    fn name(&mut self, byte: u8) {
        let wanted = &self.path.as_bytes()[self.wanted.clone()];
        if self.name.read(byte, wanted) {
            self.state = JsonState::Value { wanted: self.name.is(wanted) };
        }
    }

    /// Where the name of this number lies in the path.
    fn segment(&self, number: usize) -> Range<usize> {
        let mut start = 0;
        for (index, name) in self.path.as_bytes().split(|byte| *byte == b'.').enumerate() {
            if index == number {
                return start..start + name.len();
            }
            start += name.len() + 1;
        }
        0..0
    }

    fn value(&mut self, byte: u8, wanted: bool) {
        let is_last = self.on_path == self.length;
        match byte {
            b':' | b' ' | b'\t' | b'\r' | b'\n' => return,
            b'{' if wanted && !is_last => {
                self.depth = self.depth.saturating_add(1);
                self.on_path += 1;
            }
            b'0'..=b'9' if wanted && is_last => {
                self.number = Some(Number::default());
                self.state = JsonState::Number;
                return self.digit(byte);
            }
            byte => {
                self.state = JsonState::Between;
                // Anything else is a value to be skipped: a text, brackets, a word, a number.
                match byte {
                    b'"' => self.state = JsonState::Text { escaped: false },
                    byte => self.between(byte),
                }
                return;
            }
        }
        self.state = JsonState::Between;
    }

    fn digit(&mut self, byte: u8) {
        let Some(number) = &mut self.number else { return };
        match byte {
            b'0'..=b'9' if number.in_fraction => number.rounds_up |= byte != b'0',
            b'0'..=b'9' => {
                number.whole = number.whole.saturating_mul(10).saturating_add((byte - b'0').into());
            }
            b'.' if !number.in_fraction => number.in_fraction = true,
            b'e' | b'E' | b'+' | b'-' | b'.' => {
                // Exponents and signs are not counts.
                self.number = None;
                self.state = JsonState::Between;
            }
            byte => {
                self.found = Some(number.value());
                self.number = None;
                self.state = JsonState::Between;
                self.between(byte);
            }
        }
    }
}

/// How many bytes come before one that ends a run.
fn run(bytes: &[u8], is_end: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().position(is_end).unwrap_or(bytes.len())
}

fn is_quote_or_escape(byte: &u8) -> bool {
    matches!(byte, b'"' | b'\\')
}

fn is_structural(byte: &u8) -> bool {
    matches!(byte, b'"' | b'{' | b'}' | b'[' | b']')
}

impl Number {
    fn value(self) -> u64 {
        self.whole.saturating_add(self.rounds_up.into())
    }
}
