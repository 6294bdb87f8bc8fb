//! One request of a log, and the meaning of the parts of a line.

use crate::context::Context;
use crate::time::{self, TimeForm};
use std::borrow::Cow;
use std::fmt;

/// A part of a request that most logs have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The address of the peer, or of the client if the log has it.
    Ip,
    /// The method.
    Method,
    /// The path, without its query.
    Path,
    /// The query, without the question mark.
    Query,
    /// The host that the client requested.
    Host,
    /// The authenticated user.
    User,
    /// The `User-Agent` header.
    UserAgent,
    /// The `Referer` header.
    Referer,
    /// The `X-Forwarded-For` header.
    ForwardedFor,
    /// The `Cookie` header.
    Cookie,
}

/// The number of fields.
pub(crate) const FIELDS: usize = 10;

/// One request. An empty value is absent.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Entry<'l> {
    /// The start of the request, in microseconds since 1970.
    pub time_us: u64,
    /// The status of the response; zero if the log has none.
    pub status: u16,
    /// The duration of the response.
    pub duration_us: Option<u64>,
    /// The bytes of the response.
    pub bytes: Option<u64>,
    pub(crate) values: [Cow<'l, str>; FIELDS],
    /// Values of [`ReadOptions::attributes`](crate::ReadOptions), by their index there.
    pub(crate) attributes: Vec<(usize, Cow<'l, str>)>,
    /// The day, in lines with separate date and time.
    date_us: Option<u64>,
    is_end: bool,
    has_time: bool,
}

/// The meaning of a part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Not used.
    Skip,
    /// A field, taken unchanged.
    Value(Field),
    /// An address, with or without a port.
    Address,
    /// A path with its query, or a whole URL.
    Target,
    /// Method, target and version.
    RequestLine,
    Status,
    Bytes,
    /// A duration; the number is the unit in nanoseconds.
    Duration(u64),
    /// A duration that is added to the duration so far.
    MoreDuration(u64),
    /// The start of the request.
    Time(TimeForm),
    /// The end of the response.
    EndTime(TimeForm),
    /// A date, and a time of day.
    Date,
    TimeOfDay,
    /// A requested attribute, by its index.
    Attribute(usize),
}

/// The error for a line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine(pub(crate) Cow<'static, str>);

impl BadLine {
    pub(crate) fn of(part: &'static str, value: &str) -> Self {
        let mut shown: String = value.chars().take(40).collect();
        if shown.len() < value.len() {
            shown.push_str("...");
        }
        Self(format!("{part}: {shown:?}").into())
    }
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadLine {}

impl<'l> Entry<'l> {
    /// The value of a field; empty if the line does not have it.
    pub fn value(&self, field: Field) -> &str {
        &self.values[field as usize]
    }

    pub(crate) fn set(&mut self, field: Field, value: Cow<'l, str>) {
        self.values[field as usize] = value;
    }

    /// Whether the line is about an HTTP request.
    pub(crate) fn is_http(&self) -> bool {
        !self.value(Field::Method).is_empty() || !self.value(Field::Path).is_empty()
    }

    /// Takes a part of the line. An empty part and `-` count as absent.
    #[inline]
    pub(crate) fn take(
        &mut self,
        meaning: Meaning,
        value: Cow<'l, str>,
        context: &mut Context,
    ) -> Result<(), BadLine> {
        if meaning == Meaning::Skip || matches!(&*value, "" | "-") {
            return Ok(());
        }
        match meaning {
            Meaning::Skip => {}
            Meaning::Value(field) => self.set(field, value),
            Meaning::Address => self.take_address(value)?,
            Meaning::RequestLine => self.take_request_line(value),
            Meaning::Target => self.take_target(value),
            Meaning::Attribute(place) => self.attributes.push((place, value)),
            Meaning::Status => {
                self.status = value.parse().map_err(|_| BadLine::of("no status", &value))?;
            }
            Meaning::Bytes => self.bytes = value.parse().ok(),
            Meaning::Duration(unit_ns) => self.duration_us = time::decimal_us(&value, unit_ns),
            Meaning::MoreDuration(unit_ns) => {
                let more = time::decimal_us(&value, unit_ns);
                self.duration_us = self.duration_us.zip(more).map(|(a, b)| a.saturating_add(b));
            }
            Meaning::Time(form) => self.take_time(context.instant(form, &value), &value)?,
            Meaning::EndTime(form) => {
                self.take_time(context.instant(form, &value), &value)?;
                self.is_end = true;
            }
            Meaning::Date => self.date_us = time::date_us(&value),
            Meaning::TimeOfDay => {
                let at = self.date_us.zip(time::time_of_day_us(&value));
                let at = at.map(|(date_us, of_day_us)| date_us.saturating_add(of_day_us));
                self.take_time(at, &value)?;
                self.is_end = true;
            }
        }
        Ok(())
    }

