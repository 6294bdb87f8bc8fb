//! The exchange by HTTP/1.1.

use super::super::{forward, upstream::SelectedUpstream};
use super::body::{UploadProgress, UploadSender, observe_upload};
use super::{
    AttemptError, DownloadSource, Exchange, ExchangeError, Retry, TOO_LARGE, set_waits_for_client,
    with_deadline,
};
use bytes::Bytes;
use hyper::{StatusCode, Version};
use std::task::{Context, Poll, Waker, ready};
use std::{
    future::poll_fn,
    io, mem,
    pin::{Pin, pin},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::yield_now;
use tollgate::engine::BufferPool;
use tollgate_net::{
    BodyError, CoarseTimer, Framing, HeaderSpan, Headers, MessageBody, ParseError, ParsedResponse,
    PushbackRead, RequestBody, Tunnel, UpstreamStream, decode_chunks, parse_response, push_line,
};

impl Exchange<'_> {
    /// Sends the request by this connection, and writes the answer. Returns the time of the answer.
    pub(super) async fn http1(
        &mut self,
        mut stream: UpstreamStream,
        is_reused: bool,
        selected: &SelectedUpstream,
    ) -> Result<u64, AttemptError> {
        // The request is written into the buffer for the answer's body.
        let mut request = mem::take(&mut self.answer.body);
        request.clear();
        let framing = self.request_framing();
        self.write_http1(selected, framing, &mut request);
        let mut upload = None;
        if matches!(self.body, RequestBody::Stream(_))
            && let RequestBody::Stream(body) = mem::replace(&mut self.body, RequestBody::Full(&[]))
        {
            let is_chunked = framing == Framing::Chunked;
            let sender = UploadSender::new(body, self.gateway.shared.clone(), is_chunked);
            upload = Some(Box::new(sender));
        }
        let (mut timer, mut sent) = (self.caller.timer(), 0);
        let progress = UploadProgress::new(upload.is_none());
        let received = {
            let sending = send_request(&mut stream, &request, &mut sent, &mut upload, &progress);
            let on_wait = |waits| set_waits_for_client(self.admission, waits);
            // Pinned here: passed on by value, it would be copied.
            let sending = pin!(observe_upload(sending, &progress, on_wait));
            let (within, is_sent) =
                (self.upstreams.settings.response, || progress.is_complete.get());
            with_deadline(&mut timer, within, sending, is_sent).await
        };
        self.answer.body = request;
        let received = match received {
            Some(Ok(received)) if received.len > 0 => received,
            Some(Err(Some(error))) => return Err((ExchangeError::Client(error), Retry::Never)),
            Some(_) if is_reused && sent == 0 => {
                if let Some(upload) = upload {
                    self.body = RequestBody::Stream(upload.upload);
                }
                return Err((ExchangeError::Protocol, Retry::Safe));
            }
            Some(_) if is_reused && upload.is_none() => {
                return Err((ExchangeError::Protocol, Retry::IfIdempotent));
            }
            Some(_) => {
                selected.server().log_bad_response("it closed the connection without a response");
                return Err((ExchangeError::Protocol, Retry::Never));
            }
            None => return Err((ExchangeError::Timeout, Retry::Never)),
        };
        let mut reader = ResponseReader { stream, received, upload, timer };
        let read = self.read_response(&mut reader).await;
        let answered = read
            .and_then(|(parsed, complete)| self.write_answer(reader, &parsed, complete, selected));
        answered.map_err(|error| {
            match error {
                ExchangeError::TooLarge => selected.server().log_bad_response(TOO_LARGE),
                ExchangeError::Protocol => {
                    selected.server().log_bad_response("its response is invalid HTTP/1.1");
                }
                _ => {}
            }
            (error, Retry::Never)
        })
    }

    #[inline(always)]
    fn write_http1(&self, selected: &SelectedUpstream, framing: Framing, out: &mut Vec<u8>) {
        let head = &self.valid.head;
        let (method, target) = (head.method.as_bytes(), head.path_and_query());
        out.extend_from_slice(method);
        out.extend_from_slice(if target.starts_with('?') { b" /" } else { b" " });
        out.extend_from_slice(target.as_bytes());
        out.extend_from_slice(b" HTTP/1.1\r\n");
        self.write_lines(selected.server(), framing, Version::HTTP_11, out);
        out.extend_from_slice(b"\r\n");
        if let RequestBody::Full(bytes) = &self.body {
            out.extend_from_slice(bytes);
        }
    }

    /// Reads a response that has begun, and its body into the answer if that needs no wait: then
    /// with whether the response ended there.
    async fn read_response(
        &mut self,
        reader: &mut ResponseReader,
    ) -> Result<(ParsedResponse, Option<bool>), ExchangeError> {
        let is_head = self.valid.head.method == "HEAD";
        let parsed = loop {
            let on_interim = |status, headers: Headers<'_>| self.forward_interim(status, headers);
            match reader.received.parse_final(is_head, on_interim)? {
                Some(parsed) => break parsed,
                None => Box::pin(self.read_more(reader)).await?,
            }
        };
        let body = &mut self.answer.body;
        body.clear();
        let mut complete = reader.take_body(&parsed, body);
        let has_head_alone = complete.is_none()
            && reader.received.len == parsed.len
            && matches!(parsed.framing, Framing::Length(1..));
        if has_head_alone && reader.fits_buffer(&parsed) {
            // Many upstreams send a small body right after the head. It may have come by the time
            // that this worker has looked at its other connections; the head waits no longer.
            yield_now().await;
            let ResponseReader { stream, received, .. } = &mut *reader;
            poll_fn(|context| {
                let _ = received.poll_more(stream, context);
                Poll::Ready(())
            })
            .await;
            complete = reader.take_body(&parsed, body);
        }
        Ok((parsed, complete))
    }

    /// Waits for more of a response's head.
    async fn read_more(&self, reader: &mut ResponseReader) -> Result<(), ExchangeError> {
        let ResponseReader { stream, received, upload, timer } = reader;
        let progress = UploadProgress::new(upload.is_none());
        let more = poll_fn(|context| {
            poll_upload(upload, stream, &progress, context)?;
            received.poll_more(stream, context).map_err(|_| None)
        });
        let within = self.upstreams.settings.response;
        match with_deadline(timer, within, more, || progress.is_complete.get()).await {
            Some(Ok(1..)) => Ok(()),
            Some(Err(Some(error))) => Err(ExchangeError::Client(error)),
            Some(_) => Err(ExchangeError::Protocol),
            None => Err(ExchangeError::Timeout),
        }
    }

    /// Forwards an interim response (1xx), except `100 Continue`, which the gateway sends itself.
    fn forward_interim(&self, status: StatusCode, headers: Headers<'_>) {
        if self.valid.head.version == Version::HTTP_11 && status != StatusCode::CONTINUE {
            let mut out = Vec::new();
            forward::write_interim(status, headers, &mut out);
            self.caller.send_interim(&out);
        }
    }

    /// Writes the answer. `complete`: the body is in it, and whether the response ended there.
    #[inline(always)]
    fn write_answer(
        &mut self,
        reader: ResponseReader,
        parsed: &ParsedResponse,
        complete: Option<bool>,
        selected: &SelectedUpstream,
    ) -> Result<u64, ExchangeError> {
        let ResponseReader { mut stream, received, upload, .. } = reader;
        let is_tunnel = parsed.status == StatusCode::SWITCHING_PROTOCOLS;
        // An upstream may not switch the protocol of a client that did not ask for it.
        if is_tunnel && self.hop.upgrade.is_none() {
            return Err(ExchangeError::Protocol);
        }
        let headers = received.headers();
        let mut shown = headers;
        if parsed.has_connection {
            forward::hide_connection_listed(&mut shown, |_| false);
        }
        let quota = self.admission.as_ref().ok_or(ExchangeError::Protocol)?.headers();
        if !forward::write_response(parsed.status, shown, quota, self.answer) {
            return Err(ExchangeError::Protocol);
        }
        let (reason, status) = (parsed.reason(received.bytes()), parsed.status);
        let is_usual = || status.canonical_reason().is_some_and(|text| text.as_bytes() == reason);
        if !(status == StatusCode::OK && reason == b"OK" || is_usual()) {
            self.answer.reason.extend_from_slice(reason);
        }
        let admission = self.admission.take().ok_or(ExchangeError::Protocol)?;
        let now_us = self.gateway.shared.node.clock.now_us();
        self.answer.answered_us = Some(now_us);
        let guard = admission.respond_status(parsed.status, now_us, |name| headers.get(name));
        let rest = &received.bytes()[parsed.len..];
        if is_tunnel {
            self.answer.tunnel = Some(Tunnel {
                stream: Box::new(stream),
                buffered: Bytes::copy_from_slice(rest),
                idle: self.upstreams.settings.idle,
                // Slots stay taken until the tunnel ends.
                guard: Some(Box::new(guard)),
            });
        } else if let Some(is_clean) = complete {
            if parsed.framing == Framing::Empty {
                self.answer.length = parsed.length;
            }
            guard.finish(&self.answer.body);
            let is_sent = upload.as_ref().is_none_or(|upload| upload.is_over());
            if is_clean && is_sent && parsed.persists {
                self.gateway.pool.put(selected, stream, now_us);
            }
        } else {
            stream.unread(rest);
            let source = DownloadSource::Http1 {
                stream,
                body: Box::new(MessageBody::of_response(parsed.framing)),
                upload: upload.filter(|upload| !upload.is_over()),
                pool: self.gateway.pool.clone(),
                persists: parsed.persists,
            };
            self.stream_body(source, selected, guard);
        }
        received.recycle();
        Ok(now_us)
    }
}

