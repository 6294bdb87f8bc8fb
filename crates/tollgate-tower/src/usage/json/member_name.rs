//! The name of a JSON member, compared after decoding its escapes: writers may escape any
//! character.

/// The part of a member's name that was read, compared with the wanted name.
#[derive(Debug, Default)]
pub(super) struct MemberName {
    /// The number of bytes that match the wanted name.
    matched: usize,
    differs: bool,
    escape: Escape,
    /// The first half of a surrogate pair.
    high: Option<u16>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Escape {
    #[default]
    None,
    /// After a backslash.
    Begun,
    /// In the four digits after `\u`.
    Unit { digits: u8, unit: u16 },
}

impl MemberName {
    /// Whether the complete name equals `wanted`.
    pub(super) fn is(&self, wanted: &[u8]) -> bool {
        !self.differs && self.high.is_none() && self.matched == wanted.len()
    }

    /// Whether the next byte is outside an escape.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.escape, Escape::None)
    }

    /// Reads the next byte of the name. Returns true at the closing quote.
    pub(super) fn read(&mut self, byte: u8, wanted: &[u8]) -> bool {
        match std::mem::take(&mut self.escape) {
            Escape::None => match byte {
                b'"' => return true,
                b'\\' => self.escape = Escape::Begun,
                byte => self.push(&[byte], wanted),
            },
            Escape::Begun => match byte {
                b'u' => self.escape = Escape::Unit { digits: 0, unit: 0 },
                b'b' => self.push(b"\x08", wanted),
                b'f' => self.push(b"\x0c", wanted),
                b'n' => self.push(b"\n", wanted),
                b'r' => self.push(b"\r", wanted),
                b't' => self.push(b"\t", wanted),
                byte => self.push(&[byte], wanted),
            },
            Escape::Unit { digits, unit } => match char::from(byte).to_digit(16) {
                Some(digit) => {
                    let unit = unit << 4 | digit as u16;
                    match digits {
                        3 => self.unit(unit, wanted),
                        digits => self.escape = Escape::Unit { digits: digits + 1, unit },
                    }
                }
                // Invalid escape: no wanted name has it.
                None => {
                    self.differs = true;
                    return self.read(byte, wanted);
                }
            },
        }
        false
    }

    fn unit(&mut self, unit: u16, wanted: &[u8]) {
        let high = self.high.take();
        if high.is_none() && (0xD800..0xDC00).contains(&unit) {
            self.high = Some(unit);
            return;
        }
        for character in char::decode_utf16(high.into_iter().chain([unit])) {
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.push(character.encode_utf8(&mut [0; 4]).as_bytes(), wanted);
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8], wanted: &[u8]) {
        // An unpaired surrogate is in no wanted name.
        self.differs |= self.high.take().is_some() || !wanted[self.matched..].starts_with(bytes);
        if !self.differs {
            self.matched += bytes.len();
        }
    }
}
