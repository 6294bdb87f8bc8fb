//! A cost from the digits of a JSON number.

use super::Fault;
use super::decimal::parse_scaled;

/// How many digits the largest cost has.
const DIGITS_MAX: i64 = 20;

/// A cost from `text`, a JSON value that is well formed already. JSON has one kind of number, and
/// some writers put a point into all of theirs: `1.0` and `1e0` are the whole number 1, and nothing
/// after the point is ever dropped.
pub(super) fn parse(text: &str) -> Result<u64, Fault> {
    match text.as_bytes().first() {
        Some(b'0'..=b'9') => parse_scaled(text, 0, DIGITS_MAX).map_err(|_| Fault::NotAnInteger),
        Some(b'-') if parse_scaled(&text[1..], 0, DIGITS_MAX) == Ok(0) => Ok(0),
        Some(b'-') => Err(Fault::Negative),
        _ => Err(wrong_type(text)),
    }
}

/// What it is instead of a number, in the words that the reader has for the other members.
fn wrong_type(text: &str) -> Fault {
    match serde_json::from_str::<IntegerProbe>(text) {
        Err(error) => Fault::from_json_error(&error),
        Ok(IntegerProbe) => Fault::NotAnInteger,
    }
}

struct IntegerProbe;

impl<'de> serde::Deserialize<'de> for IntegerProbe {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(Self)
    }
}

impl serde::de::Visitor<'_> for IntegerProbe {
    type Value = Self;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a whole number")
    }
}

#[cfg(test)]
mod tests;
