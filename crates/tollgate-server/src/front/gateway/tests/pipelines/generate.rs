//! Generates requests and their answers.

use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
};

/// Consecutive requests on one connection.
#[derive(Clone, Debug)]
pub(super) struct Pipeline {
    pub(super) exchanges: Vec<PlannedRequest>,
    pub(super) last: LastRequest,
    /// The split positions of the client's bytes.
    cuts: Vec<Index>,
}

/// The persistence that the last request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastRequest {
    Open,
    /// More requests follow, which must not be read.
    Close,
    Http10,
    Http10KeepAlive,
}

/// A request, and its answer.
#[derive(Clone, Debug)]
pub(super) struct PlannedRequest {
    pub(super) method: &'static str,
    pub(super) asked: PlannedBody,
    pub(super) expects: bool,
    pub(super) answered: PlannedAnswer,
}

/// A request's body.
#[derive(Clone, Debug)]
pub(super) enum PlannedBody {
    Nothing,
    Length(usize),
    Chunks { sizes: Vec<usize>, extension: &'static str, has_trailers: bool },
}

/// An upstream's answer.
#[derive(Clone, Debug)]
pub(super) struct PlannedAnswer {
    pub(super) kind: AnswerKind,
    pub(super) size: usize,
    /// Interim answers (1xx) before it.
    pub(super) interim: Vec<u16>,
    /// The split positions of the upstream's bytes.
    pub(super) cuts: Vec<Index>,
}

#[derive(Clone, Debug)]
pub(super) enum AnswerKind {
    Length,
    /// A length, and then the upstream closes the connection, as announced.
    LengthThenClose,
    Chunks {
        sizes: Vec<usize>,
        extension: &'static str,
        has_trailers: bool,
    },
    /// Ended by the close of the connection.
    UntilClose,
    /// Ended by the close of the connection, over HTTP/1.0.
    Http10,
    Http10KeepAlive,
    /// Without a body; a 304 may have the length of the omitted body.
    Bodiless(u16, Option<usize>),
}

impl AnswerKind {
    pub(super) fn status(&self) -> u16 {
        match self {
            Self::Bodiless(status, _) => *status,
            _ => 200,
        }
    }

    /// Whether the head of the answer has no length.
    pub(super) fn is_endless(&self) -> bool {
        matches!(self, Self::UntilClose | Self::Http10 | Self::Chunks { .. })
    }
}

/// Data that is different for each request.
pub(super) fn data(id: usize, salt: u8, size: usize) -> Vec<u8> {
    (0..size).map(|at| b'!' + ((id * 31 + usize::from(salt) + at * 7) % 90) as u8).collect()
}

impl PlannedBody {
    pub(super) fn data(&self, id: usize) -> Vec<u8> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Length(size) => data(id, 0, *size),
            Self::Chunks { sizes, .. } => data(id, 0, sizes.iter().sum()),
        }
    }
}

impl PlannedAnswer {
    pub(super) fn data(&self, id: usize) -> Vec<u8> {
        match &self.kind {
            AnswerKind::Bodiless(..) => Vec::new(),
            AnswerKind::Chunks { sizes, .. } => data(id, 1, sizes.iter().sum()),
            _ => data(id, 1, self.size),
        }
    }
}

impl PlannedRequest {
    pub(super) fn has_answer_body(&self) -> bool {
        self.method != "HEAD" && !matches!(self.answered.kind, AnswerKind::Bodiless(204 | 304, _))
    }

    fn write(&self, id: usize, version: &str, line: &str, out: &mut Vec<u8>) {
        let Self { method, asked, expects, .. } = self;
        let body = asked.data(id);
        let expect = if *expects { "Expect: 100-continue\r\n" } else { "" };
        let (framing, body) = match asked {
            PlannedBody::Nothing => (String::new(), Vec::new()),
            // HTTP/1.0 has no chunks.
            PlannedBody::Chunks { sizes, extension, has_trailers } if version == "1.1" => {
                let trailers = if *has_trailers { format!("X-T: {id}\r\n") } else { String::new() };
                let chunks = chunks(&body, sizes, extension, &trailers);
                ("Transfer-Encoding: chunked\r\n".into(), chunks)
            }
            PlannedBody::Length(_) | PlannedBody::Chunks { .. } => {
                (format!("Content-Length: {}\r\n", body.len()), body)
            }
        };
        let head =
            format!("{method} /{id} HTTP/{version}\r\nHost: a\r\n{line}{expect}{framing}\r\n");
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(&body);
    }
}

