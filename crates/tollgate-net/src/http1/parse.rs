//! Parses HTTP/1.1 heads: their end, their headers, and the framing of their bodies.

use crate::head::{HEADERS_MAX, HeaderSpan, Headers, KnownHeaders, RequestHead, Span};
use hyper::{StatusCode, Version};
use std::mem::MaybeUninit;
use tollgate_tower::is_header;

/// Limit of headers of an upstream's response.
const RESPONSE_HEADERS_MAX: usize = 100;

/// Body framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    Empty,
    /// `Content-Length`, at least 1.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// Until the connection closes. Responses only.
    UntilClose,
}

/// The reason why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// Not HTTP/1.1, or a line that does not end with CR LF.
    Syntax,
    /// Ambiguous framing.
    Framing,
    /// Two `Host` headers.
    Host,
    /// A target with a fragment, which a request must not have.
    Fragment,
    /// A head that is too large or has too many headers.
    TooLarge,
}

impl ParseError {
    /// The status of the answer.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::TooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// The detail text of the answer.
    pub(crate) fn detail(self) -> &'static str {
        match self {
            Self::Syntax => "the request is not well-formed HTTP/1.1",
            Self::Framing => "the request does not say in one way where its body ends",
            Self::Host => "the request names two hosts",
            Self::Fragment => "the request's target has a fragment",
            Self::TooLarge => "the request's head is too large",
        }
    }
}

/// The persistence tokens of the `Connection` headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Persistence {
    close: bool,
    keep_alive: bool,
}

impl Persistence {
    fn read_connection_header(&mut self, value: &[u8]) {
        for token in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= token.eq_ignore_ascii_case(b"close");
            self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Whether another message may follow.
    fn persists(self, version: Version) -> bool {
        !self.close && (version == Version::HTTP_11 || self.keep_alive)
    }
}

/// A parsed request head. The header positions are in a separate list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParsedRequest {
    /// The length of the head.
    pub(crate) len: usize,
    pub(crate) framing: Framing,
    /// Whether the client may send another request on this connection.
    pub(crate) persists: bool,
    /// Headers that every front end needs. `expects_continue`: the client waits for `100 Continue`.
    pub(crate) known: KnownHeaders,
    version: Version,
    method: Span,
    target: Span,
    path_end: usize,
}

impl ParsedRequest {
    /// The length of head and body, if the head declares it.
    #[inline]
    pub(crate) fn message_len(&self) -> Option<usize> {
        match self.framing {
            Framing::Empty => Some(self.len),
            Framing::Length(length) => usize::try_from(length).ok().map(|length| self.len + length),
            Framing::Chunked | Framing::UntilClose => None,
        }
    }

    /// The head, borrowed from the bytes it was parsed from.
    #[inline]
    pub(crate) fn head<'a>(&self, bytes: &'a [u8], lines: &'a [HeaderSpan]) -> RequestHead<'a> {
        // The parser has checked that both are text, with a space between them.
        let line = self.method.to(self.target).text(bytes);
        let (method, target) = line.split_at_checked(self.method.len()).unwrap_or_default();
        let target = target.get(1..).unwrap_or_default();
        RequestHead {
            method,
            target,
            authority: None,
            version: self.version,
            headers: Headers::new(bytes, lines),
            known: self.known,
            path_end: self.path_end,
        }
    }
}

/// A parsed response head.
#[derive(Clone, Copy, Debug)]
pub struct ParsedResponse {
    /// The length of the head.
    pub len: usize,
    /// The status.
    pub status: StatusCode,
    /// The framing of the body.
    pub framing: Framing,
    /// The declared length, even if no body follows.
    pub length: Option<u64>,
    /// Whether the connection may carry another request.
    pub persists: bool,
    /// Whether the head has a `Connection` header.
    pub has_connection: bool,
    reason: Span,
}

impl ParsedResponse {
    /// The reason phrase.
    pub fn reason<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        self.reason.get(bytes)
    }
}

