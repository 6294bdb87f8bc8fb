//! HTTP/1.1 bodies, read piece by piece.

use super::{Framing, chunked::ChunkedDecoder};
use crate::{BodyError, ClientConnection, connection::ConnectionStream};
use bytes::Bytes;
use hyper::{
    HeaderMap,
    body::{Frame, SizeHint},
    header::{HeaderName, HeaderValue},
};
use std::{
    cell::{Cell, RefCell},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, ReadBuf};

/// Limit of bytes per read of a body.
const PIECE_BYTES: usize = 16 * 1024;
/// Limit of trailers of a body.
const TRAILERS_MAX: usize = 64;

thread_local! {
    /// Pieces are read here and copied out, so a slow body holds only the memory of received bytes.
    static PIECE: RefCell<Box<[u8]>> = RefCell::new(vec![0; PIECE_BYTES].into());
}

/// A stream that takes back bytes that were read too far.
pub trait PushbackRead: AsyncRead + Unpin {
    /// Puts bytes back; the next read returns them first.
    fn unread(&mut self, bytes: &[u8]);
}

/// The unread rest of a body.
#[derive(Debug)]
pub struct MessageBody {
    framing: Framing,
    decoder: ChunkedDecoder,
    trailers: Option<HeaderMap>,
}

impl MessageBody {
    pub(crate) fn new(framing: Framing) -> Self {
        Self { framing, decoder: ChunkedDecoder::default(), trailers: None }
    }

    /// The body of a response.
    pub fn of_response(framing: Framing) -> Self {
        Self { decoder: ChunkedDecoder::lenient(), ..Self::new(framing) }
    }

    /// Whether the whole body was read.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.framing == Framing::Empty && self.trailers.is_none()
    }

    /// The length of the rest, if it is known.
    pub fn size_hint(&self) -> SizeHint {
        match self.framing {
            Framing::Empty => SizeHint::with_exact(0),
            Framing::Length(left) => SizeHint::with_exact(left),
            Framing::Chunked | Framing::UntilClose => SizeHint::default(),
        }
    }

    /// Reads the next piece of the body, or its trailers.
    pub fn poll_frame(
        &mut self,
        source: &mut impl PushbackRead,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.framing == Framing::Empty {
            return Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
        }
        PIECE.with_borrow_mut(|room| {
            loop {
                let most = match self.framing {
                    Framing::Length(left) => left.min(PIECE_BYTES as u64) as usize,
                    _ => PIECE_BYTES,
                };
                let mut buffer = ReadBuf::new(&mut room[..most]);
                let read = ready!(Pin::new(&mut *source).poll_read(context, &mut buffer));
                let bytes = buffer.filled_mut();
                if read.is_err() || bytes.is_empty() {
                    let is_end = read.is_ok() && self.framing == Framing::UntilClose;
                    self.framing = if is_end { Framing::Empty } else { Framing::UntilClose };
                    return Poll::Ready((!is_end).then_some(Err(BodyError::PeerClosed)));
                }
                match self.decode(bytes, source) {
                    Ok(data) if data.is_empty() && self.framing != Framing::Empty => {}
                    Ok(data) if data.is_empty() => {
                        let trailers = self.trailers.take();
                        return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
                    }
                    Ok(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                    Err(error) => {
                        // The start of the next message is unknown.
                        self.framing = Framing::UntilClose;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            }
        })
    }

    /// Extracts the data from received bytes. Bytes after the body are pushed back.
    fn decode(
        &mut self,
        bytes: &mut [u8],
        source: &mut impl PushbackRead,
    ) -> Result<Bytes, BodyError> {
        match &mut self.framing {
            Framing::Length(left) => {
                *left = left.saturating_sub(bytes.len() as u64);
                if *left == 0 {
                    self.framing = Framing::Empty;
                }
                Ok(Bytes::copy_from_slice(bytes))
            }
            Framing::Chunked => {
                // Moves the data to the front, so that one copy of the right size is allocated.
                let (mut at, mut len) = (0, 0);
                while at < bytes.len() && !self.decoder.is_finished() {
                    let decoded = self.decoder.next(&bytes[at..]);
                    let (read, piece) = decoded.map_err(|_| BodyError::Broken)?;
                    bytes.copy_within(at + piece.start..at + piece.end, len);
                    len += piece.len();
                    at += read;
                }
                if self.decoder.is_finished() {
                    source.unread(&bytes[at..]);
                    self.framing = Framing::Empty;
                    self.trailers = trailers(&self.decoder.trailers)?;
                }
                Ok(Bytes::copy_from_slice(&bytes[..len]))
            }
            Framing::Empty | Framing::UntilClose => Ok(Bytes::copy_from_slice(bytes)),
        }
    }
}

/// Parses trailers into a map; `None` if there are none.
fn trailers(lines: &[u8]) -> Result<Option<HeaderMap>, BodyError> {
    if lines.is_empty() {
        return Ok(None);
    }
    let mut room = [httparse::EMPTY_HEADER; TRAILERS_MAX];
    let ended = [lines, b"\r\n"].concat();
    let parsed = httparse::parse_headers(&ended, &mut room).map_err(|_| BodyError::Broken)?;
    let httparse::Status::Complete((_, headers)) = parsed else { return Err(BodyError::Broken) };
    let mut map = HeaderMap::with_capacity(headers.len());
    for httparse::Header { name, value } in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| BodyError::Broken)?;
        let value = HeaderValue::from_bytes(value).map_err(|_| BodyError::Broken)?;
        map.append(name, value);
    }
    Ok(Some(map))
}

