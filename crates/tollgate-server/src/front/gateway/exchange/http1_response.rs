//! The bytes of an HTTP/1.1 response, in buffers that are used again.

use super::{ExchangeError, body::UploadSender};
use crate::net::{
    CoarseTimer, Framing, HeaderSpan, ParseError, ParsedResponse, UpstreamStream, decode_chunks,
    parse_response,
};
use hyper::StatusCode;
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};
use tokio::io::{AsyncRead, ReadBuf};
use tollgate::BufferPool;

/// Bytes of an answer that one read takes, and bytes of an answer's head, at most.
const INPUT_BYTES: usize = 16 * 1024;

/// Memory that only requests whose answer has begun need.
pub(super) struct ResponseBuffers {
    bytes: Box<[u8]>,
    pub(super) lines: Vec<HeaderSpan>,
}

impl Default for ResponseBuffers {
    fn default() -> Self {
        Self { bytes: vec![0; INPUT_BYTES].into(), lines: Vec::new() }
    }
}

thread_local! {
    static SCRATCH: BufferPool<ResponseBuffers> = const { BufferPool::new() };
}

/// What has come of an answer.
pub(super) struct ReceivedBytes {
    pub(super) scratch: Box<ResponseBuffers>,
    pub(super) len: usize,
}

impl ReceivedBytes {
    pub(super) fn recycle(self) {
        SCRATCH.with(|spares| spares.put(self.scratch));
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.scratch.bytes[..self.len]
    }

    /// Reads what has come already; waiting for more would keep the client from what has come.
    pub(super) fn read_now(&mut self, stream: &mut UpstreamStream) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        matches!(self.poll_more(stream, &mut context), Poll::Ready(Ok(1..)))
    }

    pub(super) fn poll_more(
        &mut self,
        stream: &mut UpstreamStream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.len == self.scratch.bytes.len() {
            return Poll::Ready(Ok(0));
        }
        let read = ready!(poll_read(stream, context, &mut self.scratch.bytes[self.len..]))?;
        self.len += read;
        Poll::Ready(Ok(read))
    }
}

fn poll_read(
    stream: &mut UpstreamStream,
    context: &mut Context<'_>,
    room: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(room);
    ready!(Pin::new(stream).poll_read(context, &mut buffer))?;
    Poll::Ready(Ok(buffer.filled().len()))
}

/// The answer's first bytes, in memory that is taken only once there are some.
pub(super) fn poll_first_bytes(
    stream: &mut UpstreamStream,
    context: &mut Context<'_>,
) -> Poll<io::Result<ReceivedBytes>> {
    let mut scratch = SCRATCH.with(BufferPool::take);
    match poll_read(stream, context, &mut scratch.bytes) {
        Poll::Ready(read) => Poll::Ready(read.map(|len| ReceivedBytes { scratch, len })),
        Poll::Pending => {
            SCRATCH.with(|spares| spares.put(scratch));
            Poll::Pending
        }
    }
}

impl ReceivedBytes {
    pub(super) fn parse(&mut self, is_head: bool) -> Result<Option<ParsedResponse>, ExchangeError> {
        let ResponseBuffers { bytes, lines } = &mut *self.scratch;
        match parse_response(&bytes[..self.len], is_head, lines) {
            Ok(None) if self.len == INPUT_BYTES => Err(ExchangeError::TooLarge),
            Ok(parsed) => Ok(parsed),
            Err(ParseError::TooLarge) => Err(ExchangeError::TooLarge),
            Err(_) => Err(ExchangeError::Protocol),
        }
    }

    pub(super) fn consume(&mut self, len: usize) {
        self.scratch.bytes.copy_within(len..self.len, 0);
        self.len -= len;
    }
}

/// A connection whose answer has begun.
pub(super) struct ResponseReader {
    pub(super) stream: UpstreamStream,
    pub(super) received: ReceivedBytes,
    pub(super) uploading: Option<UploadSender>,
    pub(super) alarm: CoarseTimer,
}

impl ResponseReader {
    /// Whether a body of this length can be here whole.
    pub(super) fn fits_buffer(&self, parsed: &ParsedResponse) -> bool {
        let Framing::Length(length) = parsed.framing else { return false };
        parsed.len as u64 + length <= INPUT_BYTES as u64
    }

    /// Copies a body that has come whole, with what can be read at once; whether nothing came after
    /// it. `None`: it comes piece by piece.
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

pub(super) fn is_interim(status: StatusCode) -> bool {
    status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS
}
