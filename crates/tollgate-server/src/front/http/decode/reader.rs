//! A single-pass reader of two levels, so that no input can make it recurse.
//!
//! A usual body, without escapes and exponents, costs no allocation. serde reads strings with
//! escapes, names the type of a wrong value, and explains why a text is not JSON.

use super::{
    ATTRIBUTES_MAX, Attributes, BadRequest, Body, Fault, Member, MemberSet, NAME_BYTES_MAX, Op,
    RESERVATION_BYTES_MAX, VALUE_BYTES_MAX, number,
};
use serde::de::{Deserializer, IgnoredAny, Visitor};
use std::borrow::Cow;
use std::fmt;
use tollgate::engine::{TTL_US_MAX, UpstreamOutcome};

/// Reads a body with the allowed members.
pub(super) fn read<'a>(
    input: &'a str,
    allowed: MemberSet,
    body: &mut Body<'a>,
) -> Result<(), BadRequest> {
    let mut reader = Reader { text: input, at: 0, fault: None, field: None };
    match reader.body(allowed, body) {
        Some(()) => Ok(()),
        None => Err(reader.failure()),
    }
}

/// A position in the text. A method that returns `None` has met a fault. If `fault` is empty, the
/// text is not JSON.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    fault: Option<Fault>,
    /// The member with the fault.
    field: Option<Box<str>>,
}

impl<'a> Reader<'a> {
    fn body(&mut self, allowed: MemberSet, body: &mut Body<'a>) -> Option<()> {
        let mut seen = MemberSet::default();
        let expected = "an object such as {\"attributes\": {\"user\": \"42\"}, \"cost\": 1}";
        let mut has_more = self.open_object(expected)?;
        while has_more {
            let name = self.string()?;
            let member = Member::from_name(&name).filter(|member| allowed.has(*member));
            let Some(member) = member else {
                return self.refuse_at(&name, Fault::Unknown(allowed));
            };
            if seen.has(member) {
                return self.refuse_at(&name, Fault::Repeated);
            }
            seen = seen.with(member);
            self.expect(b':')?;
            if self.member(member, body).is_none() {
                self.field.get_or_insert_with(|| member.as_str().into());
                return None;
            }
            has_more = self.has_more()?;
        }
        self.skip_space();
        (self.at == self.text.len()).then_some(())
    }

    fn member(&mut self, member: Member, body: &mut Body<'a>) -> Option<()> {
        match member {
            Member::Attributes => self.attributes(&mut body.attributes)?,
            Member::Cost => {
                let Some(text) = self.number() else {
                    return self.refuse_type("a whole number");
                };
                body.cost = Some(self.check(number::parse_cost(text))?);
            }
            Member::Time => {
                let text = self.number_or(Fault::TimeNotANumber)?;
                body.time_us = Some(self.check(number::parse_us(text))?);
            }
            Member::Op => {
                let word = self.text_value()?;
                let op = Op::ALL.into_iter().find(|op| op.as_str() == word);
                body.op = Some(self.check(op.ok_or(Fault::NoSuchOp))?);
            }
            Member::Reservation => {
                let id = self.text_value()?;
                if !(1..=RESERVATION_BYTES_MAX).contains(&id.len()) {
                    return self.refuse(Fault::ReservationLength);
                }
                body.reservation = Some(id);
            }
            Member::Ttl => {
                let ttl_us = match tollgate_policy::parse_duration_us(&self.text_value()?) {
                    Ok(ttl_us @ 1..=TTL_US_MAX) => Ok(ttl_us),
                    Ok(_) => Err(Fault::TtlOutOfRange),
                    Err(why) => Err(Fault::NotADuration(why.into())),
                };
                body.ttl_us = Some(self.check(ttl_us)?);
            }
            Member::Latency => {
                let text = self.number_or(Fault::Latency)?;
                body.latency_us = Some(self.check(number::parse_latency_us(text))?);
            }
            Member::Outcome => {
                let outcome = match &*self.text_value()? {
                    "ok" => Ok(UpstreamOutcome::Ok),
                    "overloaded" => Ok(UpstreamOutcome::Overloaded),
                    _ => Err(Fault::NoSuchOutcome),
                };
                body.outcome = Some(self.check(outcome)?);
            }
        }
        Some(())
    }

