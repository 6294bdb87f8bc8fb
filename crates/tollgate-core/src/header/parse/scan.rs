//! A scanner for Structured Fields (RFC 9651, section 4.2). It borrows from the line and does not
//! allocate.

use super::error::{FieldErrorKind, FieldSyntaxError};
use super::value::is_base64;

/// A position in one header line.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// A bare item. Types that no RateLimit header uses are recognised, so that unknown parameters can
/// be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BareItem<'a> {
    Integer(i64),
    /// The text between the quotes, with escapes.
    String(&'a str),
    Token(&'a str),
    /// The text between the colons, in base64.
    Binary(&'a str),
    /// A decimal, boolean, date or display string.
    Other,
    /// An inner list. No RateLimit header has one, so its items are checked and dropped.
    InnerList,
}

impl<'a> Scanner<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Skips spaces and tabs, the optional whitespace around commas.
    pub(super) fn skip_whitespace(&mut self) {
        self.take_while(|byte| matches!(byte, b' ' | b'\t'));
    }

    /// Skips the spaces that may precede a value.
    pub(super) fn skip_spaces(&mut self) {
        self.take_while(|byte| byte == b' ');
    }

    /// Skips `byte` if it is next.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Reads any number of `;key=value`; a key without a value is a boolean.
    pub(super) fn parameters(
        &mut self,
        mut each: impl FnMut(&'a str, BareItem<'a>),
    ) -> Result<(), FieldSyntaxError> {
        while self.eat(b';') {
            self.skip_spaces();
            let key = self.key()?;
            let value = if self.eat(b'=') { self.bare_item()? } else { BareItem::Other };
            each(key, value);
        }
        Ok(())
    }

    /// Reads a member of a list, or a value of a dictionary, up to its parameters.
    pub(super) fn item_or_inner_list(&mut self) -> Result<BareItem<'a>, FieldSyntaxError> {
        if !self.eat(b'(') {
            return self.bare_item();
        }
        loop {
            let spaces = self.take_while(|byte| byte == b' ');
            if self.eat(b')') {
                return Ok(BareItem::InnerList);
            }
            if spaces.is_empty() && self.text.as_bytes().get(self.at.wrapping_sub(1)) != Some(&b'(')
            {
                return Err(self.expected("a space or a closing parenthesis"));
            }
            self.bare_item()?;
            self.parameters(|_, _| ())?;
        }
    }

    pub(super) fn bare_item(&mut self) -> Result<BareItem<'a>, FieldSyntaxError> {
        match self.peek() {
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'"') => self.string().map(BareItem::String),
            Some(b'*' | b'a'..=b'z' | b'A'..=b'Z') => Ok(BareItem::Token(
                self.take_while(|byte| is_tchar(byte) || matches!(byte, b':' | b'/')),
            )),
            Some(b':') => self.binary(),
            Some(b'?') => self.boolean(),
            Some(b'@') => {
                self.at += 1;
                match self.number()? {
                    BareItem::Integer(_) => Ok(BareItem::Other),
                    _ => Err(self.expected("a date in whole seconds")),
                }
            }
            Some(b'%') => self.display_string(),
            _ => Err(self.expected("a value")),
        }
    }

    pub(super) const fn expected(&self, what: &'static str) -> FieldSyntaxError {
        FieldSyntaxError { kind: FieldErrorKind::Expected(what), at: self.at }
    }

    /// Reads the key of a parameter or of a dictionary member.
    pub(super) fn key(&mut self) -> Result<&'a str, FieldSyntaxError> {
        if !matches!(self.peek(), Some(b'*' | b'a'..=b'z')) {
            return Err(self.expected("a key in lower case"));
        }
        Ok(self.take_while(
            |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*'),
        ))
    }

    /// Reads an integer of up to 15 digits, or a decimal of up to 12 and 3 digits.
    fn number(&mut self) -> Result<BareItem<'a>, FieldSyntaxError> {
        let negative = self.eat(b'-');
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.expected("a digit"));
        }
        if self.eat(b'.') {
            let fraction = self.take_while(|byte| byte.is_ascii_digit());
            return if digits.len() <= 12 && (1..=3).contains(&fraction.len()) {
                Ok(BareItem::Other)
            } else {
                Err(self.expected("a decimal of at most 12 and 3 digits"))
            };
        }
        if digits.len() > 15 {
            return Err(self.expected("an integer of at most 15 digits"));
        }
        let value = digits.bytes().fold(0, |sum, byte| sum * 10 + i64::from(byte - b'0'));
        Ok(BareItem::Integer(if negative { -value } else { value }))
    }

    fn string(&mut self) -> Result<&'a str, FieldSyntaxError> {
        self.at += 1;
        let start = self.at;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let inside = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(inside);
                }
                Some(b'\\') => {
                    self.at += 1;
                    if !matches!(self.peek(), Some(b'"' | b'\\')) {
                        return Err(self.expected("an escaped quote or backslash"));
                    }
                    self.at += 1;
                }
                Some(b' '..=b'~') => self.at += 1,
                _ => return Err(self.expected("a closing quote")),
            }
        }
    }

    fn binary(&mut self) -> Result<BareItem<'a>, FieldSyntaxError> {
        self.at += 1;
        let start = self.at;
        let inside = self
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
        if !self.eat(b':') {
            return Err(self.expected("a closing colon"));
        }
        if !is_base64(inside) {
            return Err(FieldSyntaxError { kind: FieldErrorKind::Expected("base64"), at: start });
        }
        Ok(BareItem::Binary(inside))
    }

    fn boolean(&mut self) -> Result<BareItem<'a>, FieldSyntaxError> {
        self.at += 1;
        if self.eat(b'0') || self.eat(b'1') {
            Ok(BareItem::Other)
        } else {
            Err(self.expected("0 or 1"))
        }
    }

    fn display_string(&mut self) -> Result<BareItem<'a>, FieldSyntaxError> {
        self.at += 1;
        if !self.eat(b'"') {
            return Err(self.expected("a quote"));
        }
        let mut character = Utf8Character::default();
        loop {
            let Some(byte) = self.peek() else {
                return Err(self.expected("a closing quote"));
            };
            if byte == b'%' {
                let byte = self.escaped_byte()?;
                if !character.push(byte) {
                    return Err(self.expected("UTF-8"));
                }
                continue;
            }
            if !character.is_complete() {
                return Err(self.expected("the rest of a UTF-8 character"));
            }
            match byte {
                b'"' => {
                    self.at += 1;
                    return Ok(BareItem::Other);
                }
                b' '..=b'~' => self.at += 1,
                _ => return Err(self.expected("a closing quote")),
            }
        }
    }

    /// Reads `%` and two hexadecimal digits in lower case.
    fn escaped_byte(&mut self) -> Result<u8, FieldSyntaxError> {
        let digit = |byte: Option<u8>| match byte {
            Some(digit @ b'0'..=b'9') => Some(digit - b'0'),
            Some(digit @ b'a'..=b'f') => Some(digit - b'a' + 10),
            _ => None,
        };
        self.at += 1;
        let high = digit(self.peek());
        let low = digit(self.text.as_bytes().get(self.at + 1).copied());
        let (Some(high), Some(low)) = (high, low) else {
            return Err(self.expected("two hexadecimal digits in lower case"));
        };
        self.at += 2;
        Ok(high << 4 | low)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips bytes that are all ASCII, so slices never cut a character.
    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii() && belongs(byte)) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }
}

fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The bytes of one UTF-8 character, collected one by one.
#[derive(Default)]
struct Utf8Character {
    bytes: [u8; 4],
    len: usize,
}

impl Utf8Character {
    /// Adds the next byte; false if no character continues with it.
    fn push(&mut self, byte: u8) -> bool {
        // Four bytes are a whole character or an error, so a fifth byte always finds an empty
        // array.
        self.bytes[self.len] = byte;
        self.len += 1;
        match core::str::from_utf8(&self.bytes[..self.len]) {
            Ok(_) => self.len = 0,
            Err(error) if error.error_len().is_some() => return false,
            Err(_) => {}
        }
        true
    }

    const fn is_complete(&self) -> bool {
        self.len == 0
    }
}
