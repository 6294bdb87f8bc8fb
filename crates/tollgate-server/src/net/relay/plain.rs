//! The short way through the gateway, for requests as most clients send most of them: HTTP/1.1, come whole, with a small body or none, and nothing
//! in the head that concerns the connection.
//!
//! As in [`net::plain`](super::super::plain), nothing is refused here and no error is put into words: whatever is not plain in every respect goes to
//! the full protocol with all of its bytes, and the connection comes back when that has answered and the next request is plain. What says where a request ends is judged by the same reader
//! that stands before the full protocol, so both see the same requests.

use super::{Busy, Caller, Relay};
use crate::net::{
    life::{Life, Order},
    plain::{End, finish, more, poll_next, send},
    stream::Stream,
    strict::{Begins, begins},
};
use std::{
    mem::MaybeUninit,
    ops::Range,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tollgate::Spares;
use tollgate_policy::address::is_odd_name;

/// What is read at once. A request that is larger is not plain.
const INPUT_BYTES: usize = 8 * 1024;
/// More fields than a plain head has.
const FIELDS_MAX: usize = 48;
/// One of so many requests, as a power of two, tries the short way where all of them have been declined.
const TRY_EVERY_LOG2: u32 = 6;
/// What is read of further requests while one is under way.
const EARLY_BYTES: usize = 512;

/// A request of HTTP/1.1 that has come whole.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Bare<'a> {
    /// `GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE` or `OPTIONS`.
    pub method: &'a str,
    /// A path that begins with a slash, and perhaps a query.
    pub target: &'a str,
    /// Which host is meant, by the only field that says so.
    pub host: &'a [u8],
    /// The body, as long as `Content-Length` says. Nothing, without one.
    pub body: &'a [u8],
    bytes: &'a [u8],
    lines: &'a [Line],
}

/// What a plain request may ask for. None of them makes the connection anything else.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

impl<'a> Bare<'a> {
    /// Whether it can be sent twice and mean the same: it has no body, and its method says so.
    pub fn may_repeat(&self) -> bool {
        self.body.is_empty() && !matches!(self.method, "POST" | "PATCH")
    }

    /// Names, in any case, and values. None has `_` or `.` in its name, and none concerns the connection but `Connection: keep-alive`.
    pub fn fields(&self) -> impl DoubleEndedIterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let bytes = self.bytes;
        let at = move |range: &Range<u16>| &bytes[range.start.into()..range.end.into()];
        self.lines.iter().map(move |line| (at(&line.name), at(&line.value)))
    }
}

impl<'a> Bare<'a> {
    /// The values of all fields of this name, in any case.
    pub fn named<'n>(
        &self,
        name: &'n str,
    ) -> impl DoubleEndedIterator<Item = &'a [u8]> + use<'a, 'n> {
        let bytes = self.bytes;
        let at = move |range: &Range<u16>| &bytes[range.start.into()..range.end.into()];
        let is_named = move |line: &&Line| {
            line.name.len() == name.len() && at(&line.name).eq_ignore_ascii_case(name.as_bytes())
        };
        self.lines.iter().filter(is_named).map(move |line| at(&line.value))
    }
}

/// Where a field lies among the bytes of its head.
#[derive(Clone, Debug)]
struct Line {
    name: Range<u16>,
    value: Range<u16>,
}

/// Memory that only connections with something to do need.
struct Scratch {
    input: Box<[u8]>,
    lines: Vec<Line>,
    output: Vec<u8>,
}

thread_local! {
    static SCRATCH: Spares<Scratch> = const { Spares::new() };
}

impl Default for Scratch {
    fn default() -> Self {
        Self { input: vec![0; INPUT_BYTES].into(), lines: Vec::new(), output: Vec::new() }
    }
}

