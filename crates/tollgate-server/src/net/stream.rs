//! A connection's bytes on their way to and from the protocol.

use super::{http1::Source, life::Life, transport::Transport};
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
const EARLY_BYTES: usize = 512;
/// And of all of them, at most.
const EARLY_BYTES_MAX: usize = 8 * 1024;

/// A stream that tells its connection's [`Life`] what comes, and ends gently.
#[derive(Debug)]
pub(super) struct Stream {
    inner: Transport,
    life: Rc<Life>,
    /// What was read to find out what is spoken, still to be read again, and how much of it has been.
    waiting: Vec<u8>,
    again: usize,
    ended: bool,
    /// Whether answers are written in several pieces at once rather than copied together.
    in_pieces: bool,
}

impl Stream {
    pub(super) fn new(inner: Transport, life: Rc<Life>) -> Self {
        Self { inner, life, waiting: Vec::new(), again: 0, ended: false, in_pieces: true }
    }

    /// For small answers. HTTP/2 sends an answer of a quarter of a kilobyte by itself where it can write pieces, and
    /// otherwise puts those of all streams up to a kilobyte into one write.
    pub(super) fn together(self) -> Self {
        Self { in_pieces: false, ..self }
    }

    /// Whether bytes wait to be read again.
    pub(super) fn has_unread(&self) -> bool {
        self.again < self.waiting.len()
    }

    /// Whether the peer has ended its side. Other bytes that come are kept, up to a limit; then
    /// nothing more is read.
    pub(super) fn poll_left(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.waiting.len() - self.again < EARLY_BYTES_MAX {
            let mut room = [0; EARLY_BYTES];
            let mut buffer = ReadBuf::new(&mut room);
            match ready!(Pin::new(&mut self.inner).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {
                    self.waiting.extend_from_slice(buffer.filled());
                }
                _ => {
                    self.ended = true;
                    return Poll::Ready(());
                }
            }
        }
        Poll::Pending
    }

    fn wrote<R>(&self, written: Poll<R>) -> Poll<R> {
        self.life.set_stuck(written.is_pending());
        written
    }
}

impl Source for Stream {
    fn unread(&mut self, bytes: &[u8]) {
        self.waiting.drain(..self.again);
        self.again = 0;
        self.waiting.splice(0..0, bytes.iter().copied());
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { inner, life, waiting, again, ended, .. } = &mut *self;
        if *again < waiting.len() {
            let rest = &waiting[*again..];
            let taken = rest.len().min(buffer.remaining());
            buffer.put_slice(&rest[..taken]);
            *again += taken;
            if *again == waiting.len() {
                (*waiting, *again) = (Vec::new(), 0);
            }
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(inner).poll_read(context, buffer))?;
        match buffer.filled().len() > before {
            true => life.received(),
            false => *ended = true,
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.wrote(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, pieces);
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.in_pieces && self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    /// Says that nothing more will be written, and waits for the peer to say the same: closing while it still sends would make its
    /// system throw away an answer that it has not read yet. Whoever does not end is closed after [`Limits::linger`].
    ///
    /// [`Limits::linger`]: super::Limits::linger
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.life.last();
        ready!(Pin::new(&mut self.inner).poll_shutdown(context))?;
        let mut discarded = [0; DISCARD_BYTES];
        while !self.ended {
            let mut buffer = ReadBuf::new(&mut discarded);
            match ready!(Pin::new(&mut self.inner).poll_read(context, &mut buffer)) {
                Ok(()) => self.ended = buffer.filled().is_empty(),
                Err(_) => self.ended = true,
            }
        }
        Poll::Ready(Ok(()))
    }
}
