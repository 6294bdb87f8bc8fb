//! HTTP/2, by hyper: streams in, answers out. A front end sees the same requests as by HTTP/1.1.

mod never_indexed;
mod streams;

use super::{
    Answer, BoxError, ClientConnection, Handler, InFlightRequest, Limits, Request, RequestBody,
    ResponseBody, Upload,
    alarm::WriteTimeout,
    head::{HEADERS_MAX, HeaderSpan, Headers, RequestHead},
    http1::push_header,
    life::CloseRequest,
    stream::ConnectionStream,
};
use bytes::Bytes;
use hyper::{
    HeaderMap, Method, StatusCode, Version,
    body::{Body as _, Frame, Incoming, SizeHint},
    header::{CONTENT_LENGTH, COOKIE, HeaderName, HeaderValue},
    http::request::Parts,
    rt::Executor,
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};
use streams::NewStreams;
use tollgate::BufferPool;

/// The last piece of an answer that is said to be the last, at most.
const FINAL_PIECE_BYTES_MAX: usize = 16 * 1024;

/// Serves a connection until either side ends it.
pub(super) async fn serve<H: Handler>(
    stream: ConnectionStream,
    handler: Rc<H>,
    caller: Rc<ClientConnection>,
) {
    let life = caller.life.clone();
    life.set_multiplexed();
    let Limits {
        head_bytes_max,
        streams_max,
        resets_max,
        window_bytes,
        ping_interval: ping_every,
        ping_timeout: ping_within,
        ..
    } = life.front.limits;
    let service = service_fn(move |request| respond(handler.clone(), caller.clone(), request));
    let streams = NewStreams::default();
    let mut builder = http2::Builder::new(streams.clone());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(streams_max)
        .initial_stream_window_size(window_bytes)
        .initial_connection_window_size(window_bytes)
        .max_pending_accept_reset_streams(resets_max)
        .max_send_buf_size(window_bytes as usize)
        .max_header_list_size(u32::try_from(head_bytes_max).unwrap_or(u32::MAX))
        .keep_alive_interval(ping_every)
        .keep_alive_timeout(ping_within);
    let mut connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut is_finishing = false;
    life.until_closed(|context| {
        // Also where the connection ends at once: a client that is about to ask then knows that
        // nothing was begun.
        if life.close_request() != CloseRequest::None && !is_finishing {
            is_finishing = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        loop {
            let polled = Pin::new(&mut connection).poll(context);
            // The answers are written when the connection is polled again, all of them together.
            if polled.is_ready() || !streams.poll_each_once() {
                return polled;
            }
        }
    })
    .await;
}

/// Answers one request.
async fn respond<H: Handler>(
    handler: Rc<H>,
    caller: Rc<ClientConnection>,
    request: hyper::Request<Incoming>,
) -> Result<hyper::Response<TrackedBody>, Infallible> {
    let life = &caller.life;
    let busy = InFlightRequest::new(life);
    if request.headers().len() > life.front.limits.headers_max.min(HEADERS_MAX) {
        let mut response = hyper::Response::new(TrackedBody::new(ResponseBody::default(), busy));
        *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Ok(response);
    }
    let is_head = request.method() == Method::HEAD;
    let mut response = handler.handle_http2(request, &caller).await;
    never_indexed::mark_never_indexed(response.headers_mut(), life);
    if is_head {
        if let Some(length @ 1..) = response.body().size_hint().exact() {
            let headers = response.headers_mut();
            headers.entry(CONTENT_LENGTH).or_insert(HeaderValue::from(length));
        }
        *response.body_mut() = ResponseBody::default();
    }
    Ok(response.map(|body| TrackedBody::new(body, busy)))
}

/// Memory that outlives a request.
#[derive(Default)]
struct Http2Buffers {
    bytes: Vec<u8>,
    lines: Vec<HeaderSpan>,
    answer: Answer,
}

thread_local! {
    static SCRATCH: BufferPool<Http2Buffers> = const { BufferPool::new() };
}

/// Answers a request as one of HTTP/1.1 is answered.
pub(crate) async fn handle<H: Handler + ?Sized>(
    handler: &H,
    request: hyper::Request<Incoming>,
    caller: &Rc<ClientConnection>,
) -> hyper::Response<ResponseBody> {
    let (parts, incoming) = request.into_parts();
    let mut scratch = SCRATCH.with(BufferPool::take);
    let Http2Buffers { bytes, lines, answer } = &mut *scratch;
    headers_to_lines(&parts.headers, bytes, lines);
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let (method, headers) = (parts.method.as_str(), Headers::new(bytes, lines));
    let head = RequestHead::new(method, target(&parts), authority, Version::HTTP_2, headers);
    let body = match incoming.is_end_stream() {
        true => RequestBody::Full(&[]),
        false => RequestBody::Stream(Upload::http2(incoming, caller)),
    };
    answer.clear();
    handler.handle(Request { head, body }, caller, answer).await;
    let response = response(answer);
    SCRATCH.with(|spares| spares.put(scratch));
    response
}

fn target(parts: &Parts) -> &str {
    match parts.uri.path_and_query() {
        Some(path) => path.as_str(),
        None => parts.uri.authority().map_or("", |authority| authority.as_str()),
    }
}

/// Writes headers as lines. A cookie that came in several headers is one line (RFC 9113, section
/// 8.2.3), and a value has no space around it.
pub(crate) fn headers_to_lines(
    headers: &HeaderMap,
    bytes: &mut Vec<u8>,
    lines: &mut Vec<HeaderSpan>,
) {
    bytes.clear();
    lines.clear();
    let size = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    bytes.reserve(size);
    for name in headers.keys() {
        let mut values = headers.get_all(name).iter().map(|value| value.as_bytes().trim_ascii());
        if *name == COOKIE {
            let crumbs: Vec<&[u8]> = values.collect();
            push(name, &crumbs.join(&b"; "[..]), bytes, lines);
        } else {
            values.by_ref().for_each(|value| push(name, value, bytes, lines));
        }
    }
}

fn push(name: &HeaderName, value: &[u8], bytes: &mut Vec<u8>, lines: &mut Vec<HeaderSpan>) {
    let start = bytes.len();
    push_header(name.as_ref(), value, bytes);
    let colon = start + name.as_str().len();
    let end = bytes.len() - 2;
    lines.push(HeaderSpan::new(&bytes[start..colon], &bytes[colon + 2..end], bytes));
}

/// An answer as a response. All header values are parts of one copy of its lines.
fn response(answer: &mut Answer) -> hyper::Response<ResponseBody> {
    let body = match answer.stream.take() {
        Some(stream) => ResponseBody::stream(stream),
        None => ResponseBody::new(Bytes::copy_from_slice(&answer.body)),
    };
    let mut response = hyper::Response::new(body);
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    append_lines_to_map(&answer.lines, headers);
    if let Some(length) = answer.length {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

/// Appends header lines to a map.
pub(crate) fn append_lines_to_map(lines: &[u8], headers: &mut HeaderMap) {
    let lines = Bytes::copy_from_slice(lines);
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', &lines) {
        let line = lines.slice(start..end.saturating_sub(1));
        start = end + 1;
        let Some(colon) = memchr::memchr(b':', &line) else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_maybe_shared(line.slice((colon + 2).min(line.len())..));
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
}

/// An answer's body. While it streams, its connection is busy, and closed when the peer does not
/// take it. A body that is whole has the time of an idle connection.
#[derive(Debug)]
struct TrackedBody {
    body: Option<ResponseBody>,
    busy: Option<InFlightRequest>,
    stall: Option<WriteTimeout>,
    /// Whether a piece of it is on its way, so that its end is not told before that has been taken.
    /// A small one needs no frame of its own for the end: the piece waits here until the peer takes
    /// some of it.
    is_end_delayed: bool,
}

impl TrackedBody {
    fn new(body: ResponseBody, busy: InFlightRequest) -> Self {
        let busy = Some(busy).filter(|_| body.is_stream() && !body.is_end_stream());
        // A peer may leave no room for a first byte, and then nobody asks for one.
        let stall =
            busy.as_ref().map(|busy| WriteTimeout::new(busy.life(), busy.life().front.limits.idle));
        Self { body: Some(body), busy, stall, is_end_delayed: false }
    }
}

impl hyper::body::Body for TrackedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self { body: inner, busy, stall, is_end_delayed } = &mut *self;
        let Some(body) = inner else {
            *stall = None;
            return Poll::Ready(None);
        };
        let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(context) else {
            // Nobody waits for the peer.
            *stall = None;
            return Poll::Pending;
        };
        let Some(life) = busy.as_ref().map(InFlightRequest::life) else {
            return Poll::Ready(frame);
        };
        let within = life.front.limits.idle;
        let is_small = |frame: &Frame<Bytes>| {
            frame.data_ref().is_some_and(|data| data.len() <= FINAL_PIECE_BYTES_MAX)
        };
        *is_end_delayed = match &frame {
            Some(Ok(frame)) => !is_small(frame) || !body.is_end_stream(),
            _ => false,
        };
        match (&frame, &mut *stall) {
            (Some(Ok(_)), Some(stall)) => stall.restart(within),
            (Some(Ok(_)), none) => *none = Some(WriteTimeout::new(life, within)),
            _ => (*inner, *stall) = (None, None),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        !self.is_end_delayed && self.body.as_ref().is_none_or(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), |body| body.size_hint())
    }
}

/// Runs tasks of HTTP/2 connections to upstreams on the worker that they belong to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalExecutor;

impl<F: Future<Output = ()> + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, stream: F) {
        tokio::task::spawn_local(stream);
    }
}
