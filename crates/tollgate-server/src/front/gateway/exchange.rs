//! One request to an upstream, and its answer.
//!
//! A request is sent a second time only where the first cannot have done anything: it never left,
//! or its upstream says that it did not look at it, or it was one without a body that may be
//! repeated, on a connection that had been idle and ended before a byte of an answer came.

mod http1;
mod http2;

use super::{
    Gateway,
    connect::connect,
    forward::{self, From, Hop, SendsBody},
    pool::Connection,
    upgrade,
    upstream::{Flight, Server, Upstreams},
    validate::ValidHead,
};
use crate::{
    Node,
    metrics::{Outcome, Unanswered},
    net::{Alarm, Answer, BodyError, Caller, Headers, RequestBody, decimal},
};
use hyper::{Version, body::Body as _};
use smallvec::SmallVec;
use std::{
    future::poll_fn,
    io,
    pin::pin,
    rc::Rc,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::Poll,
    time::Duration,
};
use tollgate::ProcessClock;
use tollgate_policy::{address::unmap, settings::UpstreamProtocol};
use tollgate_tower::Pass;

pub(super) use http1::probe as probe_http1;
pub(super) use http2::probe as probe_http2;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// No upstream could be reached.
    Connect,
    /// An upstream broke off, or does not speak HTTP.
    Protocol,
    /// An upstream's answer has more in its head than is taken.
    TooLarge,
    /// An upstream took too long to answer.
    Timeout,
    /// The client's body did not come.
    Client(BodyError),
}

impl Fault {
    /// What the metrics call it, where it is the upstream's.
    pub(super) fn of_server(self) -> Option<Unanswered> {
        match self {
            Self::Connect => Some(Unanswered::Connect),
            Self::Protocol | Self::TooLarge => Some(Unanswered::Protocol),
            Self::Timeout => Some(Unanswered::Timeout),
            Self::Client(_) => None,
        }
    }

    /// What the metrics call its request.
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Connect | Self::Protocol | Self::TooLarge | Self::Timeout => Outcome::Error,
            Self::Client(BodyError::Left) => Outcome::Abandoned,
            Self::Client(_) => Outcome::Invalid,
        }
    }
}

/// How an attempt failed.
enum Failed {
    /// The request never left.
    Unsent(Fault),
    /// It left, and the upstream did not look at it.
    Unseen(Fault),
    /// It left by a connection that had been idle, and not a byte came in return.
    Silent(Fault),
    /// It may have done something.
    Lost(Fault),
}

/// What an upstream's head is called in the log that is too large.
pub(super) const TOO_LARGE: &str =
    "the head of its answer is too large (more than 16 KiB, or 100 fields)";

/// How often a request is sent at most, where upstreams say again and again that they have not
/// looked at it.
const TRIES_MAX: usize = 4;

