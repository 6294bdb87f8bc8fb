//! One request to an upstream and its response, with retries.
//!
//! If an upstream cannot be connected to, another one is tried. A request is sent again
//!
//! * if a reused connection failed before any byte of the request was sent, or an HTTP/2 upstream
//!   says that it did not process the request;
//! * once, for an idempotent request without a body, if a reused connection closed before the first
//!   byte of a response. The request may then be processed twice.

mod body;
mod http1;
mod http2;

pub(super) use body::Http2RequestBody;
pub(super) use http1::probe as probe_http1;
pub(super) use http2::probe as probe_http2;

use super::forward::{self, HopOptions, RequestOrigin, peer_lines};
use super::upstream::{SelectedUpstream, UpstreamConnection, UpstreamServer, Upstreams, connect};
use super::{Gateway, validate::ValidHead};
use crate::Node;
use body::{Download, DownloadSource};
use hyper::{Version, body::Body as _};
use smallvec::SmallVec;
use std::net::IpAddr;
use std::sync::{Arc, atomic::Ordering::Relaxed};
use std::{future::poll_fn, io, pin::pin, rc::Rc, task::Poll, time::Duration};
use tollgate::engine::{Rules, UpstreamOutcome};
use tollgate::store::ProcessClock;
use tollgate_net::{
    BodyError, ClientConnection, CoarseTimer, Framing, Headers, HttpResponse, RequestBody,
    RequestHead, parse_decimal,
};
use tollgate_observe::metrics::{Outcome, UpstreamFailure};
use tollgate_policy::{address::unmap, settings::UpstreamProtocol};
use tollgate_tower::{Admission, AdmissionGuard, Reader, ResponseGuard};

/// Why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeError {
    /// No reachable upstream is left.
    Connect,
    /// An upstream closed the connection, or broke the protocol.
    Protocol,
    /// The head of a response is too large.
    TooLarge,
    /// The response did not begin in time.
    Timeout,
    /// The client's body failed.
    Client(BodyError),
}

impl ExchangeError {
    /// The failure that the metrics count; `None` if the client failed.
    pub(super) fn upstream_failure(self) -> Option<UpstreamFailure> {
        match self {
            Self::Connect => Some(UpstreamFailure::Connect),
            Self::Protocol | Self::TooLarge => Some(UpstreamFailure::Protocol),
            Self::Timeout => Some(UpstreamFailure::Timeout),
            Self::Client(_) => None,
        }
    }

    /// The outcome for the adaptive shedder. An upstream that cannot be reached, closes the
    /// connection or takes too long counts as overloaded. A head that is too large does not.
    pub(super) fn upstream_outcome(self) -> UpstreamOutcome {
        match self {
            Self::Connect | Self::Protocol | Self::Timeout => UpstreamOutcome::Overloaded,
            Self::TooLarge => UpstreamOutcome::Ok,
            Self::Client(_) => UpstreamOutcome::Ignored,
        }
    }

    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Client(BodyError::PeerClosed) => Outcome::Abandoned,
            Self::Client(_) => Outcome::Invalid,
            _ => Outcome::Error,
        }
    }
}

/// Whether a failed request may be sent again.
#[derive(Clone, Copy)]
enum Retry {
    /// Yes: the upstream did not process it.
    Safe,
    /// Only [if it can be sent twice](Exchange::may_send_twice): a reused connection closed before
    /// the first byte of a response.
    IfIdempotent,
    Never,
}

type AttemptError = (ExchangeError, Retry);

/// The log message for a response head that is too large.
const TOO_LARGE: &str =
    "the head of its response is too large (more than 16 KiB, or more than 100 headers)";

/// Limit of attempts over HTTP/2. Over HTTP/1.1 the first new connection is the last attempt.
const HTTP2_ATTEMPTS_MAX: usize = 4;

/// A request to an upstream, and the answer to the client, made from the response.
pub(super) struct Exchange<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) upstreams: &'a Arc<Upstreams>,
    pub(super) caller: &'a Rc<ClientConnection>,
    pub(super) valid: &'a ValidHead<'a>,
    pub(super) hop: ClientHop<'a>,
    pub(super) body: RequestBody<'a>,
    /// Taken when the response begins. If there is none, the caller ends it.
    pub(super) admission: &'a mut Option<Admission<Node>>,
    pub(super) answer: &'a mut HttpResponse,
}

/// The client's side of a request: its address and its connection headers.
pub(super) struct ClientHop<'a> {
    /// The headers to forward: without those that `Connection` lists, once they are read.
    pub(super) headers: Headers<'a>,
    /// The protocols that the client wants to switch to.
    upgrade: Option<Vec<u8>>,
    accepts_trailers: bool,
    /// The client, as far as trusted proxies vouch for it; `None` if the peer is none of them.
    pub(super) client: Option<IpAddr>,
}

