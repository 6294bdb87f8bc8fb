//! Inline commands, as people type them: words separated by spaces, quoted if they contain spaces.

use super::{Arguments, Caps, DecodeStatus, LINE_BYTES_MAX, Malformed};

/// Reads one line. Words with escapes are rewritten in place, where they never get longer.
pub(super) fn read_line(
    bytes: &mut [u8],
    caps: Caps,
    arguments: &mut Arguments,
) -> Result<DecodeStatus, Malformed> {
    let most = LINE_BYTES_MAX.min(caps.bulk_bytes_max);
    let Some(end) = bytes.iter().take(most).position(|byte| *byte == b'\n') else {
        let partial = Ok(DecodeStatus::Partial(bytes.len() + 1));
        return if bytes.len() < most { partial } else { Err(Malformed::Line) };
    };
    let mut words = InlineWords { bytes: &mut bytes[..end], at: 0 };
    while let Some(start) = words.start() {
        if arguments.len() == caps.arguments_max {
            return Err(Malformed::Count);
        }
        let to = words.word(start).ok_or(Malformed::Quotes)?;
        arguments.push(start..to);
    }
    Ok(DecodeStatus::Complete(end + 1))
}

struct InlineWords<'a> {
    bytes: &'a mut [u8],
    /// The read position. The write position is never ahead of it.
    at: usize,
}

impl InlineWords<'_> {
    /// The start of the next word.
    fn start(&mut self) -> Option<usize> {
        let is_word = |byte: &u8| !is_space(*byte);
        self.at += self.bytes[self.at..].iter().position(is_word)?;
        Some(self.at)
    }

    /// Reads a word and writes it to `to`. Returns the end of the written word; `None` if a quote
    /// is not closed, or text follows the closing quote.
    fn word(&mut self, mut to: usize) -> Option<usize> {
        while let Some(byte) = self.take() {
            match byte {
                b'"' | b'\'' => {
                    to = self.quoted(byte, to)?;
                    let next = self.bytes.get(self.at).copied();
                    return next.is_none_or(is_space).then_some(to);
                }
                byte if is_space(byte) => break,
                byte => to = self.put(to, byte),
            }
        }
        Some(to)
    }

    /// Reads the rest of a quoted word.
    fn quoted(&mut self, mark: u8, mut to: usize) -> Option<usize> {
        loop {
            let byte = match self.take()? {
                byte if byte == mark => return Some(to),
                b'\\' if mark == b'"' => self.escape()?,
                b'\\' if self.bytes.get(self.at) == Some(&b'\'') => self.take()?,
                byte => byte,
            };
            to = self.put(to, byte);
        }
    }

    /// Decodes an escape after its backslash.
    fn escape(&mut self) -> Option<u8> {
        let byte = self.take()?;
        if byte == b'x'
            && let Some(&[high, low]) = self.bytes.get(self.at..self.at + 2)
            && let (Some(high), Some(low)) = (digit(high), digit(low))
        {
            self.at += 2;
            return Some(high << 4 | low);
        }
        Some(match byte {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'a' => 7,
            byte => byte,
        })
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    fn put(&mut self, to: usize, byte: u8) -> usize {
        self.bytes[to] = byte;
        to + 1
    }
}

/// White space as in C; a line may end with a carriage return before its newline.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}
