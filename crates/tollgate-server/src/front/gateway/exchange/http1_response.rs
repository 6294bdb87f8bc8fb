//! The bytes of an HTTP/1.1 response, in buffers that are used again.

use super::{ExchangeError, body::UploadSender};
use crate::net::{
    CoarseTimer, Framing, HeaderSpan, Headers, ParseError, ParsedResponse, UpstreamStream,
    decode_chunks, parse_response,
};
use hyper::StatusCode;
use std::task::{Context, Poll, Waker, ready};
use std::{io, pin::Pin};
use tokio::io::{AsyncRead, ReadBuf};
use tollgate::engine::BufferPool;

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
pub(super) struct ReceivedBytes {
    buffers: Box<ResponseBuffers>,
    pub(super) len: usize,
}

/// Takes a buffer once the response has begun.
pub(super) fn poll_first_bytes(
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
    pub(super) fn recycle(self) {
        BUFFERS.with(|pool| pool.put(self.buffers));
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffers.bytes[..self.len]
    }

    /// The headers of the head that was parsed last.
    pub(super) fn headers(&self) -> Headers<'_> {
        Headers::new(self.bytes(), &self.buffers.lines)
    }

    /// Reads more bytes: how many. Zero at the end, and where the buffer is full.
    pub(super) fn poll_more(
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

    /// Reads what has come already. To wait for more would delay what is here.
    fn read_now(&mut self, stream: &mut UpstreamStream) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        matches!(self.poll_more(stream, &mut context), Poll::Ready(Ok(1..)))
    }

    /// Parses the final response's head, and drops interim ones. `None`: more bytes are needed.
    pub(super) fn parse_final(
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
pub(super) struct ResponseReader {
    pub(super) stream: UpstreamStream,
    pub(super) received: ReceivedBytes,
    pub(super) upload: Option<UploadSender>,
    pub(super) timer: CoarseTimer,
}

impl ResponseReader {
    /// Whether head and body fit into the buffer.
    pub(super) fn fits_buffer(&self, parsed: &ParsedResponse) -> bool {
        let Framing::Length(length) = parsed.framing else { return false };
        parsed.len as u64 + length <= INPUT_BYTES as u64
    }

    /// Copies a body that can be read without waiting: whether the response ended there.
    pub(super) fn take_body(&mut self, parsed: &ParsedResponse, out: &mut Vec<u8>) -> Option<bool> {
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
                out.clear();
                if let Some(used) = decode_chunks(&self.received.bytes()[parsed.len..], out) {
                    return Some(parsed.len + used == self.received.len);
                }
                if !self.received.read_now(&mut self.stream) {
                    out.clear();
                    return None;
                }
            },
            Framing::Length(_) | Framing::UntilClose => None,
        }
    }
}
