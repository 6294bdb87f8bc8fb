//! Where a request's head ends, and how long its body is.

use super::Broken;
use memchr::memchr;

/// A head that is being read. What has been looked at is not looked at again when more comes.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// How much of the head, from its first byte, is complete lines.
    lines: usize,
    begun: bool,
    length: Option<u64>,
    chunked: bool,
    upgrade: bool,
    hosts: u32,
}

/// What follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) body: Body,
    pub(super) upgrade: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    None,
    Length(u64),
    Chunked,
}

impl Head {
    /// Looks at the head's bytes from its first on. `None` as long as it has no end.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<Option<(usize, Next)>, Broken> {
        while let Some(len) = memchr(b'\n', &bytes[self.lines..]) {
            let line = &bytes[self.lines..self.lines + len];
            let line = line.strip_suffix(b"\r").ok_or(Broken)?;
            self.lines += len + 1;
            match (line.is_empty(), self.begun) {
                // Empty lines before a request are left by clients that end a body with one.
                (true, false) => {}
                (true, true) => return self.end().map(|next| Some((self.lines, next))),
                (false, false) => {
                    self.begun = true;
                    has_no_fragment(line)?;
                }
                (false, true) => self.field(line)?,
            }
        }
        Ok(None)
    }

    fn field(&mut self, line: &[u8]) -> Result<(), Broken> {
        if matches!(line.first(), Some(b' ' | b'\t')) {
            return Err(Broken);
        }
        let colon = memchr(b':', line).ok_or(Broken)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        match name.len() {
            14 if is(b"content-length") => {
                let length = decimal(value).filter(|_| self.length.is_none());
                self.length = Some(length.ok_or(Broken)?);
            }
            17 if is(b"transfer-encoding") => {
                if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Broken);
                }
                self.chunked = true;
            }
            4 if is(b"host") => self.hosts += 1,
            7 if is(b"upgrade") => self.upgrade = true,
            _ => {}
        }
        Ok(())
    }

    fn end(&self) -> Result<Next, Broken> {
        let body = match (self.chunked, self.length) {
            (true, Some(_)) => return Err(Broken),
            (true, None) => Body::Chunked,
            (false, Some(0) | None) => Body::None,
            (false, Some(length)) => Body::Length(length),
        };
        match self.hosts {
            0 | 1 => Ok(Next { body, upgrade: self.upgrade }),
            _ => Err(Broken),
        }
    }
}

/// A fragment is its client's own affair and no part of a target: whoever ignores it and whoever does not see two paths.
fn has_no_fragment(line: &[u8]) -> Result<(), Broken> {
    // A method may have the sign in it.
    let target = memchr(b' ', line).map_or(&line[..0], |space| &line[space..]);
    match memchr(b'#', target) {
        None => Ok(()),
        Some(_) => Err(Broken),
    }
}

/// Digits only, and no more than any body has.
fn decimal(digits: &[u8]) -> Option<u64> {
    let plain = (1..=18).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    plain.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}
