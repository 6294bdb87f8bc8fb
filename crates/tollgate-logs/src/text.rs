//! Lines of text: a template of words and variables, as in nginx's `log_format`.

use crate::context::Context;
use crate::entry::{BadLine, Entry, Meaning};
use crate::format::{Format, LineKind};
use memchr::{memchr, memchr2};
use std::borrow::Cow;

/// A template for one kind of line.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    /// The text before the first variable.
    prefix: Box<str>,
    parts: Box<[Part]>,
}

/// A variable and the text after it.
#[derive(Clone, Debug)]
struct Part {
    meaning: Meaning,
    name: Box<str>,
    /// The text that ends the value; empty for the last variable, which takes the rest of the line.
    end: Box<str>,
    /// Whether the value is in quotes, so that a quote inside it is escaped.
    quoted: bool,
}

impl Template {
    /// Parses `$remote_addr - [$time_local]`. `meaning` returns the meaning of a variable.
    pub(crate) fn parse(
        text: &str,
        mut meaning: impl FnMut(&str) -> Meaning,
    ) -> Result<Self, String> {
        let mut pieces = text.split('$');
        let prefix: Box<str> = pieces.next().unwrap_or_default().into();
        let mut parts: Vec<Part> = Vec::new();
        let mut before = prefix.clone();
        for piece in pieces {
            let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let (name, end) = match piece.strip_prefix('{') {
                Some(braced) => braced.split_once('}').ok_or("a `{` has no `}`")?,
                None => piece.split_at(piece.find(|c| !of_name(c)).unwrap_or(piece.len())),
            };
            if name.is_empty() {
                return Err("a `$` has no name after it".into());
            }
            if let Some(last) = parts.last()
                && before.is_empty()
            {
                let last = &last.name;
                return Err(format!("no text separates ${last} and ${name}"));
            }
            let quoted = before.ends_with('"') && end.starts_with('"');
            parts.push(Part { meaning: meaning(name), name: name.into(), end: end.into(), quoted });
            before = end.into();
        }
        if parts.is_empty() {
            Err("it has no variables, such as $remote_addr".into())
        } else {
            Ok(Self { prefix, parts: parts.into() })
        }
    }

    fn read<'l>(
        &self,
        line: &'l str,
        entry: &mut Entry<'l>,
        context: &mut Context,
    ) -> Result<(), BadLine> {
        let mut rest = line.strip_prefix(&*self.prefix).ok_or_else(|| {
            BadLine(format!("the line does not start with {:?}", self.prefix).into())
        })?;
        for (place, part) in self.parts.iter().enumerate() {
            let is_last = place + 1 == self.parts.len();
            let (value, after) = part.split(rest, is_last).ok_or_else(|| {
                BadLine(format!("no {:?} behind ${}", part.end, part.name).into())
            })?;
            let value = if memchr(b'\\', value.as_bytes()).is_some() {
                unescaped(value)
            } else {
                value.into()
            };
            entry.take(part.meaning, value, context)?;
            rest = after;
        }
        Ok(())
    }
}

impl Part {
    /// Returns the value at the start of `rest`, and the text after its end.
    #[inline]
    fn split<'l>(&self, rest: &'l str, is_last: bool) -> Option<(&'l str, &'l str)> {
        let bytes = rest.as_bytes();
        let Some(&first) = self.end.as_bytes().first() else { return Some((rest, "")) };
        let mut from = 0;
        loop {
            let found = if self.quoted {
                memchr2(first, b'\\', bytes.get(from..)?)
            } else {
                memchr(first, bytes.get(from..)?)
            };
            let at = match found {
                Some(found) => from + found,
                // Fields that this version of the template does not have may follow the last one.
                None => return None,
            };
            if self.quoted && bytes[at] == b'\\' {
                from = at + 2;
            } else if bytes[at..].starts_with(self.end.as_bytes()) {
                return Some((rest.get(..at)?, rest.get(at + self.end.len()..)?));
            } else if is_last && bytes[at..] == *self.end.trim_end().as_bytes() {
                return Some((rest.get(..at)?, ""));
            } else {
                from = at + 1;
            }
        }
    }
}

/// Decodes `\x22`, `\"` and `\\`, with which nginx and Apache escape characters.
fn unescaped(value: &str) -> Cow<'_, str> {
    let (mut out, mut rest) = (Vec::with_capacity(value.len()), value.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let (decoded, len) = match (byte, after) {
            (b'\\', [b'x', high, low, ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (16 * high + low, 3),
                _ => (byte, 0),
            },
            (b'\\', [b'n', ..]) => (b'\n', 1),
            (b'\\', [b't', ..]) => (b'\t', 1),
            (b'\\', [b'r', ..]) => (b'\r', 1),
            (b'\\', [next @ (b'"' | b'\\'), ..]) => (*next, 1),
            _ => (byte, 0),
        };
        out.push(decoded);
        rest = &rest[len..];
    }
    Cow::Owned(match String::from_utf8(out) {
        Ok(text) => text,
        Err(bytes) => String::from_utf8_lossy(bytes.as_bytes()).into_owned(),
    })
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// Lines of a few templates. The template that matched last is tried first.
#[derive(Debug)]
pub(crate) struct TextFormat {
    templates: Vec<Template>,
    context: Context,
    last: usize,
}

impl TextFormat {
    pub(crate) fn new(templates: Vec<Template>, context: Context) -> Self {
        Self { templates, context, last: 0 }
    }
}

impl Format for TextFormat {
    fn read<'l>(&mut self, line: &'l str, entry: &mut Entry<'l>) -> Result<LineKind, BadLine> {
        let Self { templates, context, last } = self;
        let mut first_error = None;
        for step in 0..templates.len() {
            let place = (*last + step) % templates.len();
            match templates[place].read(line, entry, context).and_then(|()| entry.finish()) {
                Ok(()) => {
                    *last = place;
                    let kind = if entry.is_http() { LineKind::Request } else { LineKind::NotHttp };
                    return Ok(kind);
                }
                Err(bad) => {
                    first_error.get_or_insert(bad);
                    *entry = Entry::default();
                }
            }
        }
        Err(first_error.unwrap_or(BadLine("no template".into())))
    }
}

#[cfg(test)]
mod tests;
