//! The short way of a request: from the bytes of the client to those for a server, and back.
//!
//! It is for requests that [`net`](crate::net) finds plain, to servers that speak HTTP/1.1 without TLS, where nothing is held until the answer has been given; and for answers that come whole at once. A request that turns out to be otherwise
//! goes the long way with what has been done about it: [`Begun`] says how far it came.

mod line;
mod mapped;
mod request;
mod response;

use super::{
    Gateway,
    connect::{Resumed, plainly},
    count::Count,
    exchange::{Fault, before},
    forward::From,
    pool::Bare as Idle,
    status,
    upstream::{Flight, Server, Upstreams},
};
use crate::{
    Node,
    front::date::DateLine,
    metrics::Outcome,
    net::{Alarm, Bare, Caller},
    trace,
};
use hyper::{
    HeaderMap, Response,
    header::{HeaderName, HeaderValue},
};
pub(super) use mapped::Mapped;
use request::Read;
pub(super) use response::Came;
use response::Manner;
use std::{
    cell::RefCell,
    future::poll_fn,
    io,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tollgate::{ProcessClock, Spares};
use tollgate_policy::{address::unmap, settings};
use tollgate_tower::{self as toll, Pass};

/// What is read at once. An answer that is larger is not plain.
const INPUT_BYTES: usize = 16 * 1024;

/// How long the head of an answer with a small body waits for some of that, to the tick: many servers send them one after the other, and a head alone is of little
/// use to a client. One that would be late by more goes the long way, and to the client at once.
const HEAD_ALONE: Duration = Duration::ZERO;

struct Scratch(Box<[u8]>);

impl Default for Scratch {
    fn default() -> Self {
        Self(vec![0; INPUT_BYTES].into())
    }
}

thread_local! {
    static SCRATCH: Spares<Scratch> = const { Spares::new() };
    static DATE: RefCell<DateLine> = RefCell::default();
}

/// A request that has been admitted, on its way to the long way.
pub(super) struct Begun {
    pub(super) pass: Pass<Node>,
    pub(super) stage: Stage,
}

/// How far a request has come.
#[derive(Default)]
pub(super) enum Stage {
    /// Nothing has been sent.
    #[default]
    Start,
    /// Nothing has been sent, since one of several servers could not be reached.
    Unreached,
    /// It has been sent, by a connection that had ended before.
    Again,
    /// It has been sent in vain.
    Failed(Fault),
    /// It has been sent, and the answer has begun; its time runs since then.
    Answer(Resumed, Flight, Alarm),
}

impl Gateway {
    /// Answers a plain request. Whatever cannot be done here is kept for the long way.
    pub(super) async fn answer_plain(
        &self,
        request: Bare<'_>,
        caller: &Rc<Caller>,
        out: &mut Vec<u8>,
    ) -> bool {
        let upstreams = self.shared.upstreams.load_full();
        // Traces need the whole head.
        if trace::enabled()
            || !upstreams.are_plain()
            || status::is_asked(&upstreams.settings, request.target)
        {
            return false;
        }
        let node = &self.shared.node;
        let count = Count::new(&node.metrics);
        let observe = super::observe(node, None);
        let mut question = toll::Question::default();
        question.observe = Some(&observe);
        question.ambiguous_paths = upstreams.settings.ambiguous_paths;
        let (head, peer) = (Read(request), Some(caller.peer.ip()));
        let pass = match self.toll.ask_as_it_is(&head, peer, &question).await {
            toll::Answer::Admitted(pass) => pass,
            toll::Answer::Refused(refusal) => {
                let outcome = super::refused(&refusal);
                let is_head = request.method == "HEAD";
                write_own(refusal.into_response(&map(&request)), is_head, caller.is_ending(), out);
                count.end(outcome);
                return true;
            }
            // The full path refuses it, and ends the connection.
            toll::Answer::Ambiguous(_) => {
                count.leave();
                return false;
            }
        };
        let stage = match pass.is_free() {
            false => Stage::Start,
            true => {
                let mut errand = Written { gateway: self, request, caller, pass: &pass, out };
                match self.exchange(caller, &upstreams, &mut errand).await {
                    Ok(()) => {
                        count.end(Outcome::Admitted);
                        return true;
                    }
                    Err(stage) => stage,
                }
            }
        };
        count.leave();
        caller.keep(Box::new(Begun { pass, stage }));
        false
    }

    /// Sends a request to a server and has its answer read; or says how far it came.
    pub(super) async fn exchange(
        &self,
        caller: &Caller,
        upstreams: &Arc<Upstreams>,
        errand: &mut impl Errand,
    ) -> Result<(), Stage> {
        let Some(flight) = upstreams.pick(&[], ProcessClock.now_us()) else {
            return Err(Stage::Unreached);
        };
        let (server, settings) = (flight.server(), &upstreams.settings);
        let pooled = self.pool.take_bare(upstreams.generation, server, !errand.may_repeat());
        let (mut stream, is_used) = match pooled {
            Some(stream) => (stream, true),
            None => {
                // In a box, as it is seldom needed.
                let connecting = Box::pin(plainly(server));
                match before(&mut caller.alarm(), settings.connect, connecting, || true).await {
                    Some(Ok(stream)) => (stream, false),
                    _ => return Err(unreached(upstreams, server)),
                }
            }
        };
        let (mut sent, mut alarm) = (0, caller.alarm());
        let request = errand.request(server, settings);
        let asking = ask(&mut stream, request, &mut sent);
        let (scratch, len) = match before(&mut alarm, settings.response, asking, || true).await {
            Some(Ok((scratch, len))) if len > 0 => (scratch, len),
            Some(_) if is_used && sent == 0 => return Err(Stage::Start),
            // It had been idle, and ended before a byte of an answer came.
            Some(_) if is_used && errand.may_repeat() => return Err(Stage::Again),
            Some(_) => {
                if !is_used {
                    server.complain("it ended the connection without an answer");
                }
                return Err(Stage::Failed(Fault::Protocol));
            }
            None => return Err(Stage::Failed(Fault::Timeout)),
        };
        let mut scratch = scratch;
        let (mut came, mut len) = read(&mut stream, &mut scratch.0, len, errand);
        if came == Came::Head {
            let more = poll_fn(|context| poll_read(&mut stream, context, &mut scratch.0[len..]));
            let more = before(&mut caller.alarm(), HEAD_ALONE, more, || true).await;
            if let Some(Ok(more @ 1..)) = more {
                (came, len) = read(&mut stream, &mut scratch.0, len + more, errand);
            }
        }
        let stage = match came {
            Came::Whole => {
                let now_us = ProcessClock.now_us();
                let until_us = now_us.saturating_add(server.idle_us);
                self.pool.put_bare(upstreams.generation, server, Idle { stream, until_us });
                Ok(())
            }
            Came::Head | Came::Part | Came::Unusual => {
                let resumed = Resumed { stream, came: scratch.0[..len].into() };
                Err(Stage::Answer(resumed, flight, alarm))
            }
        };
        SCRATCH.with(|spares| spares.put(scratch));
        stage
    }

    /// Where a request came from, for a server that is asked as the settings say.
    pub(super) fn from<'a>(
        &self,
        head: &(impl toll::Head + Sync),
        caller: &'a Caller,
        server: &'a Server,
        settings: &settings::Gateway,
    ) -> From<'a> {
        let (rules, peer) = (self.shared.node.gate.rules(), unmap(caller.peer.ip()));
        let is_trusted = rules.web().client.is_trusted(peer);
        let client = match is_trusted {
            true => self.toll.reader().client(&rules, head, peer),
            false => peer,
        };
        let (address, is_tls, may_upgrade) = (&caller.address, caller.is_tls, false);
        let own_host = settings.own_host.then_some(&server.authority);
        let override_headers = settings.override_headers;
        From { peer, address, is_trusted, client, is_tls, may_upgrade, own_host, override_headers }
    }
}