    /// Checks that the line has a time, and converts it to the start of the request.
    pub(crate) fn finish(&mut self) -> Result<(), BadLine> {
        if !self.has_time {
            return Err(BadLine("the line has no time".into()));
        }
        if self.is_end {
            self.time_us = self.time_us.saturating_sub(self.duration_us.unwrap_or(0));
        }
        Ok(())
    }

    /// Takes an address, judged by its characters only. The peer of a Unix socket has none.
    fn take_address(&mut self, value: Cow<'l, str>) -> Result<(), BadLine> {
        let of_address = |byte: u8| byte.is_ascii_hexdigit() || b".:[]%".contains(&byte);
        if value.bytes().all(of_address) && value.contains(['.', ':']) {
            self.set(Field::Ip, value);
        } else if !value.starts_with("unix:") {
            return Err(BadLine::of("no address", &value));
        }
        Ok(())
    }

    fn take_time(&mut self, time_us: Option<u64>, value: &str) -> Result<(), BadLine> {
        let time_us = time_us.filter(|time_us| *time_us <= time::MAX_US);
        self.time_us = time_us.ok_or_else(|| BadLine::of("no time", value))?;
        self.has_time = true;
        Ok(())
    }

    /// Takes `GET /path?query HTTP/1.1`. If the bytes are not a request line, the entry has no
    /// method and no path.
    fn take_request_line(&mut self, value: Cow<'l, str>) {
        let Some((method, rest)) = value.split_once(' ') else { return };
        let is_method = |byte: u8| byte.is_ascii_alphabetic() || byte == b'-' || byte == b'_';
        let (target, version) = rest.rsplit_once(' ').unwrap_or((rest, ""));
        let target = if version.starts_with("HTTP/") { target } else { rest };
        if method.is_empty() || !method.bytes().all(is_method) || target.is_empty() {
            return;
        }
        let (start, len) = (method.len() + 1, target.len());
        match value {
            Cow::Borrowed(text) => {
                self.set(Field::Method, Cow::Borrowed(&text[..start - 1]));
                self.take_target(Cow::Borrowed(&text[start..start + len]));
            }
            Cow::Owned(text) => {
                self.set(Field::Method, Cow::Owned(text[..start - 1].to_owned()));
                self.take_target(Cow::Owned(text[start..start + len].to_owned()));
            }
        }
    }

    /// Takes a path with its query, or a whole URL with its host.
    fn take_target(&mut self, value: Cow<'l, str>) {
        let scheme = value.find("://").filter(|at| !value[..*at].contains(['/', '?']));
        let (host, path_start) = match scheme {
            Some(at) => {
                let host = at + 3;
                let end = value[host..].find(['/', '?']).map_or(value.len(), |end| host + end);
                (host..end, end)
            }
            None => (0..0, 0),
        };
        let query = value[path_start..].find('?').map(|at| path_start + at);
        let path = path_start..query.unwrap_or(value.len());
        let query = query.map_or(0..0, |at| at + 1..value.len());
        let part = |range: std::ops::Range<usize>| match &value {
            Cow::Borrowed(text) => Cow::Borrowed(&text[range]),
            Cow::Owned(text) => Cow::Owned(text[range].to_owned()),
        };
        if !host.is_empty() {
            self.set(Field::Host, part(host));
        }
        if path.is_empty() {
            self.set(Field::Path, Cow::Borrowed("/"));
        } else {
            self.set(Field::Path, part(path));
        }
        if !query.is_empty() {
            self.set(Field::Query, part(query));
        }
    }
}