impl<'a> ClientHop<'a> {
    pub(super) fn new(
        head: &RequestHead<'a>,
        peer: IpAddr,
        rules: &Rules,
        reader: &Reader,
    ) -> Self {
        let is_trusted = rules.http_policy().client.is_trusted(peer);
        let client = is_trusted.then(|| reader.client(rules, head, unmap(peer)));
        let (headers, upgrade, accepts_trailers) = (head.headers, None, false);
        Self { headers, upgrade, accepts_trailers, client }
    }

    /// Reads `Connection` and `TE`. Names that limits read are not hidden.
    pub(super) fn read_connection_headers(
        &mut self,
        ValidHead { head, has_connection_headers, .. }: &ValidHead<'_>,
        protocol: UpstreamProtocol,
        rules: &Rules,
        reader: &Reader,
    ) {
        if !has_connection_headers {
            return;
        }
        forward::hide_connection_listed(&mut self.headers, |name| reader.reads(rules, name));
        // HTTP/2 has no upgrade: requests share the connection.
        let may_upgrade = protocol != UpstreamProtocol::Http2
            && head.version == Version::HTTP_11
            && forward::has_token(head.headers.all("connection"), b"upgrade");
        if may_upgrade {
            self.upgrade = forward::allowed_protocols(head.headers.all("upgrade"));
        }
        self.accepts_trailers = forward::has_token(head.headers.all("te"), b"trailers");
    }
}

