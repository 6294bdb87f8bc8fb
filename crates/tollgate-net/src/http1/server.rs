//! Serves a client's connection: requests in, responses out, in order.

use super::{
    ParseError,
    body::{Http1Connection, PushbackRead},
    chunked::is_valid_prefix,
    parse::{Framing, ParsedRequest, parse_request},
    respond::{
        ConnectionEnd, ResponseContext, close, refuse, respond, run_tunnel, send, skip_body,
        swap_interim,
    },
};
use crate::{
    ClientConnection, Handler, HttpResponse, InFlightRequest, Request, RequestBody, Upload,
    connection::{CloseRequest, ConnectionStream},
    head::HeaderSpan,
};
use std::{
    future::poll_fn,
    io,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tollgate::engine::BufferPool;

/// Initial size of the read buffer. It grows to `head_bytes_max` for a large head.
const INPUT_BYTES: usize = 8 * 1024;
/// Limit of memory kept from one response for the next.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// Buffers of a connection with a request in progress. Idle connections have none: each thread
/// keeps a pool.
#[derive(Default)]
struct Http1Buffers {
    input: ReadBuffer,
    lines: Vec<HeaderSpan>,
    answer: HttpResponse,
    output: Vec<u8>,
}

thread_local! {
    static BUFFERS: BufferPool<Http1Buffers> = const { BufferPool::new() };
}

/// Received bytes. Bytes from `at` on are not parsed yet.
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

    /// The length of the request if all of it is buffered.
    #[inline]
    fn buffered_len(&self, parsed: &ParsedRequest) -> Option<usize> {
        parsed.message_len().filter(|whole| *whole <= self.len - self.at)
    }

    /// Moves unparsed bytes to the front and grows the buffer up to `most`. Returns whether there
    /// is room.
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

/// Serves a connection until either side ends it.
///
/// Kept in one function: each `await` boundary would copy the large future of a handler.
pub(crate) async fn serve<H: Handler>(
    stream: ConnectionStream,
    handler: &H,
    caller: &Rc<ClientConnection>,
) {
    let (state, cancels) = (&caller.state, H::CANCEL_ON_CLIENT_CLOSE);
    let connection = Rc::new(Http1Connection::new(stream, caller.clone(), cancels));
    let end = 'end: loop {
        let next = state.until_closed(|context| poll_first_bytes(&connection, context));
        let mut buffers = match next.await {
            Some(Ok(Some(buffers))) => buffers,
            Some(Ok(None)) | Some(Err(_)) => break ConnectionEnd::Done,
            None => break ConnectionEnd::CloseRequested,
        };
        let Http1Buffers { input, lines, answer, output } = &mut *buffers;
        while !input.unparsed().is_empty() {
            let limits = &state.listener.limits;
            let parsed = match parse_request(input.unparsed(), lines, limits.headers_max) {
                Ok(Some(parsed)) if parsed.len <= limits.head_bytes_max => parsed,
                other => match read_more_head(&connection, handler, other, input, output).await {
                    Ok(()) => continue,
                    Err(end) => break 'end end,
                },
            };
            let used = match input.buffered_len(&parsed) {
                Some(used) => Some(used),
                None => match buffer_body(&connection, handler, &parsed, input, output).await {
                    Ok(used) => used,
                    Err(end) => break 'end end,
                },
            };
            let head = parsed.head(input.unparsed(), lines);
            let body = request_body(&connection, &input.unparsed()[parsed.len..], &parsed, used);
            answer.clear();
            let mut context = ResponseContext::new(&head, parsed.persists);
            let busy = InFlightRequest::new(state);
            swap_interim(&connection, output);
            {
                let mut handling = pin!(handler.handle(Request { head, body }, caller, answer));
                let handled = |context: &mut Context<'_>| {
                    poll_handler(&connection, handling.as_mut(), context)
                };
                match state.until_closed(handled).await {
                    Some(true) => {}
                    Some(false) => break 'end ConnectionEnd::Done,
                    None => break 'end ConnectionEnd::CloseRequested,
                }
            }
            // `None`: the stream delivered the body, and also holds the bytes after it.
            input.at = used.map_or(input.len, |used| input.at + used);
            context.persists &= state.close_request() == CloseRequest::None;
            let is_more = !cancels && !input.unparsed().is_empty();
            let responded = respond(&connection, answer, context, output, busy, is_more);
            let persists = match responded.await {
                Ok(persists) => persists,
                Err(end) => break 'end end,
            };
            if let Some(tunnel) = answer.tunnel.take() {
                let left = input.unparsed().to_vec();
                buffers.recycle();
                return run_tunnel(connection, left, tunnel).await;
            }
            if !persists || !connection.is_over() && !skip_body(&connection).await {
                break 'end ConnectionEnd::Done;
            }
        }
        buffers.recycle();
    };
    close(&connection, end).await;
}

