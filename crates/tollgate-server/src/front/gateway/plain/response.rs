//! A plain answer on its way to a client.

mod chunks;

use super::line::line;
use hyper::StatusCode;
use std::{cmp::Ordering, mem::MaybeUninit};
use tollgate_tower::Shown;

/// More fields than a plain answer has.
const FIELDS_MAX: usize = 48;

/// What has come of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Came {
    /// All of one that is plain, and nothing else: it has been written.
    Whole,
    /// The head of one whose body has a length, and nothing else.
    Head,
    /// Perhaps the beginning of one.
    Part,
    /// Something else.
    Unusual,
}

/// How an answer is written.
pub(super) struct Manner<'a> {
    pub(super) shown: &'a Shown,
    pub(super) date: &'a [u8],
    /// Whether only the head was asked for.
    pub(super) is_head: bool,
    /// Whether the connection ends after it.
    pub(super) is_last: bool,
}

/// What an answer is turned into, part by part.
pub(super) trait Form {
    /// The beginning of one whose head is these bytes. What follows may still show that it is not plain.
    fn begin(&mut self, status: StatusCode, head: &[u8]);

    /// A field for the client, which is part of the head; `None` where there cannot be such a one.
    fn field(&mut self, name: &str, value: &[u8]) -> Option<()>;

    /// There is no body, and so its length is left out; `None` where it would not be.
    fn unsized_body(&mut self) -> Option<()>;

    /// The body is in chunks; `None` where that cannot be.
    fn chunked(&mut self) -> Option<()>;

    /// The end.
    fn end(&mut self, is_dated: bool, body: &[u8]);
}

/// Writes a server's answer with our fields in it, where it is plain. `room`: how many bytes an answer can have here.
pub(super) fn write(bytes: &[u8], room: usize, manner: &Manner<'_>, out: &mut Vec<u8>) -> Came {
    read(bytes, room, manner.is_head, &mut Lines { manner, out })
}

struct Lines<'a> {
    manner: &'a Manner<'a>,
    out: &'a mut Vec<u8>,
}