impl Exchange<'_> {
    /// Sends the request to an upstream that the balancer picks, or to the next one if it cannot be
    /// connected to, and writes the answer. `now_us` dates cool-downs and idle connections.
    /// Returns the index of the upstream that responded, and the time of the answer.
    pub(super) async fn run(&mut self, mut now_us: u64) -> Result<(usize, u64), ExchangeError> {
        let mut tried: SmallVec<[usize; 4]> = SmallVec::new();
        let mut selected = self.upstreams.pick(&tried, now_us).ok_or(ExchangeError::Connect)?;
        let mut may_resend = self.may_send_twice();
        // An upstream often closes its idle connections together: the second send needs a new one.
        let mut skips_pool = false;
        let mut attempts = 0;
        loop {
            let is_upgrade = self.hop.upgrade.is_some();
            let take = || self.gateway.pool.take(&selected, now_us, is_upgrade, !may_resend);
            let pooled = if skips_pool { None } else { take() };
            let is_reused = pooled.is_some();
            let connection = match pooled {
                Some(connection) => connection,
                // Boxed to keep this future small: most requests reuse a connection.
                None => match Box::pin(self.connect(&selected, skips_pool)).await {
                    Ok(connection) => connection,
                    Err(error) => {
                        now_us = ProcessClock.now_us();
                        selected.server().mark_unreachable(now_us);
                        tried.push(selected.server);
                        selected = self.upstreams.pick(&tried, now_us).ok_or(error)?;
                        continue;
                    }
                },
            };
            attempts += 1;
            // A new HTTP/1.1 connection is the last attempt. A new HTTP/2 one may already be
            // closing, so the request may be sent again.
            let (is_last, sent) = match connection {
                UpstreamConnection::Http1(stream) => {
                    (!is_reused, self.http1(stream, is_reused, &selected).await)
                }
                UpstreamConnection::Http2(stream) => {
                    let sending = Box::pin(self.http2(stream, is_reused, &selected));
                    (attempts >= HTTP2_ATTEMPTS_MAX, sending.await)
                }
            };
            match sent {
                Ok(now_us) => return Ok((selected.server, now_us)),
                Err((_, Retry::Safe)) if !is_last => {}
                Err((_, Retry::IfIdempotent)) if may_resend && !is_last => {
                    (may_resend, skips_pool) = (false, true);
                }
                Err((error, _)) => return Err(error),
            }
        }
    }

    /// Whether the request can be sent twice: it has no body, and its method is idempotent.
    #[inline(always)]
    fn may_send_twice(&self) -> bool {
        let method = self.valid.head.method;
        self.body.is_empty()
            && matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE")
    }

    async fn connect(
        &self,
        selected: &SelectedUpstream,
        skips_pool: bool,
    ) -> Result<UpstreamConnection, ExchangeError> {
        let connecting = self.connect_or_share(selected, skips_pool);
        let within = self.upstreams.settings.connect;
        let made = with_deadline(&mut self.caller.timer(), within, connecting, || true).await;
        if let Some(Err(error)) = &made {
            tracing::debug!(server = selected.server().name(), %error, "cannot connect to the upstream");
        }
        made.and_then(Result::ok).ok_or(ExchangeError::Connect)
    }

    /// Connects. If another request is already opening an HTTP/2 connection to this server, waits
    /// for it and shares it.
    async fn connect_or_share(
        &self,
        selected: &SelectedUpstream,
        skips_pool: bool,
    ) -> io::Result<UpstreamConnection> {
        let (pool, server) = (&self.gateway.pool, selected.server());
        let is_upgrade = self.hop.upgrade.is_some();
        let shares = !skips_pool && !is_upgrade && server.speaks_http2.load(Relaxed);
        let lock = shares.then(|| pool.connect_lock(server));
        // Held until the connection is shared.
        let mut _guard = None;
        if let Some(lock) = &lock {
            _guard = Some(lock.lock().await);
            if let Some(connection) = pool.take(selected, ProcessClock.now_us(), false, false) {
                return Ok(connection);
            }
        }
        let connection = connect(server, is_upgrade).await?;
        pool.share(selected, &connection);
        Ok(connection)
    }

    /// The client and host that the forwarding headers report to this upstream.
    fn origin<'s>(&'s self, server: &'s UpstreamServer) -> RequestOrigin<'s> {
        let Self { caller, valid, hop, .. } = self;
        let settings = &self.upstreams.settings;
        let host = valid.host.filter(|_| !settings.own_host);
        RequestOrigin {
            peer_lines: caller.origin_lines.get_or_init(|| peer_lines(caller)),
            client: hop.client,
            is_tls: caller.is_tls,
            // A client of HTTP/1.0 may name no host, but the upstream needs one.
            host: host.unwrap_or(server.authority.as_bytes()),
            override_headers: settings.override_headers,
        }
    }

    /// Appends the header lines for an upstream.
    fn write_lines(
        &self,
        server: &UpstreamServer,
        framing: Framing,
        version: Version,
        out: &mut Vec<u8>,
    ) {
        let hop = HopOptions {
            framing,
            upgrade: self.hop.upgrade.as_deref(),
            accepts_trailers: self.hop.accepts_trailers,
            reads_body: self.admission.as_ref().is_some_and(Admission::needs_body),
            version,
        };
        forward::write_request(self.valid, &self.hop.headers, &self.origin(server), &hop, out);
    }

    /// The framing of the body for the upstream. `Length(0)` sends `Content-Length: 0`, `Empty` no
    /// length.
    fn request_framing(&self) -> Framing {
        let head = &self.valid.head;
        match &self.body {
            RequestBody::Full([]) => {
                let states_length =
                    self.valid.has_length || matches!(head.method, "POST" | "PUT" | "PATCH");
                if states_length { Framing::Length(0) } else { Framing::Empty }
            }
            RequestBody::Full(bytes) => Framing::Length(bytes.len() as u64),
            // For HTTP/2 clients the size hint is unknown, and the header has the length.
            RequestBody::Stream(upload) => {
                let header = || head.headers.get("content-length").and_then(parse_decimal);
                upload.size_hint().exact().or_else(header).map_or(Framing::Chunked, Framing::Length)
            }
        }
    }

    /// Streams the body of a response to the client. The slot of the adaptive shedder is free by
    /// now; the guard holds the other slots until the body ends.
    fn stream_body(
        &mut self,
        source: DownloadSource,
        selected: &SelectedUpstream,
        guard: AdmissionGuard<Node>,
    ) {
        let (timer, idle) = (self.caller.timer(), self.upstreams.settings.idle);
        let download = Download { source, timer, idle, selected: selected.clone() };
        self.answer.stream = Some(if guard.holds_nothing() {
            Box::pin(download)
        } else {
            Box::pin(guard.wrap_body(download))
        });
    }
}

/// Frees the slot of the adaptive shedder while the upstream waits for the client's body, and takes
/// it again afterwards.
fn set_waits_for_client(admission: &mut Option<Admission<Node>>, waits: bool) {
    if let Some(admission) = admission {
        admission.set_waits_for_client(waits);
    }
}

/// Runs `future` with a deadline; `None` when it passes. If `counts` is false at that instant, the
/// whole period starts again. A timer that runs already keeps its deadline.
async fn with_deadline<T>(
    timer: &mut CoarseTimer,
    within: Duration,
    future: impl Future<Output = T>,
    counts: impl Fn() -> bool,
) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| {
        if let Poll::Ready(value) = future.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        while timer.poll(context, within).is_ready() {
            if counts() {
                return Poll::Ready(None);
            }
            timer.reset();
        }
        Poll::Pending
    })
    .await
}