/// The body of a request: complete, or streamed from the connection.
#[inline]
fn request_body<'a>(
    connection: &Rc<Http1Connection>,
    bytes: &'a [u8],
    parsed: &ParsedRequest,
    used: Option<usize>,
) -> RequestBody<'a> {
    match used {
        Some(used) => RequestBody::Full(&bytes[..used - parsed.len]),
        None => RequestBody::Stream(Upload::http1(connection.clone(), &connection.caller.state)),
    }
}

impl Http1Buffers {
    fn recycle(mut self: Box<Self>) {
        (self.input.at, self.input.len) = (0, 0);
        if self.input.bytes.len() > INPUT_BYTES {
            self.input = ReadBuffer::default();
        }
        self.output.shrink_to(KEPT_BYTES_MAX);
        self.answer.body.shrink_to(KEPT_BYTES_MAX);
        BUFFERS.with(|pool| pool.put(self));
    }
}

/// Reads the first bytes, and takes buffers only once bytes are there. `None`: the client closed
/// its side.
fn poll_first_bytes(
    connection: &Http1Connection,
    context: &mut Context<'_>,
) -> Poll<io::Result<Option<Box<Http1Buffers>>>> {
    let mut buffers = BUFFERS.with(BufferPool::take);
    let read = buffers.input.poll_read(&mut connection.stream.borrow_mut(), context);
    match read {
        Poll::Ready(Ok(1..)) => {
            buffers.output.clear();
            Poll::Ready(Ok(Some(buffers)))
        }
        Poll::Ready(Ok(_)) => Poll::Ready(Ok(None)),
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        Poll::Pending => {
            BUFFERS.with(|pool| pool.put(buffers));
            Poll::Pending
        }
    }
}

/// Sends pending responses, then reads until another line of the head is complete. Refuses a
/// malformed or too large head.
async fn read_more_head(
    connection: &Http1Connection,
    handler: &impl Handler,
    parsed: Result<Option<ParsedRequest>, ParseError>,
    input: &mut ReadBuffer,
    output: &mut Vec<u8>,
) -> Result<(), ConnectionEnd> {
    let bad = match parsed {
        Ok(None) => None,
        Ok(Some(_)) => Some(ParseError::TooLarge),
        Err(why) => Some(why),
    };
    if let Some(why) = bad {
        return Err(refuse(connection, handler, why, input.unparsed(), output).await);
    }
    let state = &connection.caller.state;
    send(connection, output).await?;
    let most = state.listener.limits.head_bytes_max;
    loop {
        if !input.make_room(most) {
            let (why, head) = (ParseError::TooLarge, input.unparsed());
            return Err(refuse(connection, handler, why, head, output).await);
        }
        // Blank lines after a request do not start the deadline of the next head.
        if input.unparsed().iter().any(|byte| !b"\r\n".contains(byte)) {
            state.start_head_deadline();
        }
        let before = input.len;
        let read = state
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

/// Reads the rest of a small body if it has already arrived, and returns the message length.
/// `None`: the body is streamed, and bytes already read are pushed back.
async fn buffer_body(
    connection: &Http1Connection,
    handler: &impl Handler,
    parsed: &ParsedRequest,
    input: &mut ReadBuffer,
    output: &mut Vec<u8>,
) -> Result<Option<usize>, ConnectionEnd> {
    let fits = |whole: &usize| *whole <= input.bytes.len() - input.at;
    if let Some(whole) = parsed.message_len().filter(fits) {
        while input.len - input.at < whole {
            let read = poll_fn(|context| {
                let mut stream = connection.stream.borrow_mut();
                Poll::Ready(input.poll_read(&mut stream, context))
            });
            // The next read returns the same error or end.
            if !matches!(read.await, Poll::Ready(Ok(1..))) {
                break;
            }
        }
        if input.len - input.at >= whole {
            return Ok(Some(whole));
        }
    }
    let came = input.at + parsed.len;
    // A body with an invalid start is refused before the handler sees the head.
    if parsed.framing == Framing::Chunked && !is_valid_prefix(&input.bytes[came..input.len]) {
        let (why, head) = (ParseError::Framing, input.unparsed());
        return Err(refuse(connection, handler, why, head, output).await);
    }
    connection.stream.borrow_mut().unread(&input.bytes[came..input.len]);
    input.len = came;
    connection.begin_body(parsed.framing, parsed.known.expects_continue);
    Ok(None)
}

/// Polls the handler, and sends interim responses meanwhile. `false`: the client closed its side,
/// which cancels the request.
fn poll_handler(
    connection: &Http1Connection,
    handling: Pin<&mut impl Future<Output = ()>>,
    context: &mut Context<'_>,
) -> Poll<bool> {
    if handling.poll(context).is_ready() {
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
        // TLS may still hold encrypted bytes in its buffer.
        let _ = Pin::new(&mut *stream).poll_flush(context);
    }
    connection.poll_client_closed(&mut stream, context).map(|()| false)
}
