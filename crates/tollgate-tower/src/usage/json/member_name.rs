//! The name of a member. Writers escape what they like in it, so it is compared without escapes.

/// Longer names are not on any path worth writing.
const NAME_BYTES_MAX: usize = 256;

/// A name so far.
#[derive(Debug, Default)]
pub(super) struct MemberName {
    bytes: Vec<u8>,
    escape: Escape,
    /// The first half of a character that is written in two.
    high: Option<u16>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Escape {
    #[default]
    None,
    /// Behind a backslash.
    Begun,
    /// In the four digits behind `\u`.
    Unit { digits: u8, unit: u16 },
}

impl MemberName {
    pub(super) fn clear(&mut self) {
        (self.escape, self.high) = (Escape::None, None);
        self.bytes.clear();
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.high.is_none() && self.bytes == name.as_bytes()
    }

    /// Whether the name ends with this byte.
    pub(super) fn read(&mut self, byte: u8) -> bool {
        match std::mem::take(&mut self.escape) {
            Escape::None => match byte {
                b'"' => return true,
                b'\\' => self.escape = Escape::Begun,
                byte => self.push(&[byte]),
            },
            Escape::Begun => match byte {
                b'u' => self.escape = Escape::Unit { digits: 0, unit: 0 },
                b'b' => self.push(b"\x08"),
                b'f' => self.push(b"\x0c"),
                b'n' => self.push(b"\n"),
                b'r' => self.push(b"\r"),
                b't' => self.push(b"\t"),
                byte => self.push(&[byte]),
            },
            Escape::Unit { digits, unit } => match char::from(byte).to_digit(16) {
                Some(digit) => {
                    let unit = unit << 4 | digit as u16;
                    match digits {
                        3 => self.unit(unit),
                        digits => self.escape = Escape::Unit { digits: digits + 1, unit },
                    }
                }
                // Not an escape, so the name is on no path.
                None => {
                    self.push(b"\\u");
                    return self.read(byte);
                }
            },
        }
        false
    }

    fn unit(&mut self, unit: u16) {
        let high = self.high.take();
        if high.is_none() && (0xD800..0xDC00).contains(&unit) {
            self.high = Some(unit);
            return;
        }
        for character in char::decode_utf16(high.into_iter().chain([unit])) {
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.push(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        // An unpaired surrogate: 0xFF keeps the name from matching.
        if self.high.take().is_some() {
            self.bytes.push(0xFF);
        }
        if self.bytes.len() <= NAME_BYTES_MAX {
            self.bytes.extend_from_slice(bytes);
        }
    }

    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.bytes.capacity()
    }
}
