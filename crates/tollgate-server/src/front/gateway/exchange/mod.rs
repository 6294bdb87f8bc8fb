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
    forward::{self, HopOptions, RequestFraming, RequestOrigin},
    pool::UpstreamConnection,
    upgrade,
    upstream::{SelectedUpstream, UpstreamServer, Upstreams},
    validate::ValidHead,
};
use crate::{
    Node,
    net::{Answer, BodyError, ClientConnection, CoarseTimer, Headers, RequestBody, parse_decimal},
    observe::metrics::{Outcome, UpstreamFailure},
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
use tollgate_tower::Admission;

pub(super) use http1::probe as probe_http1;
pub(super) use http2::probe as probe_http2;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeError {
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

impl ExchangeError {
    /// What the metrics call it, where it is the upstream's.
    pub(super) fn unanswered(self) -> Option<UpstreamFailure> {
        match self {
            Self::Connect => Some(UpstreamFailure::Connect),
            Self::Protocol | Self::TooLarge => Some(UpstreamFailure::Protocol),
            Self::Timeout => Some(UpstreamFailure::Timeout),
            Self::Client(_) => None,
        }
    }

    /// What the metrics call its request.
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Connect | Self::Protocol | Self::TooLarge | Self::Timeout => Outcome::Error,
            Self::Client(BodyError::PeerClosed) => Outcome::Abandoned,
            Self::Client(_) => Outcome::Invalid,
        }
    }
}

/// How an attempt failed.
enum AttemptError {
    /// The request never left.
    Unsent(ExchangeError),
    /// It left, and the upstream did not look at it.
    NotProcessed(ExchangeError),
    /// It left by a connection that had been idle, and not a byte came in return.
    NoResponse(ExchangeError),
    /// It may have done something.
    Fatal(ExchangeError),
}

/// What an upstream's head is called in the log that is too large.
pub(super) const TOO_LARGE: &str =
    "the head of its answer is too large (more than 16 KiB, or 100 fields)";

/// How often a request is sent at most, where upstreams say again and again that they have not
/// looked at it.
const ATTEMPTS_MAX: usize = 4;

