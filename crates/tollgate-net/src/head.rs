//! Message heads as bytes: headers unchanged, in the order received.
//!
//! HTTP/1.1 heads are parsed in place. HTTP/2 heads are converted to this form, so every front end
//! reads one form.

use hyper::{
    HeaderMap, Method, Uri, Version,
    header::{HeaderName, HeaderValue},
    http::{request::Parts, uri::Scheme},
};
use tollgate_tower::{Head, is_header};

/// More headers than any message has here. One bit of a mask stands for each.
pub(crate) const HEADERS_MAX: usize = 128;

/// The position of a header in the bytes of its head.
#[derive(Clone, Copy, Debug)]
pub struct HeaderSpan {
    name: Span,
    value: Span,
}

/// A range of bytes. Heads are shorter than 64 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u16,
    end: u16,
}

impl Span {
    /// The position of `part` within `bytes`; an empty part has any position.
    #[inline]
    pub(crate) fn of(part: &[u8], bytes: &[u8]) -> Self {
        if part.is_empty() { Self::default() } else { Self::of_some(part, bytes) }
    }

    /// The position of a non-empty `part` within `bytes`.
    #[inline]
    fn of_some(part: &[u8], bytes: &[u8]) -> Self {
        let start = part.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
        Self { start: start as u16, end: (start + part.len()) as u16 }
    }

    /// The range from the start of this span to the end of the other.
    #[inline]
    pub(crate) fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end }
    }

    #[inline]
    pub(crate) fn start(self) -> usize {
        self.start.into()
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        usize::from(self.end - self.start)
    }

    #[inline]
    pub(crate) fn get(self, bytes: &[u8]) -> &[u8] {
        bytes.get(usize::from(self.start)..usize::from(self.end)).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn text(self, bytes: &[u8]) -> &str {
        str::from_utf8(self.get(bytes)).unwrap_or_default()
    }
}

impl HeaderSpan {
    /// The positions of `name` and `value`, which are slices of `bytes`.
    #[inline]
    pub fn new(name: &[u8], value: &[u8], bytes: &[u8]) -> Self {
        Self { name: Span::of_some(name, bytes), value: Span::of(value, bytes) }
    }

    #[inline]
    pub(crate) fn name_start(&self) -> usize {
        self.name.start()
    }
}

/// The headers of a message. Hidden headers count as absent.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'a> {
    bytes: &'a [u8],
    lines: &'a [HeaderSpan],
    hidden: u128,
}

impl<'a> Headers<'a> {
    /// The headers at these positions of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8], lines: &'a [HeaderSpan]) -> Self {
        Self { bytes, lines, hidden: 0 }
    }

    /// Names, in any case, and values, in the order received.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let Self { bytes, lines, hidden } = *self;
        let shown = move |(index, line): (usize, &HeaderSpan)| {
            is_shown(hidden, index).then(|| (line.name.get(bytes), line.value.get(bytes)))
        };
        lines.iter().enumerate().filter_map(shown)
    }

    /// The values of all headers with this name, in any case; `name` is in lower case.
    #[inline]
    pub fn all<'n>(
        &self,
        name: &'n str,
    ) -> impl DoubleEndedIterator<Item = &'a [u8]> + use<'a, 'n> {
        debug_assert!(!name.bytes().any(|byte| byte.is_ascii_uppercase()), "{name} has capitals");
        let Self { bytes, lines, hidden } = *self;
        // One closure: a chain of adapters over `iter` would not be inlined.
        let value = move |(index, line): (usize, &HeaderSpan)| {
            let is_named = is_same_name(line.name.get(bytes), name.as_bytes());
            (is_named && is_shown(hidden, index)).then(|| line.value.get(bytes))
        };
        lines.iter().enumerate().filter_map(value)
    }

    /// The first value of this header, whose name is in lower case.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    /// The first value of this header, if it is text.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(|value| str::from_utf8(value).ok())
    }

    /// Hides the headers for whose name `goes` returns true.
    pub fn hide(&mut self, goes: impl Fn(&[u8]) -> bool) {
        for (index, line) in self.lines.iter().enumerate().take(HEADERS_MAX) {
            if goes(line.name.get(self.bytes)) {
                self.hidden |= 1 << index;
            }
        }
    }

    /// Converts to a map, for code that changes or merges headers.
    pub fn to_map(&self) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.lines.len());
        for (name, value) in self.iter() {
            let name = HeaderName::from_bytes(name);
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
                map.append(name, value);
            }
        }
        map
    }
}

/// Whether the header with this index is not hidden.
#[inline]
fn is_shown(hidden: u128, index: usize) -> bool {
    hidden == 0 || hidden >> (index % HEADERS_MAX) & 1 == 0
}

/// Whether a name in any case is `name`, which is in lower case. Exact, unlike [`is_header`]: the
/// names of a policy may have characters that it takes for others.
#[inline]
fn is_same_name(own: &[u8], name: &[u8]) -> bool {
    let is_same = |own: &[u8; WORD], name: &[u8; WORD]| lowercase_word(*own) == *name;
    if own.len() != name.len() {
        return false;
    }
    match (own.last_chunk(), name.last_chunk()) {
        // The last word may overlap the one before it.
        (Some(own_last), Some(last)) => {
            let mut words = own.as_chunks().0.iter().zip(name.as_chunks().0);
            is_same(own_last, last) && words.all(|(own, name)| is_same(own, name))
        }
        _ => own.eq_ignore_ascii_case(name),
    }
}

/// The bytes of a name that [`lowercase_word`] converts at once.
pub(crate) const WORD: usize = size_of::<u64>();

