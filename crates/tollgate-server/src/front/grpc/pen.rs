//! Protocol buffers as they are written: fields at the end of a buffer, each with its number, defaults left out.

/// Writes fields one after the other.
pub(super) struct Pen<'a>(pub(super) &'a mut Vec<u8>);

const NUMBER: u8 = 0;
const EIGHT_BYTES: u8 = 1;
const BYTES: u8 = 2;

impl Pen<'_> {
    pub(super) fn number(&mut self, field: u8, value: u64) {
        if value != 0 {
            self.number_as_is(field, value);
        }
    }

    /// Even where it is the default, as a member of a `oneof` is.
    pub(super) fn number_as_is(&mut self, field: u8, value: u64) {
        self.0.push(field << 3 | NUMBER);
        self.varint(value);
    }

    /// Even where it is the default.
    pub(super) fn double_as_is(&mut self, field: u8, value: f64) {
        self.0.push(field << 3 | EIGHT_BYTES);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, field: u8, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.bytes_as_is(field, bytes);
        }
    }

    /// Even where there are none.
    pub(super) fn bytes_as_is(&mut self, field: u8, bytes: &[u8]) {
        self.0.push(field << 3 | BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// One text made of several, even where it is empty.
    pub(super) fn texts_as_is<const N: usize>(&mut self, field: u8, texts: [&str; N]) {
        self.0.push(field << 3 | BYTES);
        self.varint(texts.iter().map(|text| text.len() as u64).sum());
        texts.iter().for_each(|text| self.0.extend_from_slice(text.as_bytes()));
    }

    pub(super) fn text(&mut self, field: u8, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    /// The same in small letters.
    pub(super) fn small(&mut self, field: u8, text: &str) {
        self.text(field, text);
        let start = self.0.len() - text.len();
        self.0[start..].make_ascii_lowercase();
    }

    /// A message, whose length is known once it is written.
    pub(super) fn message(&mut self, field: u8, write: impl FnOnce(&mut Pen<'_>)) {
        self.0.extend_from_slice(&[field << 3 | BYTES, 0]);
        let start = self.0.len();
        write(&mut Pen(self.0));
        let mut length = self.0.len() - start;
        // Most often one byte is enough; where it is not, what was written moves on.
        let more = (usize::BITS - length.leading_zeros()).div_ceil(7).max(1) as usize - 1;
        if more > 0 {
            let end = self.0.len();
            self.0.resize(end + more, 0);
            self.0.copy_within(start..end, start + more);
        }
        for place in 0..more {
            self.0[start - 1 + place] = length as u8 | 0x80;
            length >>= 7;
        }
        self.0[start - 1 + more] = length as u8;
    }

    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests;
