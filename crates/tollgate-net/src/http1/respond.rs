//! Writes and sends responses to a client, and closes its connection.

use super::{
    ParseError, body::Http1Connection, parse::is_bodiless, push::push_status, writer::BodyWriter,
};
use crate::{
    BoxError, Handler, HttpResponse, InFlightRequest, RefusedRequest,
    connection::{ConnectionState, ConnectionStream, Stage, WriteTimeout},
    date,
    handler::BodyStream,
    head::RequestHead,
    upgrade,
};
use bytes::Bytes;
use hyper::{StatusCode, Version, body::Body};
use std::{
    future::poll_fn,
    io, mem,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tollgate::store::ProcessClock;
use tollgate_core::push_decimal;

/// Limit of collected responses to pipelined requests.
const OUTPUT_BYTES: usize = 16 * 1024;
/// Limit of an unread body that is drained to keep the connection.
const SKIPPED_BYTES_MAX: u64 = 64 * 1024;
/// The time limit of draining.
const SKIPPED_WITHIN: Duration = Duration::from_secs(1);

/// The way a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    /// Shut down our side: the exchange is complete, or the peer has closed.
    Done,
    /// A deadline has passed, or the connection was evicted.
    CloseRequested,
    /// Drop without a shutdown, so that the client notices a truncated response.
    Abort,
}

/// The framing of an answer's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponseFraming {
    /// No body, or a body sent with the head.
    NoStream,
    /// Unframed, up to the `Content-Length` or the end of the connection.
    Raw,
    /// In chunks.
    Chunked,
}

/// The facts about the request that the answer's head depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseContext {
    pub(super) version: Version,
    pub(super) is_head: bool,
    /// Whether the client may reuse the connection.
    pub(super) persists: bool,
}

impl ResponseContext {
    pub(super) fn new(head: &RequestHead<'_>, persists: bool) -> Self {
        Self { version: head.version, is_head: head.method == "HEAD", persists }
    }
}

/// Whether the unread body may be drained: below the cap, and the client does not wait for `100
/// Continue`. If the length is unknown, only reading can tell.
fn is_skippable(connection: &Http1Connection) -> bool {
    let length = connection.size_hint().exact();
    connection.is_over()
        || !connection.awaits_continue() && length.is_none_or(|length| length <= SKIPPED_BYTES_MAX)
}

/// Drains the unread body if it is short and arriving. `false`: the connection cannot persist.
pub(super) async fn skip_body(connection: &Http1Connection) -> bool {
    if connection.is_over() || !is_skippable(connection) {
        return connection.is_over();
    }
    let length = connection.size_hint().exact();
    // A body of unknown length may be endless, so draining does not wait for more.
    let within = if length.is_some() { SKIPPED_WITHIN } else { Duration::ZERO };
    let _busy = InFlightRequest::new(&connection.caller.state);
    let mut body = connection.take_body();
    let mut left = SKIPPED_BYTES_MAX;
    let skipping = poll_fn(|context| {
        loop {
            match ready!(body.poll_frame(&mut *connection.stream.borrow_mut(), context)) {
                Some(Ok(frame)) => {
                    let data = frame.data_ref().map_or(0, |data| data.len() as u64);
                    let Some(rest) = left.checked_sub(data) else { return Poll::Ready(false) };
                    left = rest;
                }
                Some(Err(_)) => return Poll::Ready(false),
                None => return Poll::Ready(true),
            }
        }
    });
    Box::pin(tokio::time::timeout(within, skipping)).await.unwrap_or(false)
}

/// Sends or queues a response, and returns whether the connection persists.
pub(super) async fn respond(
    connection: &Http1Connection,
    answer: &mut HttpResponse,
    mut context: ResponseContext,
    output: &mut Vec<u8>,
    busy: InFlightRequest,
    is_more: bool,
) -> Result<bool, ConnectionEnd> {
    if !connection.is_over() && answer.stream.is_none() {
        // A body of known length is drained after the response. A chunked one is drained now: the
        // connection can persist only after its end.
        context.persists &= match connection.size_hint().exact() {
            Some(_) => is_skippable(connection),
            None => skip_body(connection).await,
        };
    }
    swap_interim(connection, output);
    connection.mark_answered();
    let (framing, persists) = write_response(answer, context, output);
    if let (Some(stream), true) = (answer.stream.take(), framing != ResponseFraming::NoStream) {
        Box::pin(send_stream(connection, stream, framing, output, busy)).await?;
    } else {
        drop(busy);
        if !is_more || !persists || output.len() > OUTPUT_BYTES {
            send(connection, output).await?;
        }
    }
    Ok(persists)
}

