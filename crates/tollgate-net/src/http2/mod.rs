//! HTTP/2 on hyper: requests are converted to the form of HTTP/1.1, so one handler serves both.

mod body;
mod header_lines;

pub use body::ResponseBody;
pub(crate) use body::body_error;
pub use body::causes;
pub use header_lines::{append_lines_to_map, headers_to_lines};

use super::connection::{CloseRequest, ConnectionStream};
use super::head::{HEADERS_MAX, HeaderSpan, Headers, RequestHead};
use super::{
    ClientConnection, Handler, HttpResponse, InFlightRequest, Request, RequestBody, Upload,
};
use crate::date;
use body::TrackedBody;
use header_lines::{mark_never_indexed, response};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_LENGTH, DATE, HeaderValue};
use hyper::rt::Executor;
use hyper::{
    Method, StatusCode, Version, http::uri::PathAndQuery, server::conn::http2, service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};
use std::{cell::RefCell, convert::Infallible, mem, pin::Pin, rc::Rc};
use tollgate::engine::BufferPool;
use tollgate_store::ProcessClock;

/// Serves a connection until either side closes it.
pub(super) async fn serve<H: Handler>(
    stream: ConnectionStream,
    handler: Rc<H>,
    caller: Rc<ClientConnection>,
) {
    let state = caller.state.clone();
    state.set_multiplexed();
    let limits = &state.listener.limits;
    let service = service_fn(move |request| respond(handler.clone(), caller.clone(), request));
    let streams = NewStreams::default();
    let mut builder = http2::Builder::new(streams.clone());
    builder
        .timer(TokioTimer::new())
        // hyper's own date panics after the year 9999.
        .auto_date_header(false)
        .max_concurrent_streams(limits.streams_max)
        .initial_stream_window_size(limits.window_bytes)
        .initial_connection_window_size(limits.window_bytes)
        .max_pending_accept_reset_streams(limits.resets_max)
        .max_send_buf_size(limits.window_bytes as usize)
        .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX))
        .keep_alive_interval(limits.ping_interval)
        .keep_alive_timeout(limits.ping_timeout);
    let mut connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut is_finishing = false;
    state
        .until_closed(|context| {
            // Also before an immediate close: GOAWAY names the requests that were not processed.
            if state.close_request() != CloseRequest::None && !is_finishing {
                is_finishing = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
            loop {
                let polled = Pin::new(&mut connection).poll(context);
                // The next poll of the connection writes all answers together.
                if polled.is_ready() || !streams.poll_each_once() {
                    return polled;
                }
            }
        })
        .await;
}

/// New requests of one connection. One poll completes most of them, so they need no task. They are
/// polled together after all input is read, so that their answers share a write.
#[derive(Clone, Default)]
struct NewStreams(Rc<RefCell<Vec<StreamFuture>>>);

type StreamFuture = Pin<Box<dyn Future<Output = ()>>>;

impl<F: Future<Output = ()> + 'static> Executor<F> for NewStreams {
    fn execute(&self, stream: F) {
        self.0.borrow_mut().push(Box::pin(stream));
    }
}

impl NewStreams {
    /// Polls each new stream once, and spawns a task for each unfinished one. Returns whether there
    /// were any.
    fn poll_each_once(&self) -> bool {
        let mut streams = mem::take(&mut *self.0.borrow_mut());
        if streams.is_empty() {
            return false;
        }
        for mut stream in streams.drain(..) {
            // The task that continues the stream registers its own waker.
            let mut context = Context::from_waker(Waker::noop());
            let polled = catch_unwind(AssertUnwindSafe(|| stream.as_mut().poll(&mut context)));
            // The panic was already logged and counted. It ends the stream, as it would end a task.
            if let Ok(Poll::Pending) = polled {
                tokio::task::spawn_local(stream);
            }
        }
        // Returns the vector to keep its memory.
        *self.0.borrow_mut() = streams;
        true
    }
}

async fn respond<H: Handler>(
    handler: Rc<H>,
    caller: Rc<ClientConnection>,
    request: hyper::Request<Incoming>,
) -> Result<hyper::Response<TrackedBody>, Infallible> {
    let state = &caller.state;
    let in_flight = InFlightRequest::new(state);
    if request.headers().len() > state.listener.limits.headers_max.min(HEADERS_MAX) {
        let mut response =
            hyper::Response::new(TrackedBody::new(ResponseBody::default(), in_flight));
        *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        response.headers_mut().insert(DATE, date::value(ProcessClock.now_us()));
        return Ok(response);
    }
    let is_head = request.method() == Method::HEAD;
    let mut response = handler.handle_http2(request, &caller).await;
    let headers = response.headers_mut();
    headers.entry(DATE).or_insert_with(|| date::value(ProcessClock.now_us()));
    mark_never_indexed(headers, &state.sent_counters);
    if is_head {
        if let Some(length @ 1..) = response.body().size_hint().exact() {
            let headers = response.headers_mut();
            headers.entry(CONTENT_LENGTH).or_insert(HeaderValue::from(length));
        }
        *response.body_mut() = ResponseBody::default();
    }
    Ok(response.map(|body| TrackedBody::new(body, in_flight)))
}

/// Buffers that are reused for later requests.
#[derive(Default)]
struct Http2Buffers {
    bytes: Vec<u8>,
    lines: Vec<HeaderSpan>,
    answer: HttpResponse,
}

thread_local! {
    static BUFFERS: BufferPool<Http2Buffers> = const { BufferPool::new() };
}

/// Answers an HTTP/2 request with the handler for HTTP/1.1.
pub async fn handle<H: Handler + ?Sized>(
    handler: &H,
    request: hyper::Request<Incoming>,
    caller: &Rc<ClientConnection>,
) -> hyper::Response<ResponseBody> {
    let (parts, incoming) = request.into_parts();
    let mut buffers = BUFFERS.with(BufferPool::take);
    let Http2Buffers { bytes, lines, answer } = &mut *buffers;
    headers_to_lines(&parts.headers, bytes, lines);
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let target = parts.uri.path_and_query().map(PathAndQuery::as_str).or(authority).unwrap_or("");
    let (method, headers) = (parts.method.as_str(), Headers::new(bytes, lines));
    let head = RequestHead::new(method, target, authority, Version::HTTP_2, headers);
    let body = if incoming.is_end_stream() {
        RequestBody::Full(&[])
    } else {
        RequestBody::Stream(Upload::http2(incoming, caller))
    };
    answer.clear();
    handler.handle(Request { head, body }, caller, answer).await;
    let response = response(answer);
    BUFFERS.with(|pool| pool.put(buffers));
    response
}

/// Spawns the tasks of HTTP/2 connections to upstreams.
#[derive(Clone, Copy, Debug)]
pub struct LocalExecutor;

impl<F: Future<Output = ()> + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, stream: F) {
        tokio::task::spawn_local(stream);
    }
}