/// Sends a request, and waits for a response to begin. `Err(None)`: the upstream failed.
async fn send_request(
    stream: &mut UpstreamStream,
    request: &[u8],
    sent: &mut usize,
    upload: &mut Option<Box<UploadSender>>,
    progress: &UploadProgress,
) -> Result<ReceivedBytes, Option<BodyError>> {
    poll_fn(|context| {
        while *sent < request.len() {
            let rest = &request[*sent..];
            match ready!(Pin::new(&mut *stream).poll_write(context, rest)).map_err(|_| None)? {
                0 => return Poll::Ready(Err(None)),
                len => *sent += len,
            }
        }
        poll_upload(upload, stream, progress, context)?;
        // TLS may still hold encrypted bytes in a buffer.
        let _ = Pin::new(&mut *stream).poll_flush(context);
        poll_first_bytes(stream, context).map_err(|_| None)
    })
    .await
}

/// Sends the received part of a body. The response may begin before its end.
fn poll_upload(
    upload: &mut Option<Box<UploadSender>>,
    stream: &mut UpstreamStream,
    progress: &UploadProgress,
    context: &mut Context<'_>,
) -> Result<(), Option<BodyError>> {
    if let Some(upload) = upload
        && let Poll::Ready(ended) = upload.poll_progress(stream, progress, context)
    {
        ended.map_err(Some)?;
    }
    Ok(())
}

