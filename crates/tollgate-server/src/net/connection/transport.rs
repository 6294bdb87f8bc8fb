//! A connection's bytes, encrypted or not.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// A TCP connection, with or without TLS, as a client or as a server.
#[derive(Debug)]
pub(crate) enum Transport {
    /// Bytes as they are.
    Tcp(TcpStream),
    /// Encrypted.
    Tls(Box<tokio_rustls::TlsStream<TcpStream>>),
    /// A pipe, for tests in virtual time.
    #[cfg(test)]
    Pipe(tokio::io::DuplexStream),
    /// A pipe whose writes are counted.
    #[cfg(test)]
    Counted(crate::net::tests::CountedPipe),
}

impl Transport {
    /// The socket below; `None` for a pipe.
    pub(crate) fn socket(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Tls(stream) => Some(stream.get_ref().0),
            #[cfg(test)]
            Self::Pipe(_) | Self::Counted(_) => None,
        }
    }
}

/// Calls the same method of whichever stream it is.
macro_rules! either {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut *$self {
            Self::Tcp($stream) => $call,
            Self::Tls($stream) => $call,
            #[cfg(test)]
            Self::Pipe($stream) => $call,
            #[cfg(test)]
            Self::Counted($stream) => $call,
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
            #[cfg(test)]
            Self::Counted(_) => true,
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
