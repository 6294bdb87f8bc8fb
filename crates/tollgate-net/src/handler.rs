//! The interface of front ends: handler, request, response, connection.

use super::{
    BoxError, CoarseTimer, RequestBody, RequestHead, ResponseBody, Tunnel,
    connection::ConnectionState, http2,
};
use bytes::Bytes;
use hyper::{StatusCode, body::Incoming};
use std::{
    cell::{OnceCell, RefCell},
    fmt,
    net::SocketAddr,
    pin::Pin,
    rc::Rc,
    sync::Arc,
};
use tollgate_core::header::Problem;

/// Limit of bytes queued when an interim response is added. Responses to pipelined requests may
/// take 16 KiB; a `100 Continue` must fit after them.
const INTERIM_BYTES_MAX: usize = 32 * 1024;

/// A request. Its body may still be in transit.
#[derive(Debug)]
pub struct Request<'a> {
    /// The head, in the buffer that it was read into.
    pub head: RequestHead<'a>,
    /// The body.
    pub body: RequestBody<'a>,
}

/// A malformed HTTP/1.1 request, and its answer.
#[derive(Debug)]
pub struct RefusedRequest<'a> {
    /// The bytes of the head that were read; not necessarily valid.
    pub head: &'a [u8],
    /// The status of the answer.
    pub status: StatusCode,
    /// The bytes of the answer's body.
    pub body_bytes: u64,
}

/// A body that is written piece by piece.
pub type BodyStream = Pin<Box<dyn hyper::body::Body<Data = Bytes, Error = BoxError>>>;

/// An answer, in reusable buffers. The connection decides on framing and persistence.
#[derive(Default)]
pub struct HttpResponse {
    /// The status; 200 by default.
    pub status: StatusCode,
    /// The reason phrase; empty for the standard one.
    pub reason: Vec<u8>,
    /// Header lines, each with its line end, names in lower case: `retry-after: 1\r\n`.
    pub lines: Vec<u8>,
    /// Whether `lines` has a `Date`.
    pub is_dated: bool,
    /// The time of the answer, for its `Date`. `None` reads the clock.
    pub answered_us: Option<u64>,
    /// The body, if it is complete.
    pub body: Vec<u8>,
    /// The body, if it is written piece by piece.
    pub stream: Option<BodyStream>,
    /// The length of a body that is not sent: for `HEAD` requests, and for 304.
    pub length: Option<u64>,
    /// Whether the connection closes after this answer.
    pub close: bool,
    /// The upstream's end of the connection, after a 101.
    pub tunnel: Option<Tunnel>,
}

impl HttpResponse {
    /// Resets the answer, but keeps its buffers.
    #[inline]
    pub fn clear(&mut self) {
        self.status = StatusCode::OK;
        self.reason.clear();
        self.lines.clear();
        self.body.clear();
        (self.is_dated, self.answered_us) = (false, None);
        (self.stream, self.length) = (None, None);
        (self.close, self.tunnel) = (false, None);
    }

    /// Appends a header line.
    pub fn header(&mut self, name: &str, value: impl AsRef<[u8]>) {
        super::http1::push_header(name.as_bytes(), value.as_ref(), &mut self.lines);
    }

    /// Writes problem details (RFC 9457). `field` names the invalid part of the request.
    pub fn set_problem(&mut self, status: StatusCode, detail: &str, field: Option<&str>) {
        let (title, code) = (status.canonical_reason().unwrap_or_default(), status.as_u16());
        self.status = status;
        self.header("content-type", Problem::MEDIA_TYPE);
        self.header("cache-control", "no-store");
        let field = field.map_or(String::new(), |field| format!(",\"field\":\"{field}\""));
        let problem = format!(
            "{{\"type\":\"about:blank\",\"title\":\"{title}\",\"status\":{code},\
             \"detail\":\"{detail}\"{field}}}"
        );
        self.body.clear();
        self.body.extend_from_slice(problem.as_bytes());
    }

    /// Replaces the answer by an `http` response.
    pub fn set(&mut self, response: hyper::Response<impl Into<Bytes>>) {
        let (head, body) = response.into_parts();
        self.clear();
        self.status = head.status;
        for (name, value) in &head.headers {
            self.header(name.as_str(), value);
        }
        self.body.extend_from_slice(&body.into());
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Answers requests. Each worker has its own handler, so a handler needs no locks and may keep
/// buffers. Several requests can be in flight in one handler, so it must not borrow a buffer across
/// an `await`.
///
/// A panic closes its connection, or its stream in HTTP/2, and is counted.
pub trait Handler: 'static {
    /// Whether a request is cancelled when its client closes its side of the connection.
    const CANCEL_ON_CLIENT_CLOSE: bool = false;

    /// Answers a request.
    fn handle(
        &self,
        request: Request<'_>,
        caller: &Rc<ClientConnection>,
        answer: &mut HttpResponse,
    ) -> impl Future<Output = ()>;

    /// Records a malformed request that the connection refused before the handler ran.
    fn refused(&self, _request: &RefusedRequest<'_>, _caller: &ClientConnection) {}

    /// Changes the answer to a malformed request. `head` has the bytes of the head that were read.
    fn adapt_refusal(&self, _head: &[u8], _answer: &mut HttpResponse) {}

    /// Answers an HTTP/2 request. Only gRPC overrides this.
    fn handle_http2(
        &self,
        request: hyper::Request<Incoming>,
        caller: &Rc<ClientConnection>,
    ) -> impl Future<Output = hyper::Response<ResponseBody>> {
        http2::handle(self, request, caller)
    }

    /// The TLS configuration for a new connection; `None` for a listener without TLS.
    fn tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        None
    }
}

/// The connection of a request.
#[derive(Debug)]
pub struct ClientConnection {
    /// The client's address; from the PROXY protocol if the listener uses it.
    pub peer: SocketAddr,
    /// Header lines that a handler writes for each request of this connection.
    pub origin_lines: OnceCell<Box<[u8]>>,
    /// Whether the connection is encrypted.
    pub is_tls: bool,
    pub(super) state: Rc<ConnectionState>,
    /// Interim responses that are not sent yet, after earlier responses.
    pub(super) interim: RefCell<Vec<u8>>,
}

impl ClientConnection {
    pub(super) fn new(peer: SocketAddr, is_tls: bool, state: Rc<ConnectionState>) -> Self {
        let (origin_lines, interim) = Default::default();
        Self { peer, origin_lines, is_tls, state, interim }
    }

    /// Creates a timer for a wait of a request.
    pub fn timer(&self) -> CoarseTimer {
        CoarseTimer::new(self.state.timers.clone())
    }

    /// Sends an interim response (1xx) of HTTP/1.1. If the client does not read, interim responses
    /// are dropped.
    pub fn send_interim(&self, bytes: &[u8]) {
        let mut interim = self.interim.borrow_mut();
        if interim.len() + bytes.len() <= INTERIM_BYTES_MAX {
            interim.extend_from_slice(bytes);
        }
        self.state.wake();
    }
}