/// Appends the head of an answer, and the body if it is complete. Returns how the rest is sent, and
/// whether the connection persists.
fn write_response(
    answer: &HttpResponse,
    asked: ResponseContext,
    out: &mut Vec<u8>,
) -> (ResponseFraming, bool) {
    status_line(answer, out);
    out.extend_from_slice(&answer.lines);
    if !answer.is_dated {
        let answered_us = answer.answered_us.unwrap_or_else(|| ProcessClock.now_us());
        date::with_line(answered_us, |line| out.extend_from_slice(line));
    }
    if answer.status == StatusCode::SWITCHING_PROTOCOLS {
        out.extend_from_slice(b"\r\n");
        return (ResponseFraming::NoStream, false);
    }
    let mut persists = asked.persists && !answer.close;
    let is_bodiless = is_bodiless(answer.status);
    let length = match &answer.stream {
        Some(stream) => stream.size_hint().exact(),
        None if answer.body.is_empty() => answer.length.or((!asked.is_head).then_some(0)),
        None => Some(answer.body.len() as u64),
    };
    let sends = match (&answer.stream, length) {
        _ if is_bodiless || asked.is_head => ResponseFraming::NoStream,
        (None, _) => ResponseFraming::NoStream,
        (Some(_), Some(_)) => ResponseFraming::Raw,
        (Some(_), None) if asked.version == Version::HTTP_11 => ResponseFraming::Chunked,
        (Some(_), None) => {
            persists = false;
            ResponseFraming::Raw
        }
    };
    match length {
        Some(_) if answer.status == StatusCode::NO_CONTENT => {}
        // A 304 states the length of the body that it omits, so zero is left out.
        Some(0) if is_bodiless => {}
        Some(length) => push_length(length, out),
        None if sends == ResponseFraming::Chunked => {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
        }
        None => {}
    }
    match (persists, asked.version) {
        (false, _) => out.extend_from_slice(b"connection: close\r\n"),
        (true, Version::HTTP_10) => out.extend_from_slice(b"connection: keep-alive\r\n"),
        (true, _) => {}
    }
    out.extend_from_slice(b"\r\n");
    if !is_bodiless && !asked.is_head && answer.stream.is_none() {
        out.extend_from_slice(&answer.body);
    }
    (sends, persists)
}

fn status_line(answer: &HttpResponse, out: &mut Vec<u8>) {
    if answer.status == StatusCode::OK && answer.reason.is_empty() {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    push_status(answer.status, &answer.reason, out);
}

fn push_length(length: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"content-length: ");
    push_decimal(out, length);
    out.extend_from_slice(b"\r\n");
}

/// Swaps the buffers of interim responses and of output. Before the handler runs, this lets it send
/// earlier responses while it waits. Afterwards, it takes back unsent bytes. Only one buffer has
/// bytes.
#[inline]
pub(super) fn swap_interim(connection: &Http1Connection, output: &mut Vec<u8>) {
    let mut interim = connection.caller.interim.borrow_mut();
    if !interim.is_empty() || !output.is_empty() {
        mem::swap(output, &mut *interim);
    }
}

