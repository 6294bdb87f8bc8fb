//! Proto3 JSON.

use super::{MessageField, MessageWriter};
use crate::front::base64;
use serde_json::{Map, Value, json};

/// The value under construction.
pub(crate) struct JsonWriter(Value);

/// Writes an object, even if it has no fields.
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
        self.text(field, &base64::encode(bytes));
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

#[cfg(test)]
mod tests;
