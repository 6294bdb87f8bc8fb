//! Amazon CloudFront: standard logs, with columns named by `#Fields:`.

use super::{Format, FormatError, FormatSpec, LineKind, ReadOptions};
use crate::columns::Columns;
use crate::context::Context;
use crate::entry::{BadLine, Entry, Field, Meaning};
use std::borrow::Cow;

pub(super) const SPEC: FormatSpec = FormatSpec { name: "cloudfront", build };

struct CloudFront {
    options: ReadOptions,
    columns: Columns,
    context: Context,
}

fn build(options: &ReadOptions) -> Result<Box<dyn Format>, FormatError> {
    let context = Context::new(options.zone.clone());
    let columns = Columns { meanings: Vec::new(), separator: b'\t' };
    Ok(Box::new(CloudFront { options: options.clone(), columns, context }))
}

impl CloudFront {
    fn meaning(&self, name: &str, has_host_header: bool) -> Meaning {
        if let Some(place) = self.options.place_of(name) {
            return Meaning::Attribute(place);
        }
        match name {
            "date" => Meaning::Date,
            "time" => Meaning::TimeOfDay,
            "c-ip" => Meaning::Address,
            "cs-method" => Meaning::Value(Field::Method),
            // The name of the distribution, unless the log has the client's host.
            "cs(Host)" if !has_host_header => Meaning::Value(Field::Host),
            "x-host-header" => Meaning::Value(Field::Host),
            "cs-uri-stem" => Meaning::Value(Field::Path),
            "cs-uri-query" => Meaning::Value(Field::Query),
            "cs(User-Agent)" => Meaning::Value(Field::UserAgent),
            "cs(Referer)" => Meaning::Value(Field::Referer),
            "cs(Cookie)" => Meaning::Value(Field::Cookie),
            "x-forwarded-for" => Meaning::Value(Field::ForwardedFor),
            "sc-status" => Meaning::Status,
            "sc-bytes" => Meaning::Bytes,
            "time-taken" => Meaning::Duration(1_000_000_000),
            _ => Meaning::Skip,
        }
    }
}

impl Format for CloudFront {
    fn read<'l>(&mut self, line: &'l str, entry: &mut Entry<'l>) -> Result<LineKind, BadLine> {
        if let Some(comment) = line.strip_prefix('#') {
            if let Some(names) = comment.strip_prefix("Fields:") {
                let has_host = names.contains("x-host-header");
                let names = names.split_ascii_whitespace();
                self.columns.meanings = names.map(|name| self.meaning(name, has_host)).collect();
            }
            return Ok(LineKind::Heading);
        }
        if !self.columns.has_time() {
            return Err(BadLine("no `#Fields:` with date and time is above the line".into()));
        }
        self.columns.read(line, entry, &mut self.context)?;
        // CloudFront percent-encodes spaces and quotes in these two fields.
        for field in [Field::UserAgent, Field::Referer] {
            if entry.value(field).contains('%') {
                let decoded = percent_decoded(entry.value(field));
                entry.set(field, Cow::Owned(decoded));
            }
        }
        Ok(if entry.is_http() { LineKind::Request } else { LineKind::NotHttp })
    }
}

fn percent_decoded(value: &str) -> String {
    let (mut out, mut rest) = (Vec::with_capacity(value.len()), value.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        let hex = |digit: &u8| char::from(*digit).to_digit(16).map(|value| value as u8);
        let decoded = match (byte, after) {
            (b'%', [high, low, ..]) => hex(high).zip(hex(low)).map(|(a, b)| 16 * a + b),
            _ => None,
        };
        out.push(decoded.unwrap_or(byte));
        rest = if decoded.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&out).into_owned()
}