impl Form for Lines<'_> {
    fn begin(&mut self, status: StatusCode, _: &[u8]) {
        self.out.clear();
        self.out.extend_from_slice(b"HTTP/1.1 ");
        self.out.extend_from_slice(status.as_str().as_bytes());
        self.out.push(b' ');
        self.out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    fn field(&mut self, name: &str, value: &[u8]) -> Option<()> {
        line(name.as_bytes(), value, self.out);
        Some(())
    }

    fn unsized_body(&mut self) -> Option<()> {
        Some(())
    }

    fn chunked(&mut self) -> Option<()> {
        self.out.extend_from_slice(b"transfer-encoding: chunked\r\n");
        Some(())
    }

    fn end(&mut self, is_dated: bool, body: &[u8]) {
        let Self { manner, out } = self;
        manner.shown.write_lines(out);
        if !is_dated {
            out.extend_from_slice(manner.date);
        }
        if manner.is_last {
            out.extend_from_slice(b"connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body);
    }
}

/// Reads a server's answer, where the bytes are all of one that says where it ends, whose connection goes on, and that says nothing our
/// fields would have to be merged with. `room`: how many bytes an answer can have here.
pub(super) fn read(bytes: &[u8], room: usize, is_head: bool, form: &mut impl Form) -> Came {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut head = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut head,
        bytes,
        &mut fields,
    );
    let size = match parsed {
        Ok(httparse::Status::Complete(size)) => size,
        Ok(httparse::Status::Partial) if bytes.len() < room => return Came::Part,
        _ => return Came::Unusual,
    };
    let (Some(1), Some(status)) = (head.version, usual(head.code, head.reason)) else {
        return Came::Unusual;
    };
    let mut framing = Framing::new(!is_head && !is_bodiless(status));
    form.begin(status, &bytes[..size]);
    let mut is_dated = false;
    for httparse::Header { name, value } in head.headers.iter() {
        match meaning(name, value) {
            Meaning::Length(said) => {
                if framing.length.replace(said).is_some() {
                    return Came::Unusual;
                }
                // Of what has no body, only the answer to `HEAD` says how long it would be, where it would have one.
                if !framing.has_body && (!is_head || status == StatusCode::NO_CONTENT) {
                    match form.unsized_body() {
                        Some(()) => continue,
                        None => return Came::Unusual,
                    }
                }
            }
            Meaning::Chunked if framing.is_chunked => return Came::Unusual,
            Meaning::Chunked => {
                framing.is_chunked = true;
                continue;
            }
            Meaning::Ours => continue,
            Meaning::Unusual => return Came::Unusual,
            Meaning::Date => is_dated = true,
            Meaning::Theirs => {}
        }
        if form.field(name, value).is_none() {
            return Came::Unusual;
        }
    }
    let body = &bytes[size..];
    if framing.has_body && framing.is_chunked && form.chunked().is_none() {
        return Came::Unusual;
    }
    match framing.came(body, room - size) {
        Came::Whole => {}
        came => return came,
    }
    form.end(is_dated, body);
    Came::Whole
}

/// What a head says about its body.
struct Framing {
    has_body: bool,
    length: Option<usize>,
    is_chunked: bool,
}

impl Framing {
    fn new(has_body: bool) -> Self {
        Self { has_body, length: None, is_chunked: false }
    }

    /// How much of the body has come, where no more than `room` bytes can.
    fn came(&self, body: &[u8], room: usize) -> Came {
        let came = match (self.has_body, self.length, self.is_chunked) {
            // It has two ends, or ends with its connection.
            (_, Some(_), true) | (true, None, false) => Came::Unusual,
            (false, ..) => sized(body.len(), 0),
            (true, Some(length), false) if length > room => Came::Unusual,
            (true, Some(1..), false) if body.is_empty() => Came::Head,
            (true, Some(length), false) => sized(body.len(), length),
            (true, None, true) => chunks::came(body),
        };
        if came == Came::Part && body.len() >= room { Came::Unusual } else { came }
    }
}

/// How much of a body of this length has come.
fn sized(len: usize, length: usize) -> Came {
    match len.cmp(&length) {
        Ordering::Less => Came::Part,
        Ordering::Equal => Came::Whole,
        Ordering::Greater => Came::Unusual,
    }
}

/// The status of an answer that is the last to its request, where its words are those that belong to it. What follows 205 is not clear to everybody.
fn usual(code: Option<u16>, reason: Option<&str>) -> Option<StatusCode> {
    let status = StatusCode::from_u16(code?).ok()?;
    let is_plain = !status.is_informational() && status != StatusCode::RESET_CONTENT;
    (is_plain && status.canonical_reason() == reason).then_some(status)
}

/// Whether answers of this status never have a body, whatever they say.
fn is_bodiless(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

enum Meaning {
    /// The body's length.
    Length(usize),
    /// The body comes in chunks, and in no other coding.
    Chunked,
    /// It concerns our connection with the server, and goes no farther.
    Ours,
    Date,
    /// It is for the client.
    Theirs,
    /// It says how the connection goes on, how the body comes, or something that is to be merged.
    Unusual,
}

fn meaning(name: &str, value: &[u8]) -> Meaning {
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    let unusual = match name.len() {
        14 if is("content-length") => {
            return decimal(value).map_or(Meaning::Unusual, Meaning::Length);
        }
        4 if is("date") => return Meaning::Date,
        10 if is("connection") && value.eq_ignore_ascii_case(b"keep-alive") => {
            return Meaning::Ours;
        }
        10 if is("keep-alive") => return Meaning::Ours,
        17 if is("transfer-encoding") && value.eq_ignore_ascii_case(b"chunked") => {
            return Meaning::Chunked;
        }
        2 => is("te"),
        7 => is("upgrade") || is("trailer"),
        10 => is("connection"),
        14 => is("http2-settings"),
        16 => is("proxy-connection"),
        17 => is("transfer-encoding"),
        18 => is("proxy-authenticate"),
        19 => is("proxy-authorization"),
        _ => false,
    };
    match unusual || Shown::may_meet(name) {
        true => Meaning::Unusual,
        false => Meaning::Theirs,
    }
}

/// A length of no more digits than any body has, as everybody writes it.
fn decimal(digits: &[u8]) -> Option<usize> {
    let plain = (1..=18).contains(&digits.len())
        && digits.iter().all(u8::is_ascii_digit)
        && (digits[0] != b'0' || digits.len() == 1);
    plain.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0')))
}

#[cfg(test)]
mod tests;