/// A request that is to be sent, and what becomes of its answer.
pub(super) struct Exchange<'a> {
    gateway: &'a Gateway,
    upstreams: &'a Arc<Upstreams>,
    caller: &'a Rc<ClientConnection>,
    valid: &'a ValidHead<'a>,
    /// The headers that may go on.
    headers: Headers<'a>,
    upgrade: Option<Vec<u8>>,
    accepts_trailers: bool,
    reads_body: bool,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(
        gateway: &'a Gateway,
        upstreams: &'a Arc<Upstreams>,
        caller: &'a Rc<ClientConnection>,
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
            accepts_trailers: false,
            reads_body,
        };
        if valid.has_connection_headers {
            exchange.read_connection_headers();
        }
        exchange
    }

    /// Reads what the request says about its connection.
    fn read_connection_headers(&mut self) {
        let head = &self.valid.head;
        forward::hide_connection_listed(&mut self.headers, |name| self.gateway.reads(name));
        // In HTTP/2 a connection is not one request's to change.
        let may_upgrade = self.upstreams.settings.protocol != UpstreamProtocol::Http2
            && head.version == Version::HTTP_11
            && forward::has_token(head.headers.all("connection"), b"upgrade");
        if may_upgrade {
            self.upgrade = upgrade::allowed_protocols(head.headers.all("upgrade"));
        }
        self.accepts_trailers = forward::has_token(head.headers.all("te"), b"trailers");
    }

    /// Sends the request to an upstream, or to the next where that is safe, and writes the answer.
    /// The pass is taken once there is one.
    pub(super) async fn run(
        &self,
        mut body: RequestBody<'_>,
        pass: &mut Option<Admission<Node>>,
        answer: &mut Answer,
    ) -> Result<(), ExchangeError> {
        let mut tried: SmallVec<[usize; 4]> = SmallVec::new();
        let now_us = ProcessClock.now_us();
        let mut flight = self.upstreams.pick(&tried, now_us).ok_or(ExchangeError::Connect)?;
        let mut may_repeat = self.is_retryable(&body);
        // Idle connections of one upstream end together more often than not, so the second try is
        // by a new one.
        let mut is_anew = false;
        let mut tries = 0;
        loop {
            let pooled = if is_anew { None } else { self.take_pooled(&flight, may_repeat) };
            let is_used = pooled.is_some();
            let connection = match pooled {
                Some(connection) => connection,
                // In a box, as it is seldom needed.
                None => match Box::pin(self.connect(&flight, is_anew)).await {
                    Ok(connection) => connection,
                    Err(fault) => {
                        let now_us = ProcessClock.now_us();
                        flight.server().mark_unreachable(now_us);
                        tried.push(flight.server);
                        flight = self.upstreams.pick(&tried, now_us).ok_or(fault)?;
                        continue;
                    }
                },
            };
            tries += 1;
            let is_http2 = matches!(connection, UpstreamConnection::Http2(_));
            // Idle connections of HTTP/1 come to an end by themselves; one that is shared is new
            // again and again.
            let is_last = if is_http2 { tries >= ATTEMPTS_MAX } else { !is_used };
            let sent = match connection {
                UpstreamConnection::Http1(stream) => {
                    self.http1(stream, is_used, &flight, &mut body, pass, answer).await
                }
                UpstreamConnection::Http2(stream) => {
                    let sending = self.http2(stream, is_used, &flight, &mut body, pass, answer);
                    Box::pin(sending).await
                }
            };
            match sent {
                Ok(()) => return Ok(()),
                Err(AttemptError::Unsent(_) | AttemptError::NotProcessed(_)) if !is_last => {}
                Err(AttemptError::NoResponse(_)) if may_repeat && !is_last => {
                    (may_repeat, is_anew) = (false, true);
                }
                Err(
                    AttemptError::Unsent(fault)
                    | AttemptError::NotProcessed(fault)
                    | AttemptError::NoResponse(fault)
                    | AttemptError::Fatal(fault),
                ) => return Err(fault),
            }
        }
    }

    /// Whether the request can be sent twice and mean the same: it has no body, and its method says
    /// so.
    fn is_retryable(&self, body: &RequestBody<'_>) -> bool {
        body.is_empty()
            && matches!(
                self.valid.head.method,
                "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE"
            )
    }

    /// A connection that has been used before.
    fn take_pooled(
        &self,
        flight: &SelectedUpstream,
        may_repeat: bool,
    ) -> Option<UpstreamConnection> {
        let (pool, generation) = (&self.gateway.pool, self.upstreams.generation);
        pool.take(generation, flight.server(), self.upgrade.is_some(), !may_repeat)
    }

    async fn connect(
        &self,
        flight: &SelectedUpstream,
        is_anew: bool,
    ) -> Result<UpstreamConnection, ExchangeError> {
        let within = self.upstreams.settings.connect;
        let connecting = self.connect_or_share(flight.server(), is_anew);
        match with_deadline(&mut self.caller.alarm(), within, connecting, || true).await {
            Some(Ok(connection)) => Ok(connection),
            Some(Err(error)) => {
                let server = flight.server().name();
                tracing::debug!(server, %error, "cannot connect to the server");
                Err(ExchangeError::Connect)
            }
            None => Err(ExchangeError::Connect),
        }
    }

    /// Connects, or waits for a connection that another request makes where that will do for both,
    /// unless it has to be a new one.
    async fn connect_or_share(
        &self,
        server: &UpstreamServer,
        is_anew: bool,
    ) -> io::Result<UpstreamConnection> {
        let (pool, generation) = (&self.gateway.pool, self.upstreams.generation);
        let is_upgrade = self.upgrade.is_some();
        let shares = !is_anew && !is_upgrade && server.speaks_http2.load(Relaxed);
        let connecting = shares.then(|| pool.connect_lock(server));
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
    fn origin<'s>(&'s self, server: &'s UpstreamServer) -> RequestOrigin<'s> {
        let Self { gateway, caller, valid, .. } = self;
        let (rules, peer) = (gateway.shared.node.gate.rules(), unmap(caller.peer.ip()));
        let is_trusted = rules.http_policy().client.is_trusted(peer);
        let client = match is_trusted {
            true => gateway.toll.reader().client(&rules, &valid.head, peer),
            false => peer,
        };
        let settings = &self.upstreams.settings;
        // A client of HTTP/1.0 may name no host, and the upstream has to get one.
        let host = valid.host.filter(|_| !settings.own_host);
        RequestOrigin {
            peer,
            peer_text: &caller.address,
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
        server: &UpstreamServer,
        body: &RequestBody<'_>,
        version: Version,
        out: &mut Vec<u8>,
    ) {
        let hop = HopOptions {
            body: self.request_framing(body),
            upgrade: self.upgrade.as_deref(),
            accepts_trailers: self.accepts_trailers,
            reads_body: self.reads_body,
            version,
        };
        forward::write_request(self.valid, &self.headers, &self.origin(server), &hop, out);
    }

    fn request_framing(&self, body: &RequestBody<'_>) -> RequestFraming {
        match body {
            RequestBody::Full([]) => {
                let method = self.valid.head.method;
                let is_meant = self.valid.has_length || matches!(method, "POST" | "PUT" | "PATCH");
                if is_meant { RequestFraming::Length(0) } else { RequestFraming::NoBody }
            }
            RequestBody::Full(bytes) => RequestFraming::Length(bytes.len() as u64),
            RequestBody::Stream(upload) => match upload.size_hint().exact() {
                Some(length) => RequestFraming::Length(length),
                // HTTP/2 says the length in a header only.
                None => match self.valid.head.headers.get("content-length").and_then(parse_decimal)
                {
                    Some(length) => RequestFraming::Length(length),
                    None => RequestFraming::Chunked,
                },
            },
        }
    }
}

/// What a future has to say within its time, which begins where the alarm has not been set before;
/// `None` when that has passed. The clock is stopped while `counts` is false.
async fn with_deadline<T>(
    alarm: &mut CoarseTimer,
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