/// Converts eight bytes to lower case. Sets the case bit of each byte between `A` and `Z`.
#[inline]
pub fn lowercase_word(bytes: [u8; WORD]) -> [u8; WORD] {
    const ONES: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(bytes);
    let low = word & (ONES * 0x7f);
    // Sets the top bit of each byte that is at least `least`.
    let at_least = |least: u8| low + ONES * u64::from(0x80 - least);
    let capitals = at_least(b'A') & !at_least(b'Z' + 1) & !word & (ONES * 0x80);
    (word | capitals >> 2).to_le_bytes()
}

/// Headers that every front end asks about, noticed while a head is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownHeaders {
    /// The number of `Host` headers.
    pub hosts: u8,
    /// Whether an `Origin` header exists.
    pub has_origin: bool,
    /// Whether a `Content-Encoding` header exists.
    pub has_content_encoding: bool,
    /// Whether the client waits for `100 Continue`.
    pub expects_continue: bool,
    /// The first value of `Content-Type`.
    content_type: Option<Span>,
}

impl KnownHeaders {
    /// Records a header if its name is one of these.
    #[inline]
    pub(crate) fn notice(&mut self, name: &[u8], value: &[u8], span: HeaderSpan) {
        let is = |known: &str| is_header(name, known);
        match name.len() {
            4 if is("host") => self.hosts = self.hosts.saturating_add(1),
            6 if is("origin") => self.has_origin = true,
            6 if is("expect") => {
                self.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
            }
            12 if is("content-type") => {
                self.content_type.get_or_insert(span.value);
            }
            16 if is("content-encoding") => self.has_content_encoding = true,
            _ => {}
        }
    }
}

/// The head of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// The method, as sent.
    pub method: &'a str,
    /// The target, as sent; of an HTTP/2 request, its path and query.
    pub target: &'a str,
    /// The `:authority` of an HTTP/2 request.
    pub authority: Option<&'a str>,
    /// The version of HTTP.
    pub version: Version,
    /// The headers.
    pub headers: Headers<'a>,
    /// The headers that every front end needs, as recorded by the parser.
    pub known: KnownHeaders,
    /// The end of the path, in a target that starts with a path.
    pub(crate) path_end: usize,
}

impl<'a> RequestHead<'a> {
    /// Creates a head, and records the headers that every front end needs.
    pub fn new(
        method: &'a str,
        target: &'a str,
        authority: Option<&'a str>,
        version: Version,
        headers: Headers<'a>,
    ) -> Self {
        let mut known = KnownHeaders::default();
        for span in headers.lines {
            let (name, value) = (span.name.get(headers.bytes), span.value.get(headers.bytes));
            known.notice(name, value, *span);
        }
        let path_end = target.find('?').unwrap_or(target.len());
        Self { method, target, authority, version, headers, known, path_end }
    }

    /// The first `Content-Type`.
    #[inline]
    pub fn content_type(&self) -> Option<&'a [u8]> {
        self.known.content_type.map(|span| span.get(self.headers.bytes))
    }

    /// The target without scheme and authority, and the authority.
    #[inline]
    fn split(&self) -> (&'a str, Option<&'a str>) {
        if self.target.starts_with('/') {
            return (self.target, self.authority);
        }
        match self.target.split_once("://") {
            Some((_, rest)) => {
                let end = rest.find(['/', '?']).unwrap_or(rest.len());
                (&rest[end..], Some(&rest[..end]))
            }
            None => (self.target, self.authority),
        }
    }

    /// The path and query of the target; `/` if the target names only a host.
    #[inline]
    pub fn path_and_query(&self) -> &'a str {
        match self.split().0 {
            "" => "/",
            path => path,
        }
    }

    /// The host and port in the target, else the `:authority`.
    #[inline]
    pub fn target_authority(&self) -> Option<&'a str> {
        self.split().1
    }

    /// The path, without the query.
    #[inline]
    pub fn path(&self) -> &'a str {
        if self.target.starts_with('/') {
            return &self.target[..self.path_end];
        }
        let target = self.path_and_query();
        let path = memchr::memchr(b'?', target.as_bytes()).map_or(target, |end| &target[..end]);
        if path.is_empty() { "/" } else { path }
    }

    /// The query, without the question mark.
    #[inline]
    pub fn query(&self) -> Option<&'a str> {
        self.path_and_query().split_once('?').map(|(_, query)| query)
    }
}

impl RequestHead<'_> {
    /// Converts to [`Parts`]; `None` if method or target is invalid. Allocates: not for the hot
    /// path.
    pub fn to_parts(&self) -> Option<Parts> {
        let mut parts = hyper::Request::new(()).into_parts().0;
        parts.method = Method::from_bytes(self.method.as_bytes()).ok()?;
        parts.uri = self.target.parse().ok()?;
        if let (None, Some(authority)) = (parts.uri.authority(), self.authority) {
            let mut uri = parts.uri.into_parts();
            (uri.scheme, uri.authority) = (Some(Scheme::HTTP), authority.parse().ok());
            parts.uri = Uri::from_parts(uri).ok()?;
        }
        parts.version = self.version;
        parts.headers = self.headers.to_map();
        Some(parts)
    }
}

impl Head for RequestHead<'_> {
    fn method(&self) -> &str {
        self.method
    }

    #[inline]
    fn path(&self) -> &str {
        RequestHead::path(self)
    }

    fn query(&self) -> Option<&str> {
        RequestHead::query(self)
    }

    fn host(&self) -> Option<&str> {
        let authority = self.target_authority()?;
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let end = match host.rfind(']') {
            Some(end) => end + 1,
            None => host.find(':').unwrap_or(host.len()),
        };
        Some(&host[..end])
    }

    #[inline]
    fn header_values<'h>(&'h self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &'h [u8]> {
        self.headers.all(name.as_str())
    }
}