/// A request that is to be sent, and what becomes of its answer.
pub(super) struct Exchange<'a> {
    gateway: &'a Gateway,
    upstreams: &'a Arc<Upstreams>,
    caller: &'a Rc<Caller>,
    valid: &'a ValidHead<'a>,
    /// The headers that may go on.
    headers: Headers<'a>,
    upgrade: Option<Vec<u8>>,
    takes_trailers: bool,
    reads_body: bool,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(
        gateway: &'a Gateway,
        upstreams: &'a Arc<Upstreams>,
        caller: &'a Rc<Caller>,
        valid: &'a ValidHead<'a>,
        reads_body: bool,
    ) -> Self {
        let mut exchange = Self {
            gateway,
            upstreams,
            caller,
            valid,
            headers: valid.head.headers,
            upgrade: None,
            takes_trailers: false,
            reads_body,
        };
        if valid.concerns_connection {
            exchange.read_hop();
        }
        exchange
    }

    /// Reads what the request says about its connection.
    fn read_hop(&mut self) {
        let head = &self.valid.head;
        forward::hide_listed(&mut self.headers, |name| self.gateway.reads(name));
        // In HTTP/2 a connection is not one request's to change.
        let may_upgrade = self.upstreams.settings.protocol != UpstreamProtocol::Http2
            && head.version == Version::HTTP_11
            && forward::lists(head.headers.all("connection"), b"upgrade");
        if may_upgrade {
            self.upgrade = upgrade::wanted(head.headers.all("upgrade"));
        }
        self.takes_trailers = forward::lists(head.headers.all("te"), b"trailers");
    }

    /// Sends the request to an upstream, or to the next where that is safe, and writes the answer.
    /// The pass is taken once there is one.
    pub(super) async fn run(
        &self,
        mut body: RequestBody<'_>,
        pass: &mut Option<Pass<Node>>,
        answer: &mut Answer,
    ) -> Result<(), Fault> {
        let mut tried: SmallVec<[usize; 4]> = SmallVec::new();
        let now_us = ProcessClock.now_us();
        let mut flight = self.upstreams.pick(&tried, now_us).ok_or(Fault::Connect)?;
        let mut may_repeat = self.may_repeat(&body);
        // Idle connections of one upstream end together more often than not, so the second try is
        // by a new one.
        let mut is_anew = false;
        let mut tries = 0;
        loop {
            let pooled = if is_anew { None } else { self.take(&flight, may_repeat) };
            let is_used = pooled.is_some();
            let connection = match pooled {
                Some(connection) => connection,
                // In a box, as it is seldom needed.
                None => match Box::pin(self.connect(&flight, is_anew)).await {
                    Ok(connection) => connection,
                    Err(fault) => {
                        let now_us = ProcessClock.now_us();
                        flight.server().rest(now_us);
                        tried.push(flight.server);
                        flight = self.upstreams.pick(&tried, now_us).ok_or(fault)?;
                        continue;
                    }
                },
            };
            tries += 1;
            let is_http2 = matches!(connection, Connection::Http2(_));
            // Idle connections of HTTP/1 come to an end by themselves; one that is shared is new
            // again and again.
            let is_last = if is_http2 { tries >= TRIES_MAX } else { !is_used };
            let sent = match connection {
                Connection::Http1(stream) => {
                    self.http1(stream, is_used, &flight, &mut body, pass, answer).await
                }
                Connection::Http2(stream) => {
                    let sending = self.http2(stream, is_used, &flight, &mut body, pass, answer);
                    Box::pin(sending).await
                }
            };
            match sent {
                Ok(()) => return Ok(()),
                Err(Failed::Unsent(_) | Failed::Unseen(_)) if !is_last => {}
                Err(Failed::Silent(_)) if may_repeat && !is_last => {
                    (may_repeat, is_anew) = (false, true);
                }
                Err(
                    Failed::Unsent(fault)
                    | Failed::Unseen(fault)
                    | Failed::Silent(fault)
                    | Failed::Lost(fault),
                ) => return Err(fault),
            }
        }
    }

    /// Whether the request can be sent twice and mean the same: it has no body, and its method says
    /// so.
    fn may_repeat(&self, body: &RequestBody<'_>) -> bool {
        body.is_empty()
            && matches!(
                self.valid.head.method,
                "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE"
            )
    }

    /// A connection that has been used before.
    fn take(&self, flight: &Flight, may_repeat: bool) -> Option<Connection> {
        let (pool, generation) = (&self.gateway.pool, self.upstreams.generation);
        pool.take(generation, flight.server(), self.upgrade.is_some(), !may_repeat)
    }

    async fn connect(&self, flight: &Flight, is_anew: bool) -> Result<Connection, Fault> {
        let within = self.upstreams.settings.connect;
        let connecting = self.connect_or_share(flight.server(), is_anew);
        match before(&mut self.caller.alarm(), within, connecting, || true).await {
            Some(Ok(connection)) => Ok(connection),
            Some(Err(error)) => {
                let server = flight.server().name();
                tracing::debug!(server, %error, "cannot connect to the server");
                Err(Fault::Connect)
            }
            None => Err(Fault::Connect),
        }
    }

    /// Connects, or waits for a connection that another request makes where that will do for both,
    /// unless it has to be a new one.
    async fn connect_or_share(&self, server: &Server, is_anew: bool) -> io::Result<Connection> {
        let (pool, generation) = (&self.gateway.pool, self.upstreams.generation);
        let is_upgrade = self.upgrade.is_some();
        let shares = !is_anew && !is_upgrade && server.speaks_http2.load(Relaxed);
        let connecting = shares.then(|| pool.connecting(server));
        let _turn = match &connecting {
            Some(connecting) => {
                let turn = connecting.lock().await;
                if let Some(connection) = pool.take(generation, server, false, false) {
                    return Ok(connection);
                }
                Some(turn)
            }
            None => None,
        };
        let connection = connect(server, is_upgrade).await?;
        pool.share(generation, server, &connection);
        Ok(connection)
    }

    /// Where the request came from, for an upstream that is asked as the settings say.
    fn from<'s>(&'s self, server: &'s Server) -> From<'s> {
        let Self { gateway, caller, valid, .. } = self;
        let (rules, peer) = (gateway.shared.node.gate.rules(), unmap(caller.peer.ip()));
        let is_trusted = rules.web().client.is_trusted(peer);
        let client = match is_trusted {
            true => gateway.toll.reader().client(&rules, &valid.head, peer),
            false => peer,
        };
        let settings = &self.upstreams.settings;
        // A client of HTTP/1.0 may name no host, and the upstream has to get one.
        let host = valid.host.filter(|_| !settings.own_host);
        From {
            peer,
            address: &caller.address,
            is_trusted,
            client,
            is_tls: caller.is_tls,
            host: host.unwrap_or(server.authority.as_bytes()),
            override_headers: settings.override_headers,
        }
    }

    /// Appends the header lines for an upstream.
    fn write_lines(
        &self,
        server: &Server,
        body: &RequestBody<'_>,
        version: Version,
        out: &mut Vec<u8>,
    ) {
        let hop = Hop {
            body: self.sends_body(body),
            upgrade: self.upgrade.as_deref(),
            takes_trailers: self.takes_trailers,
            reads_body: self.reads_body,
            version,
        };
        forward::write_request(self.valid, &self.headers, &self.from(server), &hop, out);
    }

    fn sends_body(&self, body: &RequestBody<'_>) -> SendsBody {
        match body {
            RequestBody::Whole([]) => {
                let method = self.valid.head.method;
                let is_meant = self.valid.has_length || matches!(method, "POST" | "PUT" | "PATCH");
                if is_meant { SendsBody::Length(0) } else { SendsBody::Nothing }
            }
            RequestBody::Whole(bytes) => SendsBody::Length(bytes.len() as u64),
            RequestBody::Stream(upload) => match upload.size_hint().exact() {
                Some(length) => SendsBody::Length(length),
                // HTTP/2 says the length in a header only.
                None => match self.valid.head.headers.get("content-length").and_then(decimal) {
                    Some(length) => SendsBody::Length(length),
                    None => SendsBody::Chunks,
                },
            },
        }
    }
}

/// What a future has to say within its time, which begins where the alarm has not been set before;
/// `None` when that has passed. The clock is stopped while `counts` is false.
async fn before<T>(
    alarm: &mut Alarm,
    within: Duration,
    future: impl Future<Output = T>,
    counts: impl Fn() -> bool,
) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| {
        if let Poll::Ready(value) = future.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        while alarm.poll(context, within).is_ready() {
            if counts() {
                return Poll::Ready(None);
            }
            alarm.reset();
        }
        Poll::Pending
    })
    .await
}
