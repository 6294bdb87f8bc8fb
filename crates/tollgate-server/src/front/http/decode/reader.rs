//! Fast path for the usual body: no escapes, no exponents, each member once.
//!
//! It returns `None` for any other body, valid or not; the full reader then reads it. Where it
//! returns a body, the full reader would return the same, in three times the time. A test compares
//! the two.

use super::{
    ATTRIBUTES_MAX, Attributes, Body, Member, MemberSet, NAME_BYTES_MAX, Op, RESERVATION_BYTES_MAX,
    VALUE_BYTES_MAX,
};
use std::borrow::Cow;
use tollgate_core::MAX_US;

/// Reads a body with the members allowed.
pub(super) fn read<'a>(input: &'a str, allowed: MemberSet, body: &mut Body<'a>) -> Option<()> {
    let mut seen = MemberSet::default();
    let mut cursor = Cursor { text: input, at: 0 };
    cursor.expect(b'{')?;
    loop {
        let member = Member::from_name(cursor.string()?)?;
        if !allowed.has(member) || seen.has(member) {
            return None;
        }
        seen = seen.with(member);
        cursor.expect(b':')?;
        match member {
            Member::Attributes => cursor.attributes(&mut body.attributes)?,
            Member::Cost => body.cost = Some(cursor.integer()?.0),
            Member::Time => body.time_us = Some(cursor.time_us()?),
            Member::Op => {
                let word = cursor.string()?;
                body.op = Some(Op::ALL.into_iter().find(|op| op.as_str() == word)?);
            }
            Member::Reservation => {
                let id = cursor.string()?;
                (1..=RESERVATION_BYTES_MAX).contains(&id.len()).then_some(())?;
                body.reservation = Some(Cow::Borrowed(id));
            }
            Member::Ttl => return None,
        }
        match cursor.next()? {
            b',' => {}
            b'}' => break,
            _ => return None,
        }
    }
    cursor.skip_space();
    (cursor.at == input.len()).then_some(())
}

/// How many bytes stand for themselves before one that ends a string or begins an escape.
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

/// Marks the quotes, backslashes and control characters among eight bytes by their highest bit.
/// Marks above the lowest one may be wrong, because a subtraction borrows.
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

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// The next byte that is not space.
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

    /// The unread bytes.
    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// A string without escapes.
    fn string(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let rest = self.text.get(self.at..)?;
        let length = plain_len(rest.as_bytes());
        let (text, end) = rest.split_at_checked(length)?;
        self.at += length + 1;
        end.starts_with('"').then_some(text)
    }

    /// A number without leading zeros, and how many digits it has. Nineteen always fit.
    fn integer(&mut self) -> Option<(u64, usize)> {
        self.skip_space();
        let start = self.at;
        let value = self.digits();
        let count = self.at - start;
        let leading_zero = count > 1 && self.text.as_bytes()[start] == b'0';
        let ends = matches!(self.peek(), Some(b',' | b'}' | b' ' | b'.'));
        ((1..=19).contains(&count) && !leading_zero && ends).then_some((value, count))
    }

    fn digits(&mut self) -> u64 {
        let mut value: u64 = 0;
        let mut count = 0;
        for digit in self.rest().iter().map(|byte| byte.wrapping_sub(b'0')) {
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            count += 1;
        }
        self.at += count;
        value
    }

    /// Seconds with up to six decimals.
    fn time_us(&mut self) -> Option<u64> {
        let (seconds, count) = self.integer()?;
        let mut us = seconds.checked_mul(1_000_000)?;
        if self.peek() == Some(b'.') {
            self.at += 1;
            let start = self.at;
            let fraction = self.digits();
            let places = self.at - start;
            let ends = matches!(self.peek(), Some(b',' | b'}' | b' '));
            ((1..=6).contains(&places) && ends).then_some(())?;
            us = us.checked_add(fraction * 10_u64.pow(6 - places as u32))?;
        }
        (count <= 10 && us <= MAX_US).then_some(us)
    }

    fn attributes(&mut self, attributes: &mut Attributes<'a>) -> Option<()> {
        self.expect(b'{')?;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Some(());
        }
        loop {
            let name = self.string()?;
            self.expect(b':')?;
            let value = self.string()?;
            let fits = (1..=NAME_BYTES_MAX).contains(&name.len())
                && value.len() <= VALUE_BYTES_MAX
                && attributes.len() < ATTRIBUTES_MAX
                && attributes.iter().all(|(other, _)| *other != name);
            fits.then_some(())?;
            attributes.push((Cow::Borrowed(name), Cow::Borrowed(value)));
            match self.next()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }
}
