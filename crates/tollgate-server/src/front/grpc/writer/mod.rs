//! Message writers: one interface for protobuf and proto3 JSON.

pub(super) mod json;
pub(super) mod proto;

/// A field of a message: its number in protobuf, and its name in JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageField(pub(super) u8, pub(super) &'static str);

/// Writes the fields of a message. Fields with default values are omitted.
pub(crate) trait MessageWriter: Sized {
    fn number(&mut self, field: MessageField, value: u64);
    /// Writes a value of an enumeration.
    fn enumeration(&mut self, field: MessageField, value: u64, name: &str);
    fn text(&mut self, field: MessageField, text: &str);
    /// Writes text in lower case.
    fn lowercase(&mut self, field: MessageField, text: &str);
    fn bytes(&mut self, field: MessageField, bytes: &[u8]);
    /// Writes a `google.protobuf.Duration`.
    fn seconds(&mut self, field: MessageField, seconds: u64);
    fn message(&mut self, field: MessageField, write: impl FnOnce(&mut Self));
    /// Writes the next message of a repeated field.
    fn repeated(&mut self, field: MessageField, write: impl FnOnce(&mut Self));

    /// Writes the next field of a `google.protobuf.Struct`. `write` writes its value, one of the
    /// kinds below, even if it is a default.
    fn entry(&mut self, name: &str, write: impl FnOnce(&mut Self));
    /// Writes the next value of a list.
    fn element(&mut self, write: impl FnOnce(&mut Self));
    fn null(&mut self);
    fn boolean(&mut self, value: bool);
    fn double(&mut self, value: f64);
    /// Writes one string made of several parts.
    fn string<const N: usize>(&mut self, parts: [&str; N]);
    fn structure(&mut self, write: impl FnOnce(&mut Self));
    fn list(&mut self, write: impl FnOnce(&mut Self));
}