/// Answers requests for as long as they are plain. All in one function: the future of an answer is large, and each function around it moves it again.
pub(super) async fn serve<T, R>(stream: &mut Stream<T>, relay: &R, caller: &Rc<Caller>) -> End
where
    T: AsyncRead + AsyncWrite + Unpin,
    R: Relay,
{
    let life = &caller.life;
    loop {
        let next = life.until_closed(|context| {
            poll_next(stream, context, &SCRATCH, |scratch| &mut scratch.input)
        });
        let (mut scratch, mut len) = match next.await {
            Some(Ok((_, 0))) | Some(Err(_)) => return finish(stream, life).await,
            Some(Ok(next)) => next,
            None => return End::Closed,
        };
        let Scratch { input, lines, output } = &mut *scratch;
        let mut at = 0;
        while at < len {
            let plain = loop {
                match find_plain(&input[at..len], input.len() - at, lines, life) {
                    Some(plain) => break plain,
                    None => match more(stream, &mut input[len..]).await {
                        0 => break None,
                        read => len += read,
                    },
                }
            };
            output.clear();
            let mut size = 0;
            if let Some((request, whole)) = plain {
                let _busy = Busy::new(life);
                let mut answering = pin!(relay.plain(request, caller, output));
                let mut early = Vec::new();
                let answered = life.until_closed(|context| {
                    poll_unless_left(stream, &mut early, answering.as_mut(), context)
                });
                match answered.await {
                    Some(Some(true)) => {
                        size = whole;
                        caller.declined.set(0);
                    }
                    Some(Some(false)) => caller.declined.set(caller.declined.get() + 1),
                    Some(None) => return finish(stream, life).await,
                    None => return End::Closed,
                }
                if !early.is_empty() {
                    stream.unread(&early);
                }
            }
            if size == 0 {
                stream.unread(&input[at..len]);
                // What is left is part of a request, so the connection is not idle.
                life.received();
                SCRATCH.with(|spares| spares.put(scratch));
                return End::Unusual;
            }
            at += size;
            let is_last = life.order() != Order::Serve;
            match send(stream, life, output).await {
                None if is_last => return finish(stream, life).await,
                None => {}
                Some(End::Done) => return finish(stream, life).await,
                Some(end) => return end,
            }
        }
        SCRATCH.with(|spares| spares.put(scratch));
    }
}

/// How many requests a connection has answered in full before it comes back. One, as a rule; more and more where plain requests are declined again and again,
/// so that trying costs ever less.
pub(super) fn patience(caller: &Caller) -> u32 {
    1 << caller.declined.get().saturating_sub(1).min(TRY_EVERY_LOG2)
}

/// Whether a whole plain request is the first of some bytes.
pub(super) fn is_plain(bytes: &[u8], life: &Life) -> bool {
    let mut scratch = SCRATCH.with(Spares::take);
    let is_plain =
        matches!(find_plain(bytes, INPUT_BYTES, &mut scratch.lines, life), Some(Some(_)));
    SCRATCH.with(|spares| spares.put(scratch));
    is_plain
}

/// What an answer comes to, unless the client ends its side before that. What else comes is `early`, and is read after it.
fn poll_unless_left<T: AsyncRead + Unpin, O>(
    stream: &mut Stream<T>,
    early: &mut Vec<u8>,
    answering: Pin<&mut impl Future<Output = O>>,
    context: &mut Context<'_>,
) -> Poll<Option<O>> {
    if let Poll::Ready(answer) = answering.poll(context) {
        return Poll::Ready(Some(answer));
    }
    while early.is_empty() {
        let mut more = [0; EARLY_BYTES];
        let mut buffer = ReadBuf::new(&mut more);
        match Pin::new(&mut *stream).poll_read(context, &mut buffer) {
            Poll::Pending => break,
            Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                early.extend_from_slice(buffer.filled());
            }
            Poll::Ready(_) => return Poll::Ready(None),
        }
    }
    Poll::Pending
}

/// The plain request that some bytes begin with, and its length; nothing in it where they begin with something else. `None`: more of them are needed to say.
/// `room`: how many of them there can be.
fn find_plain<'a>(
    bytes: &'a [u8],
    room: usize,
    lines: &'a mut Vec<Line>,
    life: &Life,
) -> Option<Option<(Bare<'a>, usize)>> {
    let limits = &life.front.limits;
    let (head, body) = match begins(bytes) {
        Begins::Sized { head, body } => (head, usize::try_from(body).unwrap_or(usize::MAX)),
        Begins::Part => return None,
        Begins::Other => return Some(None),
    };
    let whole = head.saturating_add(body);
    if whole > room || head > limits.head_bytes_max {
        return Some(None);
    }
    let body = bytes.get(head..whole)?;
    let found = find(bytes, lines)
        .filter(|(_, size)| *size == head)
        .filter(|(bare, _)| bare.lines.len() <= limits.fields_max)
        // A connection that is to end soon says so in its answers, which is the full protocol's way to end it.
        .filter(|_| life.order() == Order::Serve)
        .map(|(bare, _)| (Bare { body, ..bare }, whole));
    Some(found)
}

