//! Protobuf, appended to a buffer.

use super::{MessageField, MessageWriter};
use tollgate_core::push_varint;

/// Appends fields to a buffer.
pub(crate) struct ProtoWriter<'a>(pub(crate) &'a mut Vec<u8>);

const VARINT: u8 = 0;
const EIGHT_BYTES: u8 = 1;
const LENGTH_DELIMITED: u8 = 2;

/// The fields of `google.protobuf.Value`, a `oneof`.
const NULL: u8 = 1;
const NUMBER: u8 = 2;
const STRING: u8 = 3;
const BOOL: u8 = 4;
const STRUCT: u8 = 5;
const LIST: u8 = 6;

impl MessageWriter for ProtoWriter<'_> {
    fn number(&mut self, field: MessageField, value: u64) {
        if value != 0 {
            self.varint_field(field.0, value);
        }
    }

    fn enumeration(&mut self, field: MessageField, value: u64, _: &str) {
        self.number(field, value);
    }

    fn text(&mut self, field: MessageField, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn lowercase(&mut self, field: MessageField, text: &str) {
        self.text(field, text);
        let start = self.0.len() - text.len();
        self.0[start..].make_ascii_lowercase();
    }

    fn bytes(&mut self, field: MessageField, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.bytes_field(field.0, [bytes]);
        }
    }

    fn seconds(&mut self, field: MessageField, seconds: u64) {
        self.message(field, |duration| duration.number(MessageField(1, "seconds"), seconds));
    }

    fn message(&mut self, field: MessageField, write: impl FnOnce(&mut Self)) {
        self.message_field(field.0, write);
    }

    fn repeated(&mut self, field: MessageField, write: impl FnOnce(&mut Self)) {
        self.message_field(field.0, write);
    }

    fn entry(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.message_field(1, |entry| {
            entry.text(MessageField(1, "key"), name);
            entry.message_field(2, write);
        });
    }

    fn element(&mut self, write: impl FnOnce(&mut Self)) {
        self.message_field(1, write);
    }

    fn null(&mut self) {
        self.varint_field(NULL, 0);
    }

    fn boolean(&mut self, value: bool) {
        self.varint_field(BOOL, value.into());
    }

    fn double(&mut self, value: f64) {
        self.0.push(NUMBER << 3 | EIGHT_BYTES);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn string<const N: usize>(&mut self, parts: [&str; N]) {
        self.bytes_field(STRING, parts.map(str::as_bytes));
    }

    fn structure(&mut self, write: impl FnOnce(&mut Self)) {
        self.message_field(STRUCT, write);
    }

    fn list(&mut self, write: impl FnOnce(&mut Self)) {
        self.message_field(LIST, write);
    }
}

impl ProtoWriter<'_> {
    fn varint_field(&mut self, number: u8, value: u64) {
        self.0.push(number << 3 | VARINT);
        push_varint(self.0, value);
    }

    fn bytes_field<const N: usize>(&mut self, number: u8, parts: [&[u8]; N]) {
        self.0.push(number << 3 | LENGTH_DELIMITED);
        push_varint(self.0, parts.iter().map(|part| part.len() as u64).sum());
        parts.iter().for_each(|part| self.0.extend_from_slice(part));
    }

    /// Writes a message, whose length is known only afterwards.
    fn message_field(&mut self, number: u8, write: impl FnOnce(&mut Self)) {
        self.0.extend_from_slice(&[number << 3 | LENGTH_DELIMITED, 0]);
        let start = self.0.len();
        write(self);
        let mut length = self.0.len() - start;
        // Most lengths fit into one byte. For a longer length the message is moved.
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
}

#[cfg(test)]
mod tests;
