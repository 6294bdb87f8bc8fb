//! JSON reader: finds the number at one path, byte by byte.

mod member_name;
use member_name::MemberName;

/// Follows a path of names through objects. What is not on the path is skipped by counting
/// brackets, so the depth of a value costs nothing. Values that follow each other, as in lines of
/// JSON, are read one after the other.
#[derive(Debug)]
pub(crate) struct JsonPathReader {
    path: Box<[Box<str>]>,
    /// Objects entered along the path; the next name wanted is `path[on_path - 1]`.
    on_path: usize,
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
            path: path.split('.').map(Box::from).collect(),
            on_path: 0,
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

    pub(crate) fn read(&mut self, byte: u8) {
        match self.state {
            JsonState::Text { escaped } => self.text(byte, escaped, JsonState::Between),
            JsonState::Name => self.name(byte),
            JsonState::Value { wanted } => self.value(byte, wanted),
            JsonState::Number => self.digit(byte),
            JsonState::Between => self.between(byte),
        }
    }

    /// Whether the members that follow are those of an object on the path.
    fn is_on_path(&self) -> bool {
        self.on_path > 0 && self.depth == self.on_path as u64
    }

    fn between(&mut self, byte: u8) {
        match byte {
            b'"' if self.is_on_path() => {
                self.name.clear();
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

    fn text(&mut self, byte: u8, escaped: bool, after: JsonState) {
        self.state = match byte {
            _ if escaped => JsonState::Text { escaped: false },
            b'\\' => JsonState::Text { escaped: true },
            b'"' => after,
            _ => return,
        };
    }

    fn name(&mut self, byte: u8) {
        if self.name.read(byte) {
            let wanted = self.path.get(self.on_path - 1);
            let wanted = wanted.is_some_and(|wanted| self.name.is(wanted));
            self.state = JsonState::Value { wanted };
        }
    }

    fn value(&mut self, byte: u8, wanted: bool) {
        let is_last = self.on_path == self.path.len();
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

impl Number {
    fn value(self) -> u64 {
        self.whole.saturating_add(self.rounds_up.into())
    }
}

#[cfg(test)]
impl JsonPathReader {
    pub(super) fn room(&self) -> usize {
        self.name.room()
    }
}
