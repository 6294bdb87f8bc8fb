//! Upgrades: connects a client to an upstream until one side closes.

use super::connection::{ConnectionState, ConnectionStream};
use super::{Activity, ActivityStream, CoarseTimer};
use bytes::Bytes;
use std::{any::Any, fmt, future::poll_fn, pin::pin, rc::Rc, task::Poll, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy_bidirectional};

/// The upstream's end of an upgraded connection.
pub struct Tunnel {
    /// The stream to the upstream.
    pub stream: Box<dyn Duplex>,
    /// Bytes already read from the stream.
    pub buffered: Bytes,
    /// The time that both directions may be silent.
    pub idle: Duration,
    /// Dropped when the tunnel ends.
    pub guard: Option<Box<dyn Any>>,
}

/// A stream in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel").field("idle", &self.idle).finish_non_exhaustive()
    }
}

/// Copies bytes both ways until both sides have closed, one fails, or both are silent for too long.
/// `unparsed`: bytes that the client sent after its request.
pub(super) async fn run(
    client: ConnectionStream,
    unparsed: Vec<u8>,
    tunnel: Tunnel,
    mut timer: CoarseTimer,
    state: &ConnectionState,
) {
    let _guard = tunnel.guard;
    let activity: Rc<Activity> = Rc::default();
    let mut client = ActivityStream { inner: client, activity: activity.clone() };
    let mut upstream = ActivityStream { inner: tunnel.stream, activity: activity.clone() };
    let mut copying = pin!(async {
        upstream.write_all(&unparsed).await?;
        client.write_all(&tunnel.buffered).await?;
        upstream.flush().await?;
        client.flush().await?;
        copy_bidirectional(&mut client, &mut upstream).await
    });
    let mut seen = 0;
    let mut copying_or_idle = pin!(poll_fn(|context| {
        if copying.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let moved = activity.reads.get() + activity.writes.get();
        if moved != seen {
            seen = moved;
            timer.restart(tunnel.idle);
        }
        timer.poll(context, tunnel.idle)
    }));
    state.until_closed(|context| copying_or_idle.as_mut().poll(context)).await;
}