/// Asks an upstream for `path`: the status of its response, or why there is none.
pub(in super::super) async fn probe(
    mut stream: UpstreamStream,
    authority: &[u8],
    path: &str,
) -> Result<StatusCode, String> {
    let closed = "no response: it closed the connection";
    let mut request = format!("GET {path} HTTP/1.1\r\n").into_bytes();
    push_line(b"host: ", authority, &mut request);
    request.extend_from_slice(b"\r\n");
    let sent =
        send_request(&mut stream, &request, &mut 0, &mut None, &UploadProgress::new(true)).await;
    let mut received = sent.map_err(|_| closed)?;
    loop {
        match received.parse_final(false, |_, _| {}) {
            Ok(Some(parsed)) => return Ok(parsed.status),
            Ok(None) => {}
            Err(ExchangeError::TooLarge) => return Err(TOO_LARGE.into()),
            Err(_) => return Err("no response: it is invalid HTTP/1.1".into()),
        }
        if !matches!(poll_fn(|context| received.poll_more(&mut stream, context)).await, Ok(1..)) {
            return Err(closed.into());
        }
    }
}

/// The size of the buffer, and so of the largest head.
const INPUT_BYTES: usize = 16 * 1024;

/// Buffers that a request takes when its response begins.
struct ResponseBuffers {
    bytes: Box<[u8]>,
    lines: Vec<HeaderSpan>,
}

impl Default for ResponseBuffers {
    fn default() -> Self {
        Self { bytes: vec![0; INPUT_BYTES].into(), lines: Vec::new() }
    }
}

thread_local! {
    static BUFFERS: BufferPool<ResponseBuffers> = const { BufferPool::new() };
}

