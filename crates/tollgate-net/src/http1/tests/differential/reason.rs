//! Reasons why conversations are refused that hyper accepts.

use crate::{
    Framing, Limits, ParseError,
    http1::{chunked::ChunkedDecoder, parse::parse_request},
};
use std::ops::Range;

/// The reason why this server refuses a request that hyper accepts, or accepts one that hyper
/// refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// A line ends with LF alone. Programs disagree whether that ends a line.
    BareLf,
    /// The target has a fragment, which hyper silently drops.
    Fragment,
    /// There are two `Host` headers.
    TwoHosts,
    /// There are two lengths. hyper accepts two equal ones.
    TwoLengths,
    /// A length has too many digits.
    LongLength,
    /// There is a length beside a transfer coding. hyper drops the length.
    LengthAndChunked,
    /// The transfer coding is not `chunked` alone: a list, or repeated.
    OtherCoding,
    /// White space follows a chunk size.
    SpaceAfterSize,
    /// `Connection` has non-ASCII bytes. hyper overlooks the `close` beside them.
    ConnectionIsNoText,
    /// hyper refuses targets that its URI type cannot parse.
    TargetIsNoUri,
}

/// The end of a conversation that is read in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// All bytes were read, or the last request is incomplete.
    Open,
    /// The client announced that no request follows.
    Closed,
    /// The head at this position is refused.
    Head(usize, ParseError),
    /// The body is refused at this byte.
    Body(usize),
}

/// The ranges of requests with accepted heads, and the end of the conversation. Ignores trailers.
pub(super) fn walk(bytes: &[u8]) -> (Vec<Range<usize>>, Ending) {
    let fields_max = Limits::default().headers_max;
    let (mut spans, mut lines) = (Vec::new(), Vec::new());
    let mut at = 0;
    loop {
        let parsed = match parse_request(&bytes[at..], &mut lines, fields_max) {
            _ if at == bytes.len() => return (spans, Ending::Open),
            Ok(Some(parsed)) => parsed,
            Ok(None) => return (spans, Ending::Open),
            Err(why) => return (spans, Ending::Head(at, why)),
        };
        let start = at;
        at += parsed.len;
        spans.push(start..at);
        match parsed.framing {
            Framing::Length(length) => at = at.saturating_add(length as usize),
            Framing::Chunked => {
                let mut decoder = ChunkedDecoder::default();
                while at < bytes.len() && !decoder.is_finished() {
                    if decoder.next(&bytes[at..=at]).is_err() {
                        return (spans, Ending::Body(at));
                    }
                    at += 1;
                }
            }
            Framing::Empty | Framing::UntilClose => {}
        }
        if !parsed.persists {
            return (spans, Ending::Closed);
        }
        at = at.min(bytes.len());
    }
}

impl Reason {
    /// The reason why hyper read more of a conversation.
    pub(super) fn find(
        bytes: &[u8],
        spans: &[Range<usize>],
        end: Ending,
        whole: usize,
    ) -> Option<Self> {
        match end {
            Ending::Head(at, why) => Self::of_head(&bytes[at..], why),
            Ending::Body(at) => Self::of_body(bytes, at),
            Ending::Closed => {
                let head = &bytes[spans.get(whole.checked_sub(1)?)?.clone()];
                let values = values(head, b"connection");
                values.iter().any(|value| !value.is_ascii()).then_some(Self::ConnectionIsNoText)
            }
            Ending::Open => None,
        }
    }

    fn of_head(rest: &[u8], why: ParseError) -> Option<Self> {
        let mut room = [httparse::EMPTY_HEADER; 128];
        let mut request = httparse::Request::new(&mut room);
        let Ok(httparse::Status::Complete(len)) = request.parse(rest) else { return None };
        let head = &rest[..len];
        let has_bare_lf =
            (0..len).any(|at| head[at] == b'\n' && (at == 0 || head[at - 1] != b'\r'));
        let lengths = values(head, b"content-length");
        let codings = values(head, b"transfer-encoding");
        let is_chunked = codings.len() == 1 && codings[0].eq_ignore_ascii_case(b"chunked");
        match why {
            ParseError::Syntax => has_bare_lf.then_some(Self::BareLf),
            ParseError::Fragment => request.path?.contains('#').then_some(Self::Fragment),
            ParseError::Host => (values(head, b"host").len() > 1).then_some(Self::TwoHosts),
            ParseError::Framing if !codings.is_empty() && !is_chunked => Some(Self::OtherCoding),
            ParseError::Framing if is_chunked && !lengths.is_empty() => {
                Some(Self::LengthAndChunked)
            }
            ParseError::Framing if lengths.len() > 1 => Some(Self::TwoLengths),
            ParseError::Framing if lengths.iter().any(|length| length.len() > 18) => {
                Some(Self::LongLength)
            }
            ParseError::Framing | ParseError::TooLarge => None,
        }
    }

    fn of_body(bytes: &[u8], at: usize) -> Option<Self> {
        match (bytes[at - 1], bytes[at]) {
            (before, b'\n') if before != b'\r' => Some(Self::BareLf),
            (before, b' ' | b'\t') if before.is_ascii_hexdigit() => Some(Self::SpaceAfterSize),
            _ => None,
        }
    }

    /// A minimal example for each reason.
    pub(super) const EXAMPLES: &[(Self, &[u8])] = &[
        (Self::BareLf, b"GET / HTTP/1.1\r\nHost: a\n\r\n"),
        (Self::BareLf, b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (Self::Fragment, b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"),
        (Self::TwoHosts, b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
        (
            Self::TwoLengths,
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
        ),
        (
            Self::LongLength,
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0000000000000000001\r\n\r\na",
        ),
        (
            Self::LengthAndChunked,
            b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            Self::OtherCoding,
            b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            Self::SpaceAfterSize,
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\na\r\n0\r\n\r\n",
        ),
        (
            Self::ConnectionIsNoText,
            b"GET / HTTP/1.1\r\nConnection: close, \xff\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        ),
        (Self::TargetIsNoUri, b"GET http:// HTTP/1.1\r\nHost: a\r\n\r\n"),
    ];
}

/// The values of the headers with this name; lines may end with CR LF or LF.
fn values<'a>(head: &'a [u8], name: &[u8]) -> Vec<&'a [u8]> {
    let lines = head.split(|byte| *byte == b'\n').skip(1);
    lines
        .filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            line[..colon].eq_ignore_ascii_case(name).then(|| line[colon + 1..].trim_ascii())
        })
        .collect()
}
