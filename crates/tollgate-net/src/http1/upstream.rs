//! A connection to an HTTP/1.1 upstream.

use super::body::PushbackRead;
use crate::{
    Transport,
    connection::{push_back, read_pushed_back},
};
use socket2::SockRef;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::{io, mem::MaybeUninit};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop::unconstrained;

/// The stream to an upstream, with bytes that were read too far.
#[derive(Debug)]
pub struct UpstreamStream {
    transport: Transport,
    unread: Vec<u8>,
}

impl UpstreamStream {
    /// Creates a stream without buffered bytes.
    pub fn new(transport: Transport) -> Self {
        Self { transport, unread: Vec::new() }
    }

    /// Whether an idle connection is unusable: the upstream has closed it or sent bytes. Checks
    /// only events that the runtime already knows, so it costs no system call.
    #[inline]
    pub fn is_stale(&mut self) -> bool {
        let mut byte = [0];
        let is_silent = match &mut self.transport {
            Transport::Tcp(socket) => is_would_block(&socket.try_read(&mut byte)),
            // TLS may have decrypted more than was read.
            transport => {
                let mut byte = ReadBuf::new(&mut byte);
                let read =
                    poll_fn(|context| Pin::new(&mut *transport).poll_read(context, &mut byte));
                // Unconstrained: a task whose budget is spent would get `Pending`.
                let read = pin!(unconstrained(read));
                read.poll(&mut Context::from_waker(Waker::noop())).is_pending()
            }
        };
        !is_silent || !self.unread.is_empty()
    }

    /// Like `is_stale`, but with a system call, which also sees newer events. Worth its cost for
    /// requests that must not be sent twice.
    pub fn peek_is_stale(&self) -> bool {
        let Some(socket) = self.transport.socket() else { return false };
        let peeked = SockRef::from(socket).peek(&mut [MaybeUninit::uninit()]);
        !is_would_block(&peeked)
    }
}

fn is_would_block(read: &io::Result<usize>) -> bool {
    matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

impl PushbackRead for UpstreamStream {
    fn unread(&mut self, bytes: &[u8]) {
        push_back(&mut self.unread, bytes);
    }
}

impl AsyncRead for UpstreamStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            return Pin::new(&mut self.transport).poll_read(context, buffer);
        }
        read_pushed_back(&mut self.unread, buffer);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for UpstreamStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.transport).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_shutdown(context)
    }
}
