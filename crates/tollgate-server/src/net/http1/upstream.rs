//! A connection to an upstream: its bytes, and those that were read too far.

use super::body::PushbackRead;
use crate::net::Transport;
use socket2::SockRef;
use std::{
    io,
    mem::MaybeUninit,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::coop::unconstrained,
};

/// A connection to an upstream that speaks HTTP/1.1.
#[derive(Debug)]
pub(crate) struct UpstreamStream {
    transport: Transport,
    /// Bytes that are to be read again.
    unread: Vec<u8>,
}

impl UpstreamStream {
    pub(crate) fn new(transport: Transport) -> Self {
        Self { transport, unread: Vec::new() }
    }

    /// An idle upstream says nothing; an end, or an answer to no question, is there to be read. As
    /// far as the runtime has heard: it costs no system call.
    pub(crate) fn is_stale(&mut self) -> bool {
        let mut byte = [0];
        let mut byte = ReadBuf::new(&mut byte);
        let read = std::future::poll_fn(|context| {
            Pin::new(&mut self.transport).poll_read(context, &mut byte)
        });
        // Also where a task has done so much already that the runtime would have it wait.
        let read = pin!(unconstrained(read)).poll(&mut Context::from_waker(Waker::noop()));
        read.is_ready() || !self.unread.is_empty()
    }

    /// Whether something is there to be read that the runtime may not have heard of yet. It costs a
    /// system call, and is worth it where the request would be lost.
    pub(crate) fn peek_is_stale(&self) -> bool {
        let Some(socket) = self.transport.socket() else { return false };
        let peeked = SockRef::from(socket).peek(&mut [MaybeUninit::uninit()]);
        !matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl PushbackRead for UpstreamStream {
    fn unread(&mut self, bytes: &[u8]) {
        self.unread.splice(0..0, bytes.iter().copied());
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
        let taken = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread[..taken]);
        self.unread.drain(..taken);
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