/// A client's connection, shared by the task that answers and the reader of the request's body.
#[derive(Debug)]
pub(crate) struct Http1Connection {
    pub(super) stream: RefCell<ConnectionStream>,
    pub(super) caller: Rc<ClientConnection>,
    body: RefCell<MessageBody>,
    /// Whether the client waits for `100 Continue`.
    awaits_continue: Cell<bool>,
    /// Whether a client that closes its side cancels its request.
    cancel_on_client_close: bool,
    /// Counts bodies, so that the reader of an earlier body reads nothing of this one.
    body_id: Cell<u64>,
    /// Whether the head of the answer was written: no interim response may follow it.
    is_answered: Cell<bool>,
}

impl Http1Connection {
    pub(super) fn new(
        stream: ConnectionStream,
        caller: Rc<ClientConnection>,
        cancel_on_client_close: bool,
    ) -> Self {
        Self {
            stream: RefCell::new(stream),
            caller,
            body: RefCell::new(MessageBody::new(Framing::Empty)),
            awaits_continue: Cell::new(false),
            cancel_on_client_close,
            body_id: Cell::new(0),
            is_answered: Cell::new(false),
        }
    }

    /// Records that the head of the answer was written.
    pub(super) fn mark_answered(&self) {
        self.is_answered.set(true);
    }

    /// Whether the client has cancelled its request. Polled after the body, when nothing else
    /// reads.
    pub(super) fn poll_client_closed(
        &self,
        stream: &mut ConnectionStream,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        if self.cancel_on_client_close && self.is_over() {
            stream.poll_peer_closed(context)
        } else {
            Poll::Pending
        }
    }

    /// Prepares for a request whose body is still to come.
    pub(super) fn begin_body(&self, framing: Framing, expects_continue: bool) {
        self.body_id.set(self.body_id.get() + 1);
        self.body.replace(MessageBody::new(framing));
        self.awaits_continue.set(expects_continue);
        self.is_answered.set(false);
    }

    /// The number of the current body.
    pub(crate) fn body_id(&self) -> u64 {
        self.body_id.get()
    }

    /// Takes the rest of the body from its reader.
    pub(super) fn take_body(&self) -> MessageBody {
        self.body_id.set(self.body_id.get() + 1);
        self.body.replace(MessageBody::new(Framing::Empty))
    }

    /// Whether the client still waits for `100 Continue`.
    pub(super) fn awaits_continue(&self) -> bool {
        self.awaits_continue.get()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.body.borrow().is_over()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.body.borrow().size_hint()
    }

    /// Reads the next piece of the body with this number.
    pub(crate) fn poll_frame(
        &self,
        number: u64,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if number != self.body_id.get() {
            return Poll::Ready(Some(Err(BodyError::PeerClosed)));
        }
        let mut stream = self.stream.borrow_mut();
        if self.awaits_continue.get() && !self.is_answered.get() {
            self.awaits_continue.set(false);
            if !stream.has_pushed_back() {
                self.caller.send_interim(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
        }
        let mut body = self.body.borrow_mut();
        let frame = ready!(body.poll_frame(&mut *stream, context));
        if body.is_over() {
            // Wakes the connection's task, which now watches for the client's close.
            self.caller.state.wake();
        }
        Poll::Ready(frame)
    }
}