/// Sends all of `output`.
pub(super) async fn send(
    connection: &Http1Connection,
    output: &mut Vec<u8>,
) -> Result<(), ConnectionEnd> {
    if output.is_empty() {
        return Ok(());
    }
    let mut written = 0;
    let sent = connection.caller.state.until_closed(|context| {
        let mut stream = connection.stream.borrow_mut();
        while written < output.len() {
            match ready!(Pin::new(&mut *stream).poll_write(context, &output[written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                more => written += more,
            }
        }
        // TLS may still hold encrypted bytes in its buffer.
        Pin::new(&mut *stream).poll_flush(context)
    });
    let sent = sent.await;
    output.clear();
    match sent {
        Some(Ok(())) => Ok(()),
        Some(Err(_)) => Err(ConnectionEnd::Done),
        None => Err(ConnectionEnd::CloseRequested),
    }
}

/// Sends a response piece by piece, after the head in `output`. Disconnects a client that reads
/// nothing for [`Limits::idle`](crate::Limits::idle).
async fn send_stream(
    connection: &Http1Connection,
    mut body: BodyStream,
    framing: ResponseFraming,
    output: &mut Vec<u8>,
    busy: InFlightRequest,
) -> Result<(), ConnectionEnd> {
    let state = busy.state().clone();
    let mut writer = BodyWriter::new(mem::take(output), framing == ResponseFraming::Chunked);
    let mut stall = None;
    let sent = state.until_closed(|context| {
        let polled = poll_stream(connection, body.as_mut(), &mut writer, context);
        let is_stuck = polled.is_pending() && writer.has_unsent();
        match (is_stuck, &mut stall) {
            (false, _) => stall = None,
            (true, Some((at, _))) if *at == writer.progress() => {}
            (true, stall) => {
                let within = state.listener.limits.idle;
                *stall = Some((writer.progress(), WriteTimeout::new(&state, within)));
            }
        }
        polled
    });
    let sent = sent.await;
    *output = writer.into_output();
    match sent {
        Some(Ok(())) => Ok(()),
        Some(Err(_)) => Err(ConnectionEnd::Abort),
        None => Err(ConnectionEnd::CloseRequested),
    }
}

fn poll_stream(
    connection: &Http1Connection,
    mut body: Pin<&mut dyn Body<Data = Bytes, Error = BoxError>>,
    writer: &mut BodyWriter,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    loop {
        let filled = writer.fill(body.as_mut(), |_| {}, context);
        let mut stream = connection.stream.borrow_mut();
        let is_pending = match filled {
            Ok(is_pending) => is_pending,
            Err(error) => {
                // Sends the pieces so far, then aborts: the missing end tells the client that the
                // body is truncated.
                let _ = writer.poll_write(&mut *stream, context);
                return Poll::Ready(Err(io::Error::other(error)));
            }
        };
        let is_blocked = writer.poll_write(&mut *stream, context)?.is_pending();
        if !is_blocked && writer.is_over() {
            return Poll::Ready(Ok(()));
        }
        if is_blocked || is_pending {
            let left = connection.poll_client_closed(&mut stream, context);
            return left.map(|()| Err(io::ErrorKind::BrokenPipe.into()));
        }
    }
}

/// Refuses a malformed request, after sending all earlier responses.
#[cold]
pub(super) async fn refuse(
    connection: &Http1Connection,
    handler: &impl Handler,
    why: ParseError,
    head: &[u8],
    output: &mut Vec<u8>,
) -> ConnectionEnd {
    let mut answer = final_problem(why.status(), why.detail());
    handler.adapt_refusal(head, &mut answer);
    push_final(&answer, output);
    let body_bytes = answer.body.len() as u64;
    let request = RefusedRequest { head, status: answer.status, body_bytes };
    handler.refused(&request, &connection.caller);
    send(connection, output).await.err().unwrap_or(ConnectionEnd::Done)
}

/// A problem+json answer about a request's head.
fn final_problem(status: StatusCode, detail: &str) -> HttpResponse {
    let mut answer = HttpResponse::default();
    answer.set_problem(status, detail, Some("head"));
    answer
}

/// Appends an answer after which the connection closes.
fn push_final(answer: &HttpResponse, output: &mut Vec<u8>) {
    let context = ResponseContext { version: Version::HTTP_11, is_head: false, persists: false };
    write_response(answer, context, output);
}

/// Connects the client to the upstream after an upgrade.
pub(super) async fn run_tunnel(
    connection: Rc<Http1Connection>,
    left: Vec<u8>,
    tunnel: upgrade::Tunnel,
) {
    let caller = connection.caller.clone();
    drop(connection.take_body());
    let Some(connection) = Rc::into_inner(connection) else { return };
    let _busy = InFlightRequest::new(&caller.state);
    let stream = connection.stream.into_inner();
    upgrade::run(stream, left, tunnel, caller.timer(), &caller.state).await;
}

/// Closes a connection.
#[expect(
    clippy::await_holding_refcell_ref,
    reason = "the body was taken away, so nothing else borrows the stream"
)]
pub(super) async fn close(connection: &Http1Connection, end: ConnectionEnd) {
    drop(connection.take_body());
    let (state, mut stream) = (&connection.caller.state, connection.stream.borrow_mut());
    match end {
        ConnectionEnd::Done => {
            let mut ending = pin!(stream.shutdown());
            state.until_closed(|context| ending.as_mut().poll(context)).await;
        }
        ConnectionEnd::CloseRequested => respond_timeout(&mut stream, state).await,
        ConnectionEnd::Abort => {}
    }
}

/// Answers 408 if only part of a head was received. Closes without an answer if no byte was
/// received, or if the client has not read the last response.
pub(crate) async fn respond_timeout(stream: &mut ConnectionStream, state: &ConnectionState) {
    if state.stage() != Stage::ReadingHead || state.is_write_blocked() {
        return;
    }
    state.allow_final_response();
    let (detail, mut output) = ("the request's head was not complete in time", Vec::new());
    push_final(&final_problem(StatusCode::REQUEST_TIMEOUT, detail), &mut output);
    let mut sending = pin!(async {
        stream.write_all(&output).await?;
        stream.shutdown().await
    });
    state.until_closed(|context| sending.as_mut().poll(context)).await;
}
