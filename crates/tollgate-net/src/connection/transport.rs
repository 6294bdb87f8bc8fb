//! Transports of connections: TCP, with or without TLS.

use std::task::{Context, Poll, ready};
use std::{cell::Cell, io, pin::Pin, rc::Rc};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP connection to a client or an upstream, with or without TLS.
#[derive(Debug)]
pub enum Transport {
    /// A socket.
    Tcp(TcpStream),
    /// A socket with TLS.
    Tls(Box<tokio_rustls::TlsStream<TcpStream>>),
    /// A pipe, for tests in virtual time.
    #[cfg(any(test, feature = "rig"))]
    Pipe(tokio::io::DuplexStream),
    /// A pipe that records its activity.
    #[cfg(any(test, feature = "rig"))]
    CountedPipe(ActivityStream<tokio::io::DuplexStream>),
}

impl Transport {
    /// The underlying socket; `None` for a pipe.
    pub(crate) fn socket(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Tls(stream) => Some(stream.get_ref().0),
            #[cfg(any(test, feature = "rig"))]
            Self::Pipe(_) | Self::CountedPipe(_) => None,
        }
    }

    /// Ready when a read is worth trying. A socket knows that without a buffer; a TLS session may
    /// hold bytes that its socket no longer has.
    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Tcp(stream) => stream.poll_read_ready(context).map(drop),
            _ => Poll::Ready(()),
        }
    }
}

/// Implements reading and writing by delegating to the stream of each variant.
macro_rules! either {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut *$self {
            Self::Tcp($stream) => $call,
            Self::Tls($stream) => $call,
            #[cfg(any(test, feature = "rig"))]
            Self::Pipe($stream) => $call,
            #[cfg(any(test, feature = "rig"))]
            Self::CountedPipe($stream) => $call,
        }
    };
}

impl AsyncRead for Transport {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => Pin::new(stream).poll_write_vectored(context, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(_) => true,
            #[cfg(any(test, feature = "rig"))]
            Self::CountedPipe(_) => true,
            _ => false,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => Pin::new(stream).poll_shutdown(context))
    }
}

/// Counts the reads and writes that moved bytes. Closing the stream counts as a write.
#[derive(Debug, Default)]
pub struct Activity {
    /// The reads that returned bytes.
    pub reads: Cell<u64>,
    pub(crate) writes: Cell<u64>,
}

/// A stream that records its [`Activity`].
#[derive(Debug)]
pub struct ActivityStream<T> {
    /// The underlying stream.
    pub inner: T,
    /// The counters of reads and writes.
    pub activity: Rc<Activity>,
}

impl<T: AsyncRead + Unpin> AsyncRead for ActivityStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.activity.reads.update(|reads| reads + 1);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for ActivityStream<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(context, bytes))?;
        self.activity.writes.update(|writes| writes + 1);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write_vectored(context, pieces))?;
        self.activity.writes.update(|writes| writes + 1);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.activity.writes.update(|writes| writes + 1);
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
