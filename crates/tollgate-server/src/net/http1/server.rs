//! A client's connection: requests in, answers out, one after the other.

use super::{
    ParseError,
    answer::{self, ResponseContext, ResponseFraming},
    body::{Http1Connection, PushbackRead},
    chunked::is_valid_prefix,
    parse::{Framing, ParsedRequest, parse_request},
    writer::BodyWriter,
};
use crate::net::{
    Answer, BoxError, ClientConnection, Handler, InFlightRequest, Request, RequestBody, Upload,
    connection::{CloseRequest, ConnectionState, ConnectionStream, Stage, WriteTimeout},
    handler::BodyStream,
    head::HeaderSpan,
    upgrade as tunnel,
};
use bytes::Bytes;
use hyper::body::Body;
use std::{
    future::poll_fn,
    io, mem,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tollgate::BufferPool;

/// Bytes that one read takes, at most. Larger heads get more room.
const INPUT_BYTES: usize = 8 * 1024;
/// Answers to requests that came together are sent together, up to here.
const OUTPUT_BYTES: usize = 16 * 1024;
/// Memory of one answer that is kept for the next, at most.
const KEPT_BYTES_MAX: usize = 64 * 1024;
/// A body of no more than this is read to its end for nobody, so that its connection goes on.
const SKIPPED_BYTES_MAX: u64 = 64 * 1024;
/// And for no longer than this.
const SKIPPED_WITHIN: Duration = Duration::from_secs(1);

/// Memory that only connections with something to do need. Each thread has as many as wait for
/// something at once.
#[derive(Default)]
struct Http1Buffers {
    input: ReadBuffer,
    lines: Vec<HeaderSpan>,
    answer: Answer,
    output: Vec<u8>,
}

thread_local! {
    static SCRATCH: BufferPool<Http1Buffers> = const { BufferPool::new() };
}

/// Bytes that have come: those from `at` on have not been used.
struct ReadBuffer {
    bytes: Vec<u8>,
    at: usize,
    len: usize,
}

impl Default for ReadBuffer {
    fn default() -> Self {
        Self { bytes: vec![0; INPUT_BYTES], at: 0, len: 0 }
    }
}

impl ReadBuffer {
    #[inline]
    fn unparsed(&self) -> &[u8] {
        &self.bytes[self.at..self.len]
    }

    /// The length of a request that has come whole.
    #[inline]
    fn buffered_len(&self, parsed: &ParsedRequest) -> Option<usize> {
        parsed.message_len().filter(|whole| *whole <= self.len - self.at)
    }

    /// Makes room for more behind what has not been used; `false` where `most` bytes are there.
    fn make_room(&mut self, most: usize) -> bool {
        self.bytes.copy_within(self.at..self.len, 0);
        (self.at, self.len) = (0, self.len - self.at);
        if self.len == self.bytes.len() && self.len < most {
            self.bytes.resize(most, 0);
        }
        self.len < self.bytes.len().min(most)
    }

    fn poll_read(
        &mut self,
        stream: &mut ConnectionStream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(&mut self.bytes[self.len..]);
        ready!(Pin::new(stream).poll_read(context, &mut buffer))?;
        let read = buffer.filled().len();
        self.len += read;
        Poll::Ready(Ok(read))
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionEnd {
    /// There is nothing more to say or to hear.
    Done,
    /// It has been told to close.
    CloseRequested,
    /// At once: what it carries is spoilt, or the client has gone.
    Abort,
}

/// Serves a connection until either side ends it.
///
/// All in one function: each `await` boundary would copy the large future of an answer.
pub(in crate::net) async fn serve<H: Handler>(
    stream: ConnectionStream,
    handler: &H,
    caller: &Rc<ClientConnection>,
) {
    let life = &caller.life;
    let connection =
        Rc::new(Http1Connection::new(stream, caller.clone(), H::CANCEL_ON_CLIENT_CLOSE));
    let end = 'end: loop {
        let next = life.until_closed(|context| poll_first_bytes(&connection, context));
        let mut scratch = match next.await {
            Some(Ok(Some(scratch))) => scratch,
            Some(Ok(None)) | Some(Err(_)) => break ConnectionEnd::Done,
            None => break ConnectionEnd::CloseRequested,
        };
        let Http1Buffers { input, lines, answer, output } = &mut *scratch;
        while !input.unparsed().is_empty() {
            let limits = &life.front.limits;
            let parsed = match parse_request(input.unparsed(), lines, limits.headers_max) {
                Ok(Some(parsed)) if parsed.len <= limits.head_bytes_max => parsed,
                other => match read_more_head(&connection, other, input, output).await {
                    Ok(()) => continue,
                    Err(end) => break 'end end,
                },
            };
            let used = match input.buffered_len(&parsed) {
                Some(used) => Some(used),
                None => match buffer_body(&connection, &parsed, input).await {
                    Ok(used) => used,
                    Err(why) => break 'end refuse(&connection, why, output).await,
                },
            };
            let head = parsed.head(input.unparsed(), lines);
            let body = match used {
                Some(used) => RequestBody::Full(&input.unparsed()[parsed.len..used]),
                None => RequestBody::Stream(Upload::http1(connection.clone(), life)),
            };
            answer.clear();
            let mut asked = ResponseContext::new(&head, parsed.persists);
            let busy = InFlightRequest::new(life);
            if !output.is_empty() {
                // Earlier answers go out as soon as this one has to be waited for.
                mem::swap(output, &mut *caller.interim.borrow_mut());
            }
            {
                let mut answering = pin!(handler.handle(Request { head, body }, caller, answer));
                let answered = life
                    .until_closed(|context| poll_answer(&connection, answering.as_mut(), context));
                match answered.await {
                    Some(true) => {}
                    Some(false) => break 'end ConnectionEnd::Done,
                    None => break 'end ConnectionEnd::CloseRequested,
                }
            }
            // A body that came in pieces is followed by what the stream keeps.
            input.at = used.map_or(input.len, |used| input.at + used);
            asked.persists &= life.close_request() == CloseRequest::None;
            let is_more = !H::CANCEL_ON_CLIENT_CLOSE && !input.unparsed().is_empty();
            let persists = match respond(&connection, answer, asked, output, busy, is_more).await {
                Ok(persists) => persists,
                Err(end) => break 'end end,
            };
            if let Some(tunnel) = answer.tunnel.take() {
                let left = input.unparsed().to_vec();
                scratch.recycle();
                return run_tunnel(connection, left, tunnel).await;
            }
            if !persists || !connection.is_over() && !skip_body(&connection).await {
                break 'end ConnectionEnd::Done;
            }
        }
        scratch.recycle();
    };
    close(&connection, end).await;
}

impl Http1Buffers {
    fn recycle(mut self: Box<Self>) {
        (self.input.at, self.input.len) = (0, 0);
        if self.input.bytes.len() > INPUT_BYTES {
            self.input = ReadBuffer::default();
        }
        self.output.shrink_to(KEPT_BYTES_MAX);
        self.answer.body.shrink_to(KEPT_BYTES_MAX);
        SCRATCH.with(|spares| spares.put(self));
    }
}

/// What has come, in memory that is taken only once something has. `None`: the client has ended.
fn poll_first_bytes(
    connection: &Http1Connection,
    context: &mut Context<'_>,
) -> Poll<io::Result<Option<Box<Http1Buffers>>>> {
    let mut scratch = SCRATCH.with(BufferPool::take);
    let read = scratch.input.poll_read(&mut connection.stream.borrow_mut(), context);
    match read {
        Poll::Ready(Ok(1..)) => {
            scratch.output.clear();
            Poll::Ready(Ok(Some(scratch)))
        }
        Poll::Ready(Ok(_)) => Poll::Ready(Ok(None)),
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        Poll::Pending => {
            SCRATCH.with(|spares| spares.put(scratch));
            Poll::Pending
        }
    }
}

/// Waits for more of a head, to the end of a line at least, once all answers have been sent; or
/// refuses what is no request.
async fn read_more_head(
    connection: &Http1Connection,
    parsed: Result<Option<ParsedRequest>, ParseError>,
    input: &mut ReadBuffer,
    output: &mut Vec<u8>,
) -> Result<(), ConnectionEnd> {
    match parsed {
        Ok(None) => {}
        Ok(Some(_)) => return Err(refuse(connection, ParseError::TooLarge, output).await),
        Err(why) => return Err(refuse(connection, why, output).await),
    }
    let life = &connection.caller.life;
    send(connection, output).await?;
    let most = life.front.limits.head_bytes_max;
    loop {
        if !input.make_room(most) {
            return Err(refuse(connection, ParseError::TooLarge, output).await);
        }
        // Empty lines may belong to the request before.
        if input.unparsed().iter().any(|byte| !b"\r\n".contains(byte)) {
            life.bytes_received();
        }
        let before = input.len;
        let read = life
            .until_closed(|context| input.poll_read(&mut connection.stream.borrow_mut(), context));
        match read.await {
            Some(Ok(1..)) if memchr::memchr(b'\n', &input.bytes[before..input.len]).is_some() => {
                return Ok(());
            }
            Some(Ok(1..)) => {}
            Some(Ok(_)) | Some(Err(_)) => return Err(ConnectionEnd::Done),
            None => return Err(ConnectionEnd::CloseRequested),
        }
    }
}

/// The bytes of a request whose body has come whole, and without waiting. Otherwise what has come
/// of the body goes back to the stream, and the body is read from there.
async fn buffer_body(
    connection: &Http1Connection,
    parsed: &ParsedRequest,
    input: &mut ReadBuffer,
) -> Result<Option<usize>, ParseError> {
    let fits = |whole: &usize| *whole <= input.bytes.len() - input.at;
    if let Some(whole) = parsed.message_len().filter(fits) {
        while input.len - input.at < whole {
            let read = poll_fn(|context| {
                let mut stream = connection.stream.borrow_mut();
                Poll::Ready(input.poll_read(&mut stream, context))
            });
            // The next read gets the same error or end.
            if !matches!(read.await, Poll::Ready(Ok(1..))) {
                break;
            }
        }
        if input.len - input.at >= whole {
            return Ok(Some(whole));
        }
    }
    let came = input.at + parsed.len;
    // A body that begins badly is refused before the handler sees its head.
    if parsed.framing == Framing::Chunked && !is_valid_prefix(&input.bytes[came..input.len]) {
        return Err(ParseError::Framing);
    }
    connection.stream.borrow_mut().unread(&input.bytes[came..input.len]);
    input.len = came;
    connection.begin_body(parsed.framing, parsed.known.expects_continue);
    Ok(None)
}

/// Whether there is an answer; `false` where the client ends its side before that and so gives its
/// request up. Sends interim answers meanwhile.
fn poll_answer(
    connection: &Http1Connection,
    answering: Pin<&mut impl Future<Output = ()>>,
    context: &mut Context<'_>,
) -> Poll<bool> {
    if answering.poll(context).is_ready() {
        return Poll::Ready(true);
    }
    let mut interim = connection.caller.interim.borrow_mut();
    let mut stream = connection.stream.borrow_mut();
    while !interim.is_empty() {
        match Pin::new(&mut *stream).poll_write(context, &interim) {
            Poll::Ready(Ok(written @ 1..)) => drop(interim.drain(..written)),
            Poll::Ready(_) => interim.clear(),
            Poll::Pending => return Poll::Pending,
        }
        // TLS may still hold encrypted bytes in a buffer.
        let _ = Pin::new(&mut *stream).poll_flush(context);
    }
    connection.poll_client_closed(&mut stream, context).map(|()| false)
}

/// Whether the connection can go on though the handler did not want all of the body. The answer
/// does not wait for a body that is on its way.
async fn can_skip_body(connection: &Http1Connection) -> bool {
    match connection.size_hint().exact() {
        Some(0) => true,
        Some(length) => length <= SKIPPED_BYTES_MAX && !connection.awaits_continue(),
        None => skip_body(connection).await,
    }
}

/// Reads what is left of a body that the handler did not want, where that is little and on its way.
/// Whether the connection can go on.
async fn skip_body(connection: &Http1Connection) -> bool {
    if connection.is_over() {
        return true;
    }
    let length = connection.size_hint().exact();
    // A body that was not asked for may come or not.
    if length.is_some_and(|length| length > SKIPPED_BYTES_MAX) || connection.awaits_continue() {
        return false;
    }
    // One of unknown length may be endless, so it is not waited for.
    let within = if length.is_some() { SKIPPED_WITHIN } else { Duration::ZERO };
    let _busy = InFlightRequest::new(&connection.caller.life);
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

/// Sends an answer; whether another request may follow. Answers to requests that came together
/// leave together.
async fn respond(
    connection: &Http1Connection,
    answer: &mut Answer,
    mut asked: ResponseContext,
    output: &mut Vec<u8>,
    busy: InFlightRequest,
    is_more: bool,
) -> Result<bool, ConnectionEnd> {
    if !connection.is_over() && answer.stream.is_none() {
        asked.persists &= can_skip_body(connection).await;
    }
    take_interim(&connection.caller, output);
    connection.mark_answered();
    let (sends, persists) = answer::write_response(answer, asked, output);
    if let (Some(stream), true) = (answer.stream.take(), sends != ResponseFraming::NoStream) {
        Box::pin(send_stream(connection, stream, sends, output, busy)).await?;
    } else {
        drop(busy);
        if !is_more || !persists || output.len() > OUTPUT_BYTES {
            send(connection, output).await?;
        }
    }
    Ok(persists)
}

/// Interim answers that were not sent stand before the answer.
#[inline]
fn take_interim(caller: &ClientConnection, output: &mut Vec<u8>) {
    let mut interim = caller.interim.borrow_mut();
    if !interim.is_empty() {
        mem::swap(output, &mut *interim);
    }
}

/// Sends all that is to be sent.
async fn send(connection: &Http1Connection, output: &mut Vec<u8>) -> Result<(), ConnectionEnd> {
    if output.is_empty() {
        return Ok(());
    }
    let mut written = 0;
    let sent = connection.caller.life.until_closed(|context| {
        let mut stream = connection.stream.borrow_mut();
        while written < output.len() {
            match ready!(Pin::new(&mut *stream).poll_write(context, &output[written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                more => written += more,
            }
        }
        // TLS may still hold encrypted bytes in a buffer.
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

/// Sends an answer piece by piece, after the head in `output`. A client that takes nothing for as
/// long as a connection may be idle is closed.
async fn send_stream(
    connection: &Http1Connection,
    mut body: BodyStream,
    sends: ResponseFraming,
    output: &mut Vec<u8>,
    busy: InFlightRequest,
) -> Result<(), ConnectionEnd> {
    let life = busy.life().clone();
    let mut writer = BodyWriter::new(mem::take(output), sends == ResponseFraming::Chunked);
    let mut stall = None;
    let sent = life.until_closed(|context| {
        let polled = poll_stream(connection, body.as_mut(), &mut writer, context);
        let is_stuck = polled.is_pending() && writer.has_unsent();
        match (is_stuck, &mut stall) {
            (false, _) => stall = None,
            (true, Some((at, _))) if *at == writer.progress() => {}
            (true, stall) => {
                let within = life.front.limits.idle;
                *stall = Some((writer.progress(), WriteTimeout::new(&life, within)));
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
                // What has come goes on; that it is not all shows in the connection's end.
                let _ = writer.poll_write(&mut *stream, context);
                return Poll::Ready(Err(io::Error::other(error)));
            }
        };
        if writer.poll_write(&mut *stream, context)?.is_pending() {
            let left = connection.poll_client_closed(&mut stream, context);
            return left.map(|()| Err(io::ErrorKind::BrokenPipe.into()));
        }
        if writer.is_over() {
            return Poll::Ready(Ok(()));
        }
        if is_pending {
            let left = connection.poll_client_closed(&mut stream, context);
            return left.map(|()| Err(io::ErrorKind::BrokenPipe.into()));
        }
    }
}

/// Refuses what is no request, after all earlier answers.
#[cold]
async fn refuse(
    connection: &Http1Connection,
    why: ParseError,
    output: &mut Vec<u8>,
) -> ConnectionEnd {
    let mut answer = Answer::default();
    answer.set_problem(why.status(), why.detail(), Some("head"));
    let asked =
        ResponseContext { version: hyper::Version::HTTP_11, is_head: false, persists: false };
    answer::write_response(&answer, asked, output);
    send(connection, output).await.err().unwrap_or(ConnectionEnd::Done)
}

/// Joins the connection to another one.
async fn run_tunnel(connection: Rc<Http1Connection>, left: Vec<u8>, tunnel: tunnel::Tunnel) {
    let caller = connection.caller.clone();
    drop(connection.take_body());
    let Some(connection) = Rc::into_inner(connection) else { return };
    let _busy = InFlightRequest::new(&caller.life);
    let stream = connection.stream.into_inner();
    tunnel::run(stream, left, tunnel, caller.alarm(), &caller.life).await;
}

/// Ends a connection.
#[expect(
    clippy::await_holding_refcell_ref,
    reason = "the body was taken away, so nobody else borrows the stream"
)]
async fn close(connection: &Http1Connection, end: ConnectionEnd) {
    drop(connection.take_body());
    let (life, mut stream) = (&connection.caller.life, connection.stream.borrow_mut());
    match end {
        ConnectionEnd::Done => {
            let mut ending = pin!(stream.shutdown());
            life.until_closed(|context| ending.as_mut().poll(context)).await;
        }
        ConnectionEnd::CloseRequested => respond_timeout(&mut stream, life).await,
        ConnectionEnd::Abort => {}
    }
}

/// Ends a connection on which only part of a head has come. One on which nothing has come, or not
/// even the last answer has been read, ends without a word.
pub(in crate::net) async fn respond_timeout(stream: &mut ConnectionStream, life: &ConnectionState) {
    if life.stage() != Stage::ReadingHead || life.is_write_blocked() {
        return;
    }
    life.allow_final_response();
    let (mut answer, detail) = (Answer::default(), "the request's head took too long");
    answer.set_problem(hyper::StatusCode::REQUEST_TIMEOUT, detail, Some("head"));
    let asked =
        ResponseContext { version: hyper::Version::HTTP_11, is_head: false, persists: false };
    let mut output = Vec::new();
    answer::write_response(&answer, asked, &mut output);
    let mut saying = pin!(async {
        stream.write_all(&output).await?;
        stream.shutdown().await
    });
    life.until_closed(|context| saying.as_mut().poll(context)).await;
}
