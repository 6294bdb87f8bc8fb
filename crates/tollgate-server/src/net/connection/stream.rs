//! A connection's bytes on their way to and from the protocol.

use super::{ConnectionState, Transport};
use crate::net::http1::PushbackRead;
use std::{
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes are read and thrown away in pieces of this size after the last answer.
const DISCARD_BYTES: usize = 4096;
/// What is read of further requests while one is under way.
const PIPELINED_READ_BYTES: usize = 512;
/// And of all of them, at most.
const PIPELINED_BYTES_MAX: usize = 8 * 1024;

/// A stream that tells its connection's [`ConnectionState`] what comes, and ends gently.
#[derive(Debug)]
pub(crate) struct ConnectionStream {
    inner: Transport,
    life: Rc<ConnectionState>,
    /// What was read to find out what is spoken, still to be read again, and how much of it has
    /// been.
    pushed_back: Vec<u8>,
    pushed_back_read: usize,
    peer_closed: bool,
    /// Whether answers are written in several pieces at once rather than copied together.
    writes_vectored: bool,
}

impl ConnectionStream {
    pub(crate) fn new(inner: Transport, life: Rc<ConnectionState>) -> Self {
        Self {
            inner,
            life,
            pushed_back: Vec::new(),
            pushed_back_read: 0,
            peer_closed: false,
            writes_vectored: true,
        }
    }

    /// For small answers. HTTP/2 sends an answer of a quarter of a kilobyte by itself where it can
    /// write pieces, and otherwise puts those of all streams up to a kilobyte into one write.
    pub(crate) fn without_vectored_writes(self) -> Self {
        Self { writes_vectored: false, ..self }
    }

    /// Whether bytes wait to be read again.
    pub(crate) fn has_pushed_back(&self) -> bool {
        self.pushed_back_read < self.pushed_back.len()
    }

    /// Whether the peer has ended its side. Other bytes that come are kept, up to a limit; then
    /// nothing more is read.
    pub(crate) fn poll_peer_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.pushed_back.len() - self.pushed_back_read < PIPELINED_BYTES_MAX {
            let mut room = [0; PIPELINED_READ_BYTES];
            let mut buffer = ReadBuf::new(&mut room);
            match ready!(Pin::new(&mut self.inner).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {
                    self.pushed_back.extend_from_slice(buffer.filled());
                }
                _ => {
                    self.peer_closed = true;
                    return Poll::Ready(());
                }
            }
        }
        Poll::Pending
    }

    fn record_write<R>(&self, written: Poll<R>) -> Poll<R> {
        self.life.set_write_blocked(written.is_pending());
        written
    }
}

impl PushbackRead for ConnectionStream {
    fn unread(&mut self, bytes: &[u8]) {
        self.pushed_back.drain(..self.pushed_back_read);
        self.pushed_back_read = 0;
        self.pushed_back.splice(0..0, bytes.iter().copied());
    }
}

impl AsyncRead for ConnectionStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { inner, life, pushed_back, pushed_back_read, peer_closed, .. } = &mut *self;
        if *pushed_back_read < pushed_back.len() {
            let rest = &pushed_back[*pushed_back_read..];
            let taken = rest.len().min(buffer.remaining());
            buffer.put_slice(&rest[..taken]);
            *pushed_back_read += taken;
            if *pushed_back_read == pushed_back.len() {
                (*pushed_back, *pushed_back_read) = (Vec::new(), 0);
            }
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(inner).poll_read(context, buffer))?;
        match buffer.filled().len() > before {
            true => life.bytes_received(),
            false => *peer_closed = true,
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ConnectionStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.record_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, pieces);
        self.record_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.writes_vectored && self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    /// Says that nothing more will be written, and waits for the peer to say the same: closing
    /// while it still sends would make its system throw away an answer that it has not read yet.
    /// Whoever does not end is closed after [`Limits::linger`].
    ///
    /// [`Limits::linger`]: crate::net::Limits::linger
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.life.start_lingering();
        ready!(Pin::new(&mut self.inner).poll_shutdown(context))?;
        let mut discarded = [0; DISCARD_BYTES];
        while !self.peer_closed {
            let mut buffer = ReadBuf::new(&mut discarded);
            match ready!(Pin::new(&mut self.inner).poll_read(context, &mut buffer)) {
                Ok(()) => self.peer_closed = buffer.filled().is_empty(),
                Err(_) => self.peer_closed = true,
            }
        }
        Poll::Ready(Ok(()))
    }
}
