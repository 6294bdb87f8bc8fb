//! One request and its answer by HTTP/1.1.

use super::{
    super::{
        forward::{self, RequestFraming},
        upstream::SelectedUpstream,
    },
    AttemptError, Exchange, ExchangeError, TOO_LARGE,
    body::{Download, UploadSender},
    http1_response::{ReceivedBytes, ResponseReader, is_interim, poll_first_bytes},
    with_deadline,
};
use crate::{
    Node,
    net::{
        Answer, BodyError, Framing, Headers, MessageBody, ParsedResponse, PushbackRead,
        RequestBody, Tunnel, UpstreamStream, push_line,
    },
};
use bytes::Bytes;
use hyper::{StatusCode, Version};
use std::{
    cell::Cell,
    future::poll_fn,
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::io::AsyncWrite;
use tollgate_tower::Admission;

/// How long the head of an answer with a small body waits for some of that, to the tick: many
/// upstreams send them one after the other, and a head alone is of little use to a client.
const BODY_GRACE: Duration = Duration::ZERO;

impl Exchange<'_> {
    /// Sends the request by this connection, and writes the answer.
    pub(super) async fn http1(
        &self,
        mut stream: UpstreamStream,
        is_used: bool,
        flight: &SelectedUpstream,
        body: &mut RequestBody<'_>,
        pass: &mut Option<Admission<Node>>,
        answer: &mut Answer,
    ) -> Result<(), AttemptError> {
        // The request is written where the answer's body will be.
        let request = &mut answer.body;
        request.clear();
        self.write_http1(flight, body, request);
        let mut uploading = None;
        if let RequestBody::Stream(_) = body {
            let chunks = self.request_framing(body) == RequestFraming::Chunked;
            if let RequestBody::Stream(upload) = mem::replace(body, RequestBody::Full(&[])) {
                uploading = Some(UploadSender::new(upload, self.gateway.shared.clone(), chunks));
            }
        }
        let (mut alarm, mut sent) = (self.caller.alarm(), 0);
        let is_sent = Cell::new(uploading.is_none());
        let asking = send_request(&mut stream, request, &mut sent, &mut uploading, &is_sent);
        let within = self.upstreams.settings.response;
        let received = match with_deadline(&mut alarm, within, asking, || is_sent.get()).await {
            Some(Ok(received)) if received.len > 0 => received,
            Some(Err(Some(error))) => {
                return Err(AttemptError::Fatal(ExchangeError::Client(error)));
            }
            Some(_) if is_used && sent == 0 => {
                if let Some(uploading) = uploading {
                    *body = RequestBody::Stream(uploading.into_upload());
                }
                return Err(AttemptError::Unsent(ExchangeError::Protocol));
            }
            Some(_) if is_used && uploading.is_none() => {
                return Err(AttemptError::NoResponse(ExchangeError::Protocol));
            }
            Some(_) => {
                flight.server().log_bad_response("it ended the connection without an answer");
                return Err(AttemptError::Fatal(ExchangeError::Protocol));
            }
            None => return Err(AttemptError::Fatal(ExchangeError::Timeout)),
        };
        let reading = ResponseReader { stream, received, uploading, alarm };
        self.read_response(reading, flight, pass, answer).await.map_err(|fault| {
            match fault {
                ExchangeError::TooLarge => flight.server().log_bad_response(TOO_LARGE),
                ExchangeError::Protocol => {
                    flight.server().log_bad_response("its answer is invalid HTTP/1.1")
                }
                _ => {}
            }
            AttemptError::Fatal(fault)
        })
    }

    fn write_http1(&self, flight: &SelectedUpstream, body: &RequestBody<'_>, out: &mut Vec<u8>) {
        let head = &self.valid.head;
        let (method, target) = (head.method.as_bytes(), head.path_and_query());
        out.extend_from_slice(method);
        out.extend_from_slice(if target.starts_with('?') { b" /" } else { b" " });
        out.extend_from_slice(target.as_bytes());
        out.extend_from_slice(b" HTTP/1.1\r\n");
        self.write_lines(flight.server(), body, Version::HTTP_11, out);
        out.extend_from_slice(b"\r\n");
        if let RequestBody::Full(bytes) = body {
            out.extend_from_slice(bytes);
        }
    }

    /// Reads an answer that has begun, and writes the client's.
    async fn read_response(
        &self,
        mut reading: ResponseReader,
        flight: &SelectedUpstream,
        pass: &mut Option<Admission<Node>>,
        answer: &mut Answer,
    ) -> Result<(), ExchangeError> {
        let is_head = self.valid.head.method == "HEAD";
        let parsed = loop {
            match reading.received.parse(is_head)? {
                Some(parsed) if is_interim(parsed.status) => {
                    self.forward_interim(&parsed, &reading.received);
                    reading.received.consume(parsed.len);
                    if reading.received.len > 0 {
                        continue;
                    }
                }
                Some(parsed) => break parsed,
                None => {}
            }
            Box::pin(self.read_more(&mut reading)).await?;
        };
        let body = &mut answer.body;
        body.clear();
        let mut whole = reading.take_body(&parsed, body);
        let has_head_alone = whole.is_none()
            && reading.received.len == parsed.len
            && matches!(parsed.framing, Framing::Length(1..));
        if has_head_alone && reading.fits_buffer(&parsed) {
            Box::pin(self.await_body(&mut reading)).await;
            whole = reading.take_body(&parsed, body);
        }
        self.write_answer(reading, &parsed, whole, flight, pass, answer)
    }

    /// Waits for more of an answer's head.
    async fn read_more(&self, reading: &mut ResponseReader) -> Result<(), ExchangeError> {
        let ResponseReader { stream, received, uploading, alarm } = reading;
        let is_sent = Cell::new(uploading.is_none());
        let more = poll_fn(|context| {
            poll_upload(uploading, stream, &is_sent, context)?;
            received.poll_more(stream, context).map_err(|_| None)
        });
        let within = self.upstreams.settings.response;
        match with_deadline(alarm, within, more, || is_sent.get()).await {
            Some(Ok(1..)) => Ok(()),
            Some(Err(Some(error))) => Err(ExchangeError::Client(error)),
            Some(_) => Err(ExchangeError::Protocol),
            None => Err(ExchangeError::Timeout),
        }
    }

    /// Waits a moment for the body of an answer whose head came alone.
    async fn await_body(&self, reading: &mut ResponseReader) {
        let ResponseReader { stream, received, .. } = reading;
        let more = poll_fn(|context| received.poll_more(stream, context));
        with_deadline(&mut self.caller.alarm(), BODY_GRACE, more, || true).await;
    }

    /// Passes an interim answer on, to clients that know of them.
    fn forward_interim(&self, parsed: &ParsedResponse, received: &ReceivedBytes) {
        let is_known = self.valid.head.version == Version::HTTP_11;
        if is_known && parsed.status != StatusCode::CONTINUE {
            let mut out = Vec::new();
            let headers = Headers::new(received.bytes(), &received.scratch.lines);
            forward::write_interim(parsed.status, headers, &mut out);
            self.caller.send_interim(&out);
        }
    }

    /// Writes the client's answer. `whole`: the body has come, and whether nothing came after it.
    fn write_answer(
        &self,
        reading: ResponseReader,
        parsed: &ParsedResponse,
        whole: Option<bool>,
        flight: &SelectedUpstream,
        pass: &mut Option<Admission<Node>>,
        answer: &mut Answer,
    ) -> Result<(), ExchangeError> {
        let ResponseReader { mut stream, received, uploading, .. } = reading;
        let is_tunnel = parsed.status == StatusCode::SWITCHING_PROTOCOLS;
        // No client gets another protocol that has not asked for it.
        if is_tunnel && self.upgrade.is_none() {
            return Err(ExchangeError::Protocol);
        }
        let headers = Headers::new(received.bytes(), &received.scratch.lines);
        let shown = pass.as_ref().ok_or(ExchangeError::Protocol)?.headers();
        if !forward::write_response(parsed.status, headers, shown, answer) {
            return Err(ExchangeError::Protocol);
        }
        let reason = parsed.reason(received.bytes());
        if parsed.status.canonical_reason().is_none_or(|usual| usual.as_bytes() != reason) {
            answer.reason.extend_from_slice(reason);
        }
        let Some(pass) = pass.take() else { return Err(ExchangeError::Protocol) };
        let holding = pass.respond_status(parsed.status.as_u16(), |name| headers.get(name));
        let idle = self.upstreams.settings.idle;
        if is_tunnel {
            let buffered = Bytes::copy_from_slice(&received.bytes()[parsed.len..]);
            // Slots stay taken until both sides have hung up.
            let guard: Option<Box<dyn std::any::Any>> = Some(Box::new(holding));
            answer.tunnel = Some(Tunnel { stream: Box::new(stream), buffered, idle, guard });
        } else if let Some(is_clean) = whole {
            if parsed.framing == Framing::Empty {
                answer.length = parsed.length;
            }
            holding.finish(&answer.body);
            let is_sent = uploading.as_ref().is_none_or(UploadSender::is_over);
            if is_clean && is_sent && parsed.persists {
                let pool = &self.gateway.pool;
                pool.put(self.upstreams.generation, flight.server(), stream);
            }
        } else {
            stream.unread(&received.bytes()[parsed.len..]);
            let body = MessageBody::of_response(parsed.framing);
            let connection = (stream, body, uploading, parsed.persists);
            let pool = self.gateway.pool.clone();
            let download =
                Download::http1(connection, pool, flight.clone(), self.caller.alarm(), idle);
            answer.stream = Some(match holding.holds_nothing() {
                true => Box::pin(download),
                false => Box::pin(holding.wrap_body(download)),
            });
        }
        received.recycle();
        Ok(())
    }
}