/// Parses a request's head into `lines`. `None`: the head is incomplete.
#[inline]
pub(crate) fn parse_request(
    bytes: &[u8],
    lines: &mut Vec<HeaderSpan>,
    headers_max: usize,
) -> Result<Option<ParsedRequest>, ParseError> {
    let mut room = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut []);
    let len = match head.parse_with_uninit_headers(bytes, &mut room) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return check_partial_head(bytes).map(|()| None),
        Err(error) => return Err(parse_error(error)),
    };
    let (Some(method), Some(target), Some(minor)) = (head.method, head.path, head.version) else {
        return Err(ParseError::Syntax);
    };
    if head.headers.len() > headers_max {
        return Err(ParseError::TooLarge);
    }
    let version = if minor == 1 { Version::HTTP_11 } else { Version::HTTP_10 };
    let mut declared = DeclaredFraming::default();
    let mut known = KnownHeaders::default();
    let mut are_lines_ended = true;
    lines.clear();
    for httparse::Header { name, value } in head.headers.iter() {
        let span = HeaderSpan::new(name.as_bytes(), value, bytes);
        // The line before a name must end with CR LF; the parser would accept LF alone.
        are_lines_ended &= bytes[..span.name_start()].ends_with(b"\r\n");
        match FramingHeader::from_name(name) {
            Some(header) => declared.read(header, value)?,
            None => known.notice(name.as_bytes(), value, span),
        }
        lines.push(span);
    }
    let method = Span::of(method.as_bytes(), bytes);
    if !are_lines_ended || !is_framed_by_lines(&bytes[..len], method.start()) {
        return Err(ParseError::Syntax);
    }
    if known.hosts > 1 {
        return Err(ParseError::Host);
    }
    let path_end = path_end(target)?;
    let framing = match (declared.is_chunked, declared.length) {
        (true, None) if version == Version::HTTP_11 => Framing::Chunked,
        (true, _) => return Err(ParseError::Framing),
        (false, Some(0) | None) => Framing::Empty,
        (false, Some(length)) => Framing::Length(length),
    };
    known.expects_continue &= framing != Framing::Empty && version == Version::HTTP_11;
    Ok(Some(ParsedRequest {
        len,
        framing,
        persists: declared.persistence.persists(version),
        known,
        version,
        method,
        target: Span::of(target.as_bytes(), bytes),
        path_end,
    }))
}

/// Parses the head of a response; `is_head`: the request was `HEAD`. `None`: the head is
/// incomplete.
pub fn parse_response(
    bytes: &[u8],
    is_head: bool,
    lines: &mut Vec<HeaderSpan>,
) -> Result<Option<ParsedResponse>, ParseError> {
    let mut room = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let len = match config.parse_response_with_uninit_headers(&mut head, bytes, &mut room) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(parse_error(error)),
    };
    let (Some(code), Some(minor)) = (head.code, head.version) else {
        return Err(ParseError::Syntax);
    };
    if head.headers.len() > RESPONSE_HEADERS_MAX {
        return Err(ParseError::TooLarge);
    }
    let status = StatusCode::from_u16(code).map_err(|_| ParseError::Syntax)?;
    let version = if minor == 1 { Version::HTTP_11 } else { Version::HTTP_10 };
    let mut declared = DeclaredFraming { is_response: true, ..DeclaredFraming::default() };
    let mut has_connection = false;
    lines.clear();
    for httparse::Header { name, value } in head.headers.iter() {
        if let Some(header) = FramingHeader::from_name(name) {
            has_connection |= matches!(header, FramingHeader::Connection);
            declared.read(header, value)?;
        }
        lines.push(HeaderSpan::new(name.as_bytes(), value, bytes));
    }
    let has_none = is_head || is_bodiless(status);
    let framing = match (declared.is_chunked, declared.length) {
        _ if has_none => Framing::Empty,
        // Upstreams are trusted: a length beside `chunked` is dropped (RFC 9112), and the
        // connection does not persist.
        (true, _) if version == Version::HTTP_11 => Framing::Chunked,
        (true, _) => return Err(ParseError::Framing),
        (false, Some(0)) => Framing::Empty,
        (false, Some(length)) => Framing::Length(length),
        (false, None) => Framing::UntilClose,
    };
    let has_length_and_chunked = declared.is_chunked && declared.length.is_some();
    let reason = head.reason.unwrap_or_default().as_bytes();
    Ok(Some(ParsedResponse {
        len,
        status,
        framing,
        length: declared.length.filter(|_| !declared.is_chunked),
        persists: declared.persistence.persists(version)
            && framing != Framing::UntilClose
            && !has_length_and_chunked,
        has_connection,
        reason: Span::of(reason, bytes),
    }))
}