/// A chunked body with chunks of these sizes.
pub(super) fn chunks(data: &[u8], sizes: &[usize], extension: &str, trailers: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), data);
    for size in sizes {
        let (chunk, after) = rest.split_at(*size);
        rest = after;
        out.extend_from_slice(format!("{size:X}{extension}\r\n").as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("0{extension}\r\n{trailers}\r\n").as_bytes());
    out
}

/// Splits bytes at these positions.
pub(super) fn cut(bytes: &[u8], cuts: &[Index]) -> Vec<Vec<u8>> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    places.dedup();
    places.push(bytes.len());
    let mut from = 0;
    let piece = |place| bytes[std::mem::replace(&mut from, place)..place].to_vec();
    places.into_iter().map(piece).filter(|piece| !piece.is_empty()).collect()
}

impl Pipeline {
    /// The client's bytes, in pieces.
    pub(super) fn pieces(&self) -> Vec<Vec<u8>> {
        let mut bytes = Vec::new();
        for (id, exchange) in self.exchanges.iter().enumerate() {
            let is_last = id + 1 == self.exchanges.len();
            let (version, line) = match self.last {
                LastRequest::Close if is_last => ("1.1", "Connection: close\r\n"),
                LastRequest::Http10 if is_last => ("1.0", ""),
                LastRequest::Http10KeepAlive if is_last => ("1.0", "Connection: keep-alive\r\n"),
                _ => ("1.1", ""),
            };
            exchange.write(id, version, line, &mut bytes);
        }
        if matches!(self.last, LastRequest::Close | LastRequest::Http10) {
            bytes.extend_from_slice(b"GET /too-late HTTP/1.1\r\nHost: a\r\n\r\n");
        }
        cut(&bytes, &self.cuts)
    }
}

pub(super) fn pipeline() -> impl Strategy<Value = Pipeline> {
    let last = [
        LastRequest::Open,
        LastRequest::Open,
        LastRequest::Close,
        LastRequest::Http10,
        LastRequest::Http10KeepAlive,
    ];
    (vec(exchange(), 1..7), select(last.to_vec()), vec(any::<Index>(), 0..12))
        .prop_map(|(exchanges, last, cuts)| Pipeline { exchanges, last, cuts })
}

fn exchange() -> impl Strategy<Value = PlannedRequest> {
    let methods = ["GET", "GET", "HEAD", "POST", "POST", "PUT", "DELETE", "OPTIONS"];
    (select(methods.to_vec()), asked(), prop::bool::weighted(0.15), answered()).prop_map(
        |(method, asked, expects, answered)| PlannedRequest { method, asked, expects, answered },
    )
}

/// Sizes around those of buffers, and small ones.
fn size() -> impl Strategy<Value = usize> {
    let odd = [0, 1, 2, 15, 16, 255, 8_191, 8_192, 16_383, 16_384, 16_385, 40_000];
    prop_oneof![3 => 0..200_usize, 1 => select(odd.to_vec())]
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    vec(size().prop_map(|size| size.max(1)), 0..5)
}

fn extension() -> impl Strategy<Value = &'static str> {
    select(vec!["", "", ";a", ";a=b", ";a=\"b\""])
}

fn asked() -> impl Strategy<Value = PlannedBody> {
    prop_oneof![
        2 => Just(PlannedBody::Nothing),
        2 => size().prop_map(PlannedBody::Length),
        2 => (sizes(), extension(), any::<bool>()).prop_map(|(sizes, extension, has_trailers)| {
            PlannedBody::Chunks { sizes, extension, has_trailers }
        }),
    ]
}

fn answered() -> impl Strategy<Value = PlannedAnswer> {
    let kind = prop_oneof![
        3 => Just(AnswerKind::Length),
        1 => Just(AnswerKind::LengthThenClose),
        4 => (sizes(), extension(), any::<bool>()).prop_map(|(sizes, extension, has_trailers)| {
            AnswerKind::Chunks { sizes, extension, has_trailers }
        }),
        1 => Just(AnswerKind::UntilClose),
        1 => Just(AnswerKind::Http10),
        1 => Just(AnswerKind::Http10KeepAlive),
        1 => Just(AnswerKind::Bodiless(204, None)),
        1 => Just(AnswerKind::Bodiless(304, None)),
        1 => Just(AnswerKind::Bodiless(304, Some(77))),
        1 => Just(AnswerKind::Bodiless(205, Some(0))),
    ];
    let interim = vec(select(vec![100, 102, 103, 103]), 0..3);
    let interim = prop_oneof![4 => Just(Vec::new()), 1 => interim];
    (kind, size(), interim, vec(any::<Index>(), 0..4))
        .prop_map(|(kind, size, interim, cuts)| PlannedAnswer { kind, size, interim, cuts })
}