/// A request that has come whole, in whatever form it is kept, and what becomes of its answer.
pub(super) trait Errand {
    /// Whether it can be sent twice and mean the same.
    fn may_repeat(&self) -> bool;

    /// The bytes for a server, which is asked as the settings say.
    fn request(&mut self, server: &Server, settings: &settings::Gateway) -> &[u8];

    /// Takes the answer, where these bytes are all of one that is plain. `room`: how many bytes an answer can have here.
    fn answer(&mut self, bytes: &[u8], room: usize) -> Came;
}

/// From bytes to bytes.
struct Written<'a> {
    gateway: &'a Gateway,
    request: Bare<'a>,
    caller: &'a Caller,
    pass: &'a Pass<Node>,
    out: &'a mut Vec<u8>,
}

impl Errand for Written<'_> {
    fn may_repeat(&self) -> bool {
        self.request.may_repeat()
    }

    fn request(&mut self, server: &Server, settings: &settings::Gateway) -> &[u8] {
        let from = self.gateway.from(&Read(self.request), self.caller, server, settings);
        request::write(&self.request, &from, self.out);
        self.out
    }

    fn answer(&mut self, bytes: &[u8], room: usize) -> Came {
        DATE.with_borrow_mut(|date| {
            let date = date.at(ProcessClock.now_us());
            let (shown, is_last) = (self.pass.shown(), self.caller.is_ending());
            let is_head = self.request.method == "HEAD";
            let manner = Manner { shown, date, is_head, is_last };
            response::write(bytes, room, &manner, self.out)
        })
    }
}