/// Whether responses with this status never have a body, whatever their headers say.
pub(super) fn is_bodiless(status: StatusCode) -> bool {
    status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// The framing and persistence that the headers declare.
#[derive(Default)]
struct DeclaredFraming {
    is_response: bool,
    length: Option<u64>,
    is_chunked: bool,
    persistence: Persistence,
}

/// A header that declares framing or persistence.
#[derive(Clone, Copy)]
enum FramingHeader {
    Connection,
    ContentLength,
    TransferEncoding,
}

impl FramingHeader {
    /// Matches the length first: few other names share one.
    #[inline]
    fn from_name(name: &str) -> Option<Self> {
        let is = |known: &str| is_header(name.as_bytes(), known);
        match name.len() {
            10 if is("connection") => Some(Self::Connection),
            14 if is("content-length") => Some(Self::ContentLength),
            17 if is("transfer-encoding") => Some(Self::TransferEncoding),
            _ => None,
        }
    }
}

impl DeclaredFraming {
    fn read(&mut self, header: FramingHeader, value: &[u8]) -> Result<(), ParseError> {
        match header {
            FramingHeader::ContentLength => {
                let list = || parse_length_list(value).filter(|_| self.is_response);
                let length = parse_decimal(value).or_else(list).ok_or(ParseError::Framing)?;
                let earlier = self.length.replace(length);
                // An upstream may repeat an equal `Content-Length`. From a client, a second one may
                // be request smuggling.
                if earlier.is_some_and(|said| !self.is_response || said != length) {
                    return Err(ParseError::Framing);
                }
            }
            FramingHeader::TransferEncoding => {
                if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(ParseError::Framing);
                }
                self.is_chunked = true;
            }
            FramingHeader::Connection => self.persistence.read_connection_header(value),
        }
        Ok(())
    }
}

/// Parses a length: digits only, and not too many.
pub fn parse_decimal(digits: &[u8]) -> Option<u64> {
    let is_plain = (1..=18).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    is_plain.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// Parses a list of equal lengths: `2, 2` is two.
fn parse_length_list(value: &[u8]) -> Option<u64> {
    let mut items = value.split(|byte| *byte == b',').map(|item| parse_decimal(item.trim_ascii()));
    let first = items.next()??;
    items.all(|item| item == Some(first)).then_some(first)
}

/// Whether a request's head begins and ends with whole lines. Empty lines may precede a request:
/// some clients send one after a body.
#[inline]
fn is_framed_by_lines(head: &[u8], start: usize) -> bool {
    let (pairs, odd) = head[..start].as_chunks::<2>();
    head.ends_with(b"\r\n\r\n") && odd.is_empty() && pairs.iter().all(|pair| pair == b"\r\n")
}

/// The end of the path in a target. A fragment is an error.
#[inline]
fn path_end(target: &str) -> Result<usize, ParseError> {
    let target = target.as_bytes();
    match memchr::memchr2(b'?', b'#', target) {
        Some(end) if memchr::memchr(b'#', &target[end..]).is_some() => Err(ParseError::Fragment),
        end => Ok(end.unwrap_or(target.len())),
    }
}

/// Refuses an incomplete head as soon as its lines cannot start a valid one.
fn check_partial_head(bytes: &[u8]) -> Result<(), ParseError> {
    for at in memchr::memchr_iter(b'\n', bytes) {
        if at == 0 || bytes[at - 1] != b'\r' {
            return Err(ParseError::Syntax);
        }
    }
    Ok(())
}

fn parse_error(error: httparse::Error) -> ParseError {
    match error {
        httparse::Error::TooManyHeaders => ParseError::TooLarge,
        _ => ParseError::Syntax,
    }
}
