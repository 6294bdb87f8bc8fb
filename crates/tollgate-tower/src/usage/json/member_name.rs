//! The name of a member. Writers escape what they like in it, so it is compared without escapes.

/// How much of a wanted name has come.
#[derive(Debug, Default)]
pub(super) struct MemberName {
    /// Bytes that equal the wanted name's.
    matched: usize,
    differs: bool,
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
    /// Whether this is the wanted name, once it has ended.
    pub(super) fn is(&self, wanted: &[u8]) -> bool {
        !self.differs && self.high.is_none() && self.matched == wanted.len()
    }

    /// Whether the next byte stands for itself, unless it begins an escape or ends the name.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.escape, Escape::None)
    }

    /// Whether the name ends with this byte.
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
                // Not an escape, so the name is on no path.
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
