//! What a front end implements.

use super::{
    BoxError, CoarseTimer, RequestBody, RequestHead, ResponseBody, Tunnel,
    connection::ConnectionState, http2,
};
use bytes::Bytes;
use hyper::{StatusCode, body::Incoming, header::HeaderValue};
use std::{cell::RefCell, fmt, net::SocketAddr, pin::Pin, rc::Rc, sync::Arc};
use tollgate_core::header::Problem;
use tollgate_policy::address::unmap;

/// A request. Its body may still be on its way.
#[derive(Debug)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The head, where it was read.
    pub head: RequestHead<'a>,
    /// The body, whole or piece by piece.
    pub body: RequestBody<'a>,
}

/// A body that is written piece by piece.
pub type BodyStream = Pin<Box<dyn hyper::body::Body<Data = Bytes, Error = BoxError>>>;

/// An answer, in memory that is used again. How the body is delimited and whether the connection
/// goes on are not the handler's business.
#[derive(Default)]
#[non_exhaustive]
pub struct Answer {
    /// The status; 200 unless a handler says otherwise.
    pub status: StatusCode,
    /// The words after the status; the usual ones where this is empty.
    pub reason: Vec<u8>,
    /// Header lines, each with its end, names in lower case: `retry-after: 1\r\n`.
    pub lines: Vec<u8>,
    /// Whether `Date` is among the lines.
    pub is_dated: bool,
    /// The body, where it is whole.
    pub body: Vec<u8>,
    /// The body, where it comes piece by piece.
    pub stream: Option<BodyStream>,
    /// The length of a body that is not sent: in answers to `FRAME_HEADER_BYTES`, and in 304.
    pub length: Option<u64>,
    /// Whether the connection ends with this answer.
    pub close: bool,
    /// Joins the connection to another one, after an answer of 101.
    pub tunnel: Option<Tunnel>,
}

impl Answer {
    /// Makes room for another answer.
    pub(crate) fn clear(&mut self) {
        self.status = StatusCode::OK;
        self.reason.clear();
        self.lines.clear();
        self.body.clear();
        (self.is_dated, self.stream, self.length) = (false, None, None);
        (self.close, self.tunnel) = (false, None);
    }

    /// Appends a header line.
    pub fn header(&mut self, name: &str, value: impl AsRef<[u8]>) {
        super::http1::push_header(name.as_bytes(), value.as_ref(), &mut self.lines);
    }

    /// Answers with a problem after RFC 9457. `field`: the part of the request that it is about.
    pub(crate) fn set_problem(&mut self, status: StatusCode, detail: &str, field: Option<&str>) {
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

    /// Replaces all of it by this response.
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

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Answers requests. There is one for each worker, so it need not be shared between threads and may
/// keep buffers. Several requests can be under way in it at once, each waiting somewhere, so it
/// must not keep a buffer borrowed while it waits.
///
/// A panic ends the connection it happened on, or the stream where there are several, and is
/// counted.
pub trait Handler: 'static {
    /// Whether a client that ends its side has given up its request. Otherwise it still gets its
    /// answer.
    const CANCEL_ON_CLIENT_CLOSE: bool = false;

    /// Answers a request.
    fn handle(
        &self,
        request: Request<'_>,
        caller: &Rc<ClientConnection>,
        answer: &mut Answer,
    ) -> impl Future<Output = ()>;

    /// Answers a request that came by HTTP/2. Only gRPC, which is more than HTTP, has its own way.
    fn handle_http2(
        &self,
        request: hyper::Request<Incoming>,
        caller: &Rc<ClientConnection>,
    ) -> impl Future<Output = hyper::Response<ResponseBody>> {
        http2::handle(self, request, caller)
    }

    /// The TLS to speak with a client that connects now; `None` for a listener without.
    fn tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        None
    }
}

/// Interim answers that wait to be sent, at most.
const INTERIM_BYTES_MAX: usize = 16 * 1024;

/// The connection that a request came by.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClientConnection {
    /// Who is at its other end, or who a load balancer says is.
    pub peer: SocketAddr,
    /// The peer's address alone, as text.
    pub address: HeaderValue,
    /// Whether it is encrypted.
    pub is_tls: bool,
    pub(super) life: Rc<ConnectionState>,
    /// Interim answers that have not been sent yet.
    pub(super) interim: RefCell<Vec<u8>>,
}

impl ClientConnection {
    pub(super) fn new(peer: SocketAddr, is_tls: bool, life: Rc<ConnectionState>) -> Self {
        let address = HeaderValue::try_from(unmap(peer.ip()).to_string());
        Self {
            peer,
            // An IP address is always a valid header value.
            address: address.unwrap_or(HeaderValue::from_static("unknown")),
            is_tls,
            life,
            interim: RefCell::default(),
        }
    }

    /// A deadline for something that a request waits for.
    pub fn alarm(&self) -> CoarseTimer {
        CoarseTimer::new(self.life.alarms.clone())
    }

    /// Sends an answer of 1xx, by HTTP/1.1, before the final one.
    pub(crate) fn send_interim(&self, bytes: &[u8]) {
        let mut interim = self.interim.borrow_mut();
        // A client that does not read them does without.
        if interim.len() + bytes.len() <= INTERIM_BYTES_MAX {
            interim.extend_from_slice(bytes);
        }
        self.life.wake();
    }
}
