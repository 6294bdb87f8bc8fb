//! Lines of columns, with the names of the columns in an earlier line: CSV, and CloudFront's
//! tables.

use crate::context::Context;
use crate::entry::{BadLine, Entry, Meaning};
use memchr::memchr;
use std::borrow::Cow;

/// The meaning of each column, and the separator.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) meanings: Vec<Meaning>,
    pub(crate) separator: u8,
}

impl Columns {
    /// Whether the columns include a time, which every request needs.
    pub(crate) fn has_time(&self) -> bool {
        let is_time = |meaning: &Meaning| {
            matches!(meaning, Meaning::Time(_) | Meaning::EndTime(_) | Meaning::TimeOfDay)
        };
        self.meanings.iter().any(is_time)
    }

    /// Reads the columns of a line. Columns without a name are ignored.
    pub(crate) fn read<'l>(
        &self,
        line: &'l str,
        entry: &mut Entry<'l>,
        context: &mut Context,
    ) -> Result<(), BadLine> {
        let mut rest = Some(line);
        for (place, meaning) in self.meanings.iter().enumerate() {
            let Some(text) = rest else {
                let (found, named) = (place, self.meanings.len());
                return Err(BadLine(format!("{found} columns of {named}").into()));
            };
            let (value, after) = next_column(text, self.separator)?;
            entry.take(*meaning, value, context)?;
            rest = after;
        }
        entry.finish()
    }
}

/// Splits a line into the names of columns.
pub(crate) fn names(line: &str, separator: u8) -> Result<Vec<String>, BadLine> {
    let (mut names, mut rest) = (Vec::new(), Some(line));
    while let Some(text) = rest {
        let (name, after) = next_column(text, separator)?;
        names.push(name.trim().to_owned());
        rest = after;
    }
    Ok(names)
}

/// Returns the first column, and the text after its separator. Quotes are those of RFC 4180.
fn next_column(text: &str, separator: u8) -> Result<(Cow<'_, str>, Option<&str>), BadLine> {
    let Some(quoted) = text.strip_prefix('"') else {
        return Ok(match memchr(separator, text.as_bytes()) {
            Some(at) => (text[..at].into(), Some(&text[at + 1..])),
            None => (text.into(), None),
        });
    };
    let mut value = Cow::Borrowed("");
    let mut rest = quoted;
    loop {
        let Some(at) = memchr(b'"', rest.as_bytes()) else {
            return Err(BadLine("a quote is not closed".into()));
        };
        if value.is_empty() {
            value = rest[..at].into()
        } else {
            value.to_mut().push_str(&rest[..at])
        }
        rest = &rest[at + 1..];
        match rest.as_bytes().first() {
            None => return Ok((value, None)),
            Some(b'"') => {
                value.to_mut().push('"');
                rest = &rest[1..];
            }
            Some(byte) if *byte == separator => return Ok((value, Some(&rest[1..]))),
            Some(_) => return Err(BadLine("text follows a closed quote".into())),
        }
    }
}
