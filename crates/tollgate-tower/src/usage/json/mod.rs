//! JSON reader: finds the number at one path, byte by byte.

mod member_name;

use member_name::MemberName;
use std::ops::Range;

/// Follows a path of names through objects. Skips everything else by counting brackets, so deep
/// nesting needs no memory. Reads a sequence of values, such as JSON lines, one after the other.
#[derive(Debug)]
pub(crate) struct JsonPathReader {
    /// The names, with dots between them.
    path: Box<str>,
    /// The number of names in the path.
    length: usize,
    /// The number of objects entered along the path.
    on_path: usize,
    /// The range in `path` of the name that is wanted in the innermost of these objects.
    wanted: Range<usize>,
    /// The number of objects and arrays entered in all.
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
    /// In a member's name.
    Name,
    /// Between a name and its value; `wanted`: the name is on the path.
    Value { wanted: bool },
    /// In the number at the end of the path.
    Number,
    /// In a string that is not a name.
    Text { escaped: bool },
}

/// The digits of a number read so far.
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

    /// Starts at the top level again, and keeps the figure found so far.
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
            // Bytes that do not change the state are skipped in one step.
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

    /// Whether the next members belong to an object on the path.
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

    /// The range in `path` of the name with this index.
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
                // Any other value is skipped: a string, brackets, a literal, a number.
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
                // A number with an exponent or a sign is not a count.
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

/// The number of bytes before one that ends a run.
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