    fn attributes(&mut self, attributes: &mut Attributes<'a>) -> Option<()> {
        let mut has_more = self.open_object("an object of strings")?;
        while has_more {
            let name = self.string()?;
            if name.is_empty() {
                return self.refuse(Fault::NameEmpty);
            }
            if name.len() > NAME_BYTES_MAX {
                return self.refuse(Fault::NameTooLong);
            }
            if attributes.len() == ATTRIBUTES_MAX {
                return self.refuse(Fault::TooManyAttributes);
            }
            if attributes.iter().any(|(other, _)| *other == name) {
                return self.refuse_at(&field(&name), Fault::Repeated);
            }
            self.expect(b':')?;
            let Some(value) = self.text_value() else {
                self.field = Some(field(&name).into());
                return None;
            };
            if value.len() > VALUE_BYTES_MAX {
                return self.refuse_at(&field(&name), Fault::ValueTooLong);
            }
            attributes.push((name, value));
            has_more = self.has_more()?;
        }
        Some(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// The next byte that is not white space.
    #[inline]
    fn next(&mut self) -> Option<u8> {
        let mut byte = self.peek()?;
        if byte <= b' ' {
            self.skip_space();
            byte = self.peek()?;
        }
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    /// Enters an object. Returns whether it has members.
    fn open_object(&mut self, expected: &'static str) -> Option<bool> {
        self.skip_space();
        if self.peek() != Some(b'{') {
            return self.refuse_type(expected);
        }
        self.at += 1;
        self.skip_space();
        let is_empty = self.peek() == Some(b'}');
        self.at += usize::from(is_empty);
        Some(!is_empty)
    }

    /// Whether another member follows; otherwise the object has ended.
    fn has_more(&mut self) -> Option<bool> {
        match self.next()? {
            b',' => Some(true),
            b'}' => Some(false),
            _ => None,
        }
    }

    /// A string, borrowed unless it has escapes.
    #[inline]
    fn string(&mut self) -> Option<Cow<'a, str>> {
        self.expect(b'"')?;
        let rest = self.text.get(self.at..)?;
        let length = plain_len(rest.as_bytes());
        match rest.as_bytes().get(length) {
            Some(b'"') => {
                self.at += length + 1;
                Some(Cow::Borrowed(&rest[..length]))
            }
            _ => self.escaped_string(),
        }
    }

    /// Reads a string after its opening quote.
    #[cold]
    fn escaped_string(&mut self) -> Option<Cow<'a, str>> {
        let start = self.at - 1;
        let mut values = serde_json::Deserializer::from_str(&self.text[start..]).into_iter();
        let text: String = values.next()?.ok()?;
        self.at = start + values.byte_offset();
        Some(Cow::Owned(text))
    }

    /// Reads a string as a value.
    fn text_value(&mut self) -> Option<Cow<'a, str>> {
        self.skip_space();
        let start = self.at;
        if let Some(text) = self.string() {
            return Some(text);
        }
        self.at = start;
        self.refuse_type("a string")
    }

    /// Reads a number, with sign, point and exponent. Does not advance at any other value.
    fn number(&mut self) -> Option<&'a str> {
        self.skip_space();
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let rest = self.text.get(self.at..)?;
        let (text, _) = rest.split_at(rest.bytes().take_while(is_part).count());
        serde_json::from_str::<IgnoredAny>(text).ok()?;
        self.at += text.len();
        Some(text)
    }

    /// Reads a number; `fault` replaces the fault of another type.
    fn number_or(&mut self, fault: Fault) -> Option<&'a str> {
        self.number().or_else(|| {
            self.refuse_type::<()>("a number");
            self.fault = self.fault.take().map(|_| fault);
            None
        })
    }

    fn check<T>(&mut self, value: Result<T, Fault>) -> Option<T> {
        value.map_err(|fault| self.fault = Some(fault)).ok()
    }

    #[cold]
    fn refuse<T>(&mut self, fault: Fault) -> Option<T> {
        self.fault = Some(fault);
        None
    }

    #[cold]
    fn refuse_at<T>(&mut self, field: &str, fault: Fault) -> Option<T> {
        // An answer quotes only a part of the name.
        self.field = Some(field[..field.floor_char_boundary(2 * NAME_BYTES_MAX)].into());
        self.refuse(fault)
    }

    /// Refuses the value at this position: JSON of another type, or not JSON.
    #[cold]
    fn refuse_type<T>(&mut self, expected: &'static str) -> Option<T> {
        let mut reader = serde_json::Deserializer::from_str(&self.text[self.at..]);
        let error = reader.deserialize_any(Expected(expected)).err()?;
        self.fault = error.is_data().then(|| Fault::from_json_error(&error));
        None
    }

    #[cold]
    fn failure(self) -> BadRequest {
        let not_json = || match serde_json::from_str::<IgnoredAny>(self.text) {
            Err(error) => Fault::from_json_error(&error),
            Ok(_) => Fault::NotJson("a value is malformed".into()),
        };
        BadRequest { field: self.field, fault: self.fault.unwrap_or_else(not_json) }
    }
}

/// The name of an attribute in an answer.
fn field(attribute: &str) -> String {
    format!("attributes.{attribute}")
}

/// Accepts no value, so that serde's error names the actual type.
struct Expected(&'static str);

impl Visitor<'_> for Expected {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The number of bytes before one that ends a string or begins an escape.
#[inline]
fn plain_len(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks();
    for (n, word) in words.iter().enumerate() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return 8 * n + special.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |&byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    bytes.len() - rest.len() + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// Sets the highest bit of each quote, backslash and control character among eight bytes. Bits
/// above the lowest one may be wrong, because a subtraction borrows.
#[inline]
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let equal = |byte: u8| {
        let zero = word ^ (ONES * u64::from(byte));
        zero.wrapping_sub(ONES) & !zero
    };
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (equal(b'"') | equal(b'\\') | control) & (ONES << 7)
}