/// A server cannot be reached. Whom to ask instead is the long way's to say.
fn unreached(upstreams: &Upstreams, server: &Server) -> Stage {
    server.rest(ProcessClock.now_us());
    match upstreams.servers.len() {
        1 => Stage::Failed(Fault::Connect),
        _ => Stage::Unreached,
    }
}

/// Sends a request, and waits for the first bytes of an answer.
async fn ask(
    stream: &mut TcpStream,
    request: &[u8],
    sent: &mut usize,
) -> io::Result<(Box<Scratch>, usize)> {
    poll_fn(|context| {
        while *sent < request.len() {
            match ready!(Pin::new(&mut *stream).poll_write(context, &request[*sent..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                len => *sent += len,
            }
        }
        let mut scratch = SCRATCH.with(Spares::take);
        match poll_read(stream, context, &mut scratch.0) {
            Poll::Ready(read) => Poll::Ready(read.map(|len| (scratch, len))),
            Poll::Pending => {
                SCRATCH.with(|spares| spares.put(scratch));
                Poll::Pending
            }
        }
    })
    .await
}

fn poll_read(
    stream: &mut TcpStream,
    context: &mut Context<'_>,
    room: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(room);
    ready!(Pin::new(stream).poll_read(context, &mut buffer))?;
    Poll::Ready(Ok(buffer.filled().len()))
}

/// Reads as much of an answer as is there; waiting for more would keep the client from what has come.
fn read(
    stream: &mut TcpStream,
    input: &mut [u8],
    mut len: usize,
    errand: &mut impl Errand,
) -> (Came, usize) {
    loop {
        let came = errand.answer(&input[..len], input.len());
        if came != Came::Part {
            return (came, len);
        }
        let mut context = Context::from_waker(std::task::Waker::noop());
        match poll_read(stream, &mut context, &mut input[len..]) {
            Poll::Ready(Ok(more @ 1..)) => len += more,
            // An end, or an error, comes again for whoever reads next.
            _ => return (came, len),
        }
    }
}

/// The fields of a request as a map, for what looks at more than a few of them.
fn map(request: &Bare<'_>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in request.fields() {
        let name = HeaderName::from_bytes(name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            map.append(name, value);
        }
    }
    map
}

/// Writes an answer of our own.
fn write_own(response: Response<bytes::Bytes>, is_head: bool, is_last: bool, out: &mut Vec<u8>) {
    let (head, mut body) = response.into_parts();
    out.clear();
    for part in [
        "HTTP/1.1 ",
        head.status.as_str(),
        " ",
        head.status.canonical_reason().unwrap_or_default(),
        "\r\n",
    ] {
        out.extend_from_slice(part.as_bytes());
    }
    for (name, value) in &head.headers {
        line::line(name.as_ref(), value.as_bytes(), out);
    }
    // What has no body says so, unless it would not have one anyway.
    if !(is_head && body.is_empty()) {
        line::known(b"content-length: ", body.len().to_string().as_bytes(), out);
    }
    if is_head {
        body.clear();
    }
    DATE.with_borrow_mut(|date| out.extend_from_slice(date.at(ProcessClock.now_us())));
    if is_last {
        out.extend_from_slice(b"connection: close\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&body);
}