/// The bytes of a response that have come.
struct ReceivedBytes {
    buffers: Box<ResponseBuffers>,
    len: usize,
}

/// Takes a buffer once the response has begun.
#[inline(always)]
fn poll_first_bytes(
    stream: &mut UpstreamStream,
    context: &mut Context<'_>,
) -> Poll<io::Result<ReceivedBytes>> {
    let mut received = ReceivedBytes { buffers: BUFFERS.with(BufferPool::take), len: 0 };
    let read = received.poll_more(stream, context);
    if read.is_pending() {
        received.recycle();
        return Poll::Pending;
    }
    read.map_ok(|_| received)
}

impl ReceivedBytes {
    fn recycle(self) {
        BUFFERS.with(|pool| pool.put(self.buffers));
    }

    fn bytes(&self) -> &[u8] {
        &self.buffers.bytes[..self.len]
    }

    /// The headers of the head that was parsed last.
    fn headers(&self) -> Headers<'_> {
        Headers::new(self.bytes(), &self.buffers.lines)
    }

    /// Reads more bytes: how many. Zero at the end, and where the buffer is full.
    fn poll_more(
        &mut self,
        stream: &mut UpstreamStream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(&mut self.buffers.bytes[self.len..]);
        if buffer.remaining() > 0 {
            ready!(Pin::new(stream).poll_read(context, &mut buffer))?;
        }
        let read = buffer.filled().len();
        self.len += read;
        Poll::Ready(Ok(read))
    }

    /// Reads the bytes that have already arrived. Waiting for more would delay them.
    fn read_now(&mut self, stream: &mut UpstreamStream) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        matches!(self.poll_more(stream, &mut context), Poll::Ready(Ok(1..)))
    }

    /// Parses the final response's head, and drops interim ones. `None`: more bytes are needed.
    fn parse_final(
        &mut self,
        is_head: bool,
        on_interim: impl Fn(StatusCode, Headers<'_>),
    ) -> Result<Option<ParsedResponse>, ExchangeError> {
        while self.len > 0 {
            let ResponseBuffers { bytes, lines } = &mut *self.buffers;
            let parsed = match parse_response(&bytes[..self.len], is_head, lines) {
                Ok(Some(parsed)) => parsed,
                Ok(None) if self.len < INPUT_BYTES => return Ok(None),
                Ok(None) | Err(ParseError::TooLarge) => return Err(ExchangeError::TooLarge),
                Err(_) => return Err(ExchangeError::Protocol),
            };
            let status = parsed.status;
            if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
                return Ok(Some(parsed));
            }
            on_interim(status, self.headers());
            self.buffers.bytes.copy_within(parsed.len..self.len, 0);
            self.len -= parsed.len;
        }
        Ok(None)
    }
}

/// A connection whose response has begun.
struct ResponseReader {
    stream: UpstreamStream,
    received: ReceivedBytes,
    upload: Option<Box<UploadSender>>,
    timer: CoarseTimer,
}

impl ResponseReader {
    /// Whether head and body fit into the buffer.
    fn fits_buffer(&self, parsed: &ParsedResponse) -> bool {
        let Framing::Length(length) = parsed.framing else { return false };
        parsed.len as u64 + length <= INPUT_BYTES as u64
    }

    /// Copies a body that can be read without waiting: whether the response ended there.
    fn take_body(&mut self, parsed: &ParsedResponse, out: &mut Vec<u8>) -> Option<bool> {
        match parsed.framing {
            Framing::Empty => Some(self.received.len == parsed.len),
            Framing::Length(length) if self.fits_buffer(parsed) => {
                let end = parsed.len + length as usize;
                while self.received.len < end {
                    self.received.read_now(&mut self.stream).then_some(())?;
                }
                out.extend_from_slice(&self.received.bytes()[parsed.len..end]);
                Some(self.received.len == end)
            }
            Framing::Chunked => loop {
                let body = &self.received.bytes()[parsed.len..];
                // Without its end, a body is not worth decoding: it is about to be streamed.
                if body.ends_with(b"0\r\n\r\n")
                    && let Some(used) = decode_chunks(body, out)
                {
                    return Some(parsed.len + used == self.received.len);
                }
                out.clear();
                self.received.read_now(&mut self.stream).then_some(())?;
            },
            Framing::Length(_) | Framing::UntilClose => None,
        }
    }
}
