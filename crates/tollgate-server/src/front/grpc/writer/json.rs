//! Proto3 JSON.

use super::{MessageField, MessageWriter};
use serde_json::{Map, Value, json};

/// The value that is being written.
pub(crate) struct JsonWriter(Value);

/// An object, even if it has no fields.
pub(crate) fn object(write: impl FnOnce(&mut JsonWriter)) -> Value {
    write_into(Value::Object(Map::new()), write)
}

fn write_into(start: Value, write: impl FnOnce(&mut JsonWriter)) -> Value {
    let mut writer = JsonWriter(start);
    write(&mut writer);
    writer.0
}

impl MessageWriter for JsonWriter {
    fn number(&mut self, field: MessageField, value: u64) {
        if value != 0 {
            self.insert(field.1, value.into());
        }
    }

    fn enumeration(&mut self, field: MessageField, value: u64, name: &str) {
        if value != 0 {
            self.insert(field.1, name.into());
        }
    }

    fn text(&mut self, field: MessageField, text: &str) {
        if !text.is_empty() {
            self.insert(field.1, text.into());
        }
    }

    fn lowercase(&mut self, field: MessageField, text: &str) {
        self.text(field, &text.to_ascii_lowercase());
    }

    fn bytes(&mut self, field: MessageField, bytes: &[u8]) {
        self.text(field, &base64(bytes));
    }

    fn seconds(&mut self, field: MessageField, seconds: u64) {
        self.insert(field.1, format!("{seconds}s").into());
    }

    fn message(&mut self, field: MessageField, write: impl FnOnce(&mut Self)) {
        self.insert(field.1, object(write));
    }

    fn repeated(&mut self, field: MessageField, write: impl FnOnce(&mut Self)) {
        if let Value::Object(fields) = &mut self.0
            && let Value::Array(items) = fields.entry(field.1).or_insert_with(|| json!([]))
        {
            items.push(object(write));
        }
    }

    fn entry(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.insert(name, write_into(Value::Null, write));
    }

    fn element(&mut self, write: impl FnOnce(&mut Self)) {
        if let Value::Array(items) = &mut self.0 {
            items.push(write_into(Value::Null, write));
        }
    }

    fn null(&mut self) {
        self.0 = Value::Null;
    }

    fn boolean(&mut self, value: bool) {
        self.0 = value.into();
    }

    fn double(&mut self, value: f64) {
        self.0 = value.into();
    }

    fn string<const N: usize>(&mut self, parts: [&str; N]) {
        self.0 = parts.concat().into();
    }

    fn structure(&mut self, write: impl FnOnce(&mut Self)) {
        self.0 = object(write);
    }

    fn list(&mut self, write: impl FnOnce(&mut Self)) {
        self.0 = write_into(json!([]), write);
    }
}

impl JsonWriter {
    fn insert(&mut self, name: &str, value: Value) {
        if let Value::Object(fields) = &mut self.0 {
            fields.insert(name.to_owned(), value);
        }
    }
}

/// With padding, as proto3 JSON has bytes.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= chunk.len() { digit.into() } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests;
