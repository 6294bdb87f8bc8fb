//! The stream of a client's connection, as protocols see it.

use super::{ConnectionState, Stage, Transport};
use crate::http1::PushbackRead;
use std::task::{Context, Poll, ready};
use std::{io, pin::Pin, rc::Rc};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The size of the reads that discard input after the last answer.
const DISCARD_BYTES: usize = 4096;
/// The size of one read of pipelined requests while an earlier one is in flight. The next constant
/// caps all of them.
const PIPELINED_READ_BYTES: usize = 512;
const PIPELINED_BYTES_MAX: usize = 8 * 1024;

/// A stream that reports reads and blocked writes to its [`ConnectionState`], and lingers on close.
/// Writes are not vectored, so that h2 joins small answers of all streams in one write.
#[derive(Debug)]
pub(crate) struct ConnectionStream {
    inner: Transport,
    state: Rc<ConnectionState>,
    /// Bytes read beyond a message. The next reads return them.
    pushed_back: Vec<u8>,
    peer_closed: bool,
}

impl ConnectionStream {
    pub(crate) fn new(inner: Transport, state: Rc<ConnectionState>) -> Self {
        Self { inner, state, pushed_back: Vec::new(), peer_closed: false }
    }

    pub(crate) fn has_pushed_back(&self) -> bool {
        !self.pushed_back.is_empty()
    }

    /// Ready when the peer has closed its side. Buffers pipelined bytes, up to a limit.
    pub(crate) fn poll_peer_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.pushed_back.len() < PIPELINED_BYTES_MAX {
            ready!(self.inner.poll_readable(context));
            let mut room = [0; PIPELINED_READ_BYTES];
            let mut buffer = ReadBuf::new(&mut room);
            let read = ready!(Pin::new(&mut self.inner).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                self.peer_closed = true;
                return Poll::Ready(());
            }
            self.pushed_back.extend_from_slice(buffer.filled());
        }
        Poll::Pending
    }
}

impl PushbackRead for ConnectionStream {
    fn unread(&mut self, bytes: &[u8]) {
        push_back(&mut self.pushed_back, bytes);
    }
}

impl AsyncRead for ConnectionStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { inner, state, pushed_back, peer_closed, .. } = &mut *self;
        if !pushed_back.is_empty() {
            read_pushed_back(pushed_back, buffer);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(inner).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        if read == 0 {
            *peer_closed = true;
        } else {
            state.start_head_deadline();
        }
        if state.is_flooded_by(read) {
            state.expire();
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Poll::Ready(Ok(()))
    }
}

/// Inserts bytes before those already pushed back.
pub(crate) fn push_back(pushed_back: &mut Vec<u8>, bytes: &[u8]) {
    if pushed_back.is_empty() {
        pushed_back.extend_from_slice(bytes);
    } else {
        pushed_back.splice(0..0, bytes.iter().copied());
    }
}

/// Moves bytes from the front of `pushed_back` into `buffer`. Frees the memory when none are left.
pub(crate) fn read_pushed_back(pushed_back: &mut Vec<u8>, buffer: &mut ReadBuf<'_>) {
    let taken = pushed_back.len().min(buffer.remaining());
    buffer.put_slice(&pushed_back[..taken]);
    if taken == pushed_back.len() {
        *pushed_back = Vec::new();
    } else {
        pushed_back.drain(..taken);
    }
}

impl AsyncWrite for ConnectionStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.state.write_blocked.set(written.is_pending());
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    /// Closes this side, and reads until the peer closes its side or
    /// [`Limits::linger`](crate::Limits::linger) is over. Closing while the peer sends would
    /// reset the connection, which can destroy an answer that the peer has not read.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.state.enter(Stage::Lingering);
        ready!(Pin::new(&mut self.inner).poll_shutdown(context))?;
        let mut discarded = [0; DISCARD_BYTES];
        while !self.peer_closed {
            let mut buffer = ReadBuf::new(&mut discarded);
            let read = ready!(Pin::new(&mut self.inner).poll_read(context, &mut buffer));
            self.peer_closed = read.is_err() || buffer.filled().is_empty();
        }
        Poll::Ready(Ok(()))
    }
}