/// Sends a request, and waits for the first bytes of an answer. An error without a reason is the
/// upstream's.
async fn send_request(
    stream: &mut UpstreamStream,
    request: &[u8],
    sent: &mut usize,
    uploading: &mut Option<UploadSender>,
    is_sent: &Cell<bool>,
) -> Result<ReceivedBytes, Option<BodyError>> {
    poll_fn(|context| {
        while *sent < request.len() {
            let rest = &request[*sent..];
            match ready!(Pin::new(&mut *stream).poll_write(context, rest)).map_err(|_| None)? {
                0 => return Poll::Ready(Err(None)),
                len => *sent += len,
            }
        }
        poll_upload(uploading, stream, is_sent, context)?;
        // TLS may still hold encrypted bytes in a buffer.
        let _ = Pin::new(&mut *stream).poll_flush(context);
        poll_first_bytes(stream, context).map_err(|_| None)
    })
    .await
}

/// Sends as much of a body as there is and the upstream takes. The answer may come before its end.
fn poll_upload(
    uploading: &mut Option<UploadSender>,
    stream: &mut UpstreamStream,
    is_sent: &Cell<bool>,
    context: &mut Context<'_>,
) -> Result<(), Option<BodyError>> {
    if let Some(uploading) = uploading
        && let Poll::Ready(ended) = uploading.poll_send(stream, context)
    {
        is_sent.set(true);
        ended.map_err(Some)?;
    }
    Ok(())
}

/// Asks an upstream for `path`; the status of its answer, or why there is none.
pub(in super::super) async fn probe(
    mut stream: UpstreamStream,
    authority: &[u8],
    path: &str,
) -> Result<StatusCode, String> {
    let mut request = format!("GET {path} HTTP/1.1\r\n").into_bytes();
    push_line(b"host: ", authority, &mut request);
    request.extend_from_slice(b"\r\n");
    let is_sent = Cell::new(true);
    let asked = send_request(&mut stream, &request, &mut 0, &mut None, &is_sent).await;
    let mut received = asked.map_err(|_| "no answer: it broke off".to_owned())?;
    loop {
        match received.parse(false) {
            Ok(Some(parsed)) if is_interim(parsed.status) => {
                received.consume(parsed.len);
                if received.len > 0 {
                    continue;
                }
            }
            Ok(Some(parsed)) => return Ok(parsed.status),
            Ok(None) => {}
            Err(ExchangeError::TooLarge) => return Err(TOO_LARGE.into()),
            Err(_) => return Err("no answer: it is invalid HTTP/1.1".into()),
        }
        match poll_fn(|context| received.poll_more(&mut stream, context)).await {
            Ok(1..) => {}
            _ => return Err("no answer: it broke off".into()),
        }
    }
}
