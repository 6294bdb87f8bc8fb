//! Two connections joined after an upgrade: what comes by one goes by the other, whatever it is.

use super::{
    CoarseTimer,
    connection::{ConnectionState, ConnectionStream},
};
use bytes::Bytes;
use std::{
    any::Any,
    cell::Cell,
    fmt,
    future::poll_fn,
    io,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf, copy_bidirectional};

/// The other end.
pub struct Tunnel {
    /// Its stream.
    pub stream: Box<dyn Duplex>,
    /// What has come by it already.
    pub buffered: Bytes,
    /// How long nothing may pass in either direction.
    pub idle: Duration,
    /// Dropped when the tunnel ends.
    pub guard: Option<Box<dyn Any>>,
}

/// What can be read and written.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel").field("idle", &self.idle).finish_non_exhaustive()
    }
}

/// Passes bytes on until both sides have ended, one breaks off, or nothing passes for too long.
pub(crate) async fn run(
    client: ConnectionStream,
    left: Vec<u8>,
    tunnel: Tunnel,
    mut alarm: CoarseTimer,
    life: &ConnectionState,
) {
    let _keep = tunnel.guard;
    let activity = Rc::new(Cell::new(0));
    let mut near = ActivityStream { inner: client, activity: activity.clone() };
    let mut far = ActivityStream { inner: tunnel.stream, activity: activity.clone() };
    let passing = async {
        far.write_all(&left).await?;
        near.write_all(&tunnel.buffered).await?;
        far.flush().await?;
        near.flush().await?;
        copy_bidirectional(&mut near, &mut far).await
    };
    let mut passing = pin!(passing);
    let mut seen = 0;
    let watched = poll_fn(|context| {
        if passing.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        if activity.get() != seen {
            seen = activity.get();
            alarm.restart(tunnel.idle);
        }
        alarm.poll(context, tunnel.idle)
    });
    let mut watched = pin!(watched);
    life.until_closed(|context| watched.as_mut().poll(context)).await;
}

/// A stream that counts what comes and goes by it.
struct ActivityStream<T> {
    inner: T,
    activity: Rc<Cell<u64>>,
}

impl<T> ActivityStream<T> {
    fn record_activity(&self) {
        self.activity.set(self.activity.get().wrapping_add(1));
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for ActivityStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        self.record_activity();
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
        self.record_activity();
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