/// The plain request whose head some bytes begin with, and that head's length, as the parser sees it.
fn find<'a>(bytes: &'a [u8], lines: &'a mut Vec<Line>) -> Option<(Bare<'a>, usize)> {
    let mut room = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut []);
    let Ok(httparse::Status::Complete(size)) = head.parse_with_uninit_headers(bytes, &mut room)
    else {
        return None;
    };
    let (Some(method), Some(target), Some(1)) = (head.method, head.path, head.version) else {
        return None;
    };
    if !METHODS.contains(&method) || !is_plain_target(target) {
        return None;
    }
    lines.clear();
    let range = |part: &[u8]| {
        let start = part.as_ptr().addr() - bytes.as_ptr().addr();
        Some(u16::try_from(start).ok()?..u16::try_from(start + part.len()).ok()?)
    };
    let (mut host, mut is_authorized) = (None, false);
    for httparse::Header { name, value } in head.headers.iter() {
        if !is_plain_field(name, value) {
            return None;
        }
        // Once, or not at all.
        let is_second = match name.len() {
            4 if name.eq_ignore_ascii_case("host") => host.replace(*value).is_some(),
            13 if name.eq_ignore_ascii_case("authorization") => {
                std::mem::replace(&mut is_authorized, true)
            }
            _ => false,
        };
        if is_second {
            return None;
        }
        // A value that is nothing lies nowhere.
        let value = if value.is_empty() { 0..0 } else { range(value)? };
        lines.push(Line { name: range(name.as_bytes())?, value });
    }
    let host = host.filter(|host| is_host(host))?;
    Some((Bare { method, target, host, body: &[], bytes, lines }, size))
}

/// Whether a target is a path that every reader takes for the same, with nothing in it that one of them would leave out or write in another way.
pub(crate) fn is_plain_target(target: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%?=&:@!$'()*+,;".contains(&byte);
    target.starts_with('/') && target.bytes().all(is_plain)
}

/// A name and a port, or an address, in characters that no reader takes for anything else.
pub(crate) fn is_host(host: &[u8]) -> bool {
    let of = |byte: &u8, others: &[u8]| byte.is_ascii_alphanumeric() || others.contains(byte);
    let (is_named, port) = match host.strip_prefix(b"[") {
        Some(rest) => {
            let end = rest.iter().position(|byte| *byte == b']').unwrap_or(0);
            let is_address = rest[..end].iter().all(|byte| of(byte, b":.%-_~"));
            (end > 0 && is_address, rest.get(end + 1..).unwrap_or_default())
        }
        None => {
            let end = host.iter().position(|byte| *byte == b':').unwrap_or(host.len());
            let is_name = host[..end].iter().all(|byte| of(byte, b"-._~%!$&'()*+,;="));
            (end > 0 && is_name, &host[end..])
        }
    };
    let digits = port.strip_prefix(b":");
    is_named && (port.is_empty() || digits.is_some_and(|port| port.iter().all(u8::is_ascii_digit)))
}

/// Whether a field leaves it to others how the connection goes on and what comes by it, and is none that a server could take for another one.
pub(crate) fn is_plain_field(name: &str, value: &[u8]) -> bool {
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    if is_odd_name(name.as_bytes()) {
        return false;
    }
    match name.len() {
        2 => !is("te"),
        6 => !is("expect"),
        7 => !is("upgrade") && !is("trailer"),
        10 if is("connection") => value.eq_ignore_ascii_case(b"keep-alive"),
        10 => !is("keep-alive"),
        12 => !is("max-forwards"),
        // What it says the reader before this one has said already; how it says it goes on to the server.
        14 if is("content-length") => value.len() == 1 || !value.starts_with(b"0"),
        14 => !is("http2-settings"),
        16 => !is("proxy-connection"),
        17 => !is("transfer-encoding"),
        18 => !is("proxy-authenticate"),
        19 => !is("proxy-authorization"),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
