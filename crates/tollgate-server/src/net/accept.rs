//! Accepting: a loop that only ends when it is told to.

use super::{Stats, listener::BACKLOG, worker::Workers};
use crate::Node;
use std::{
    future::poll_fn,
    io,
    net::{SocketAddr, TcpStream},
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering::Relaxed},
    task::Poll,
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    task::coop::unconstrained,
    time::{Sleep, sleep},
};
use tollgate_policy::settings::Front;

/// How long accepting pauses after it failed, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// How long accepting must not have failed for that to be past.
const QUIET: Duration = Duration::from_secs(10);

/// Where connections come from: a socket, or a test.
pub(super) trait Accept {
    fn accept(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>>;
}

impl Accept for tokio::net::TcpListener {
    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.accept().await?;
        // A worker waits for it with its own poller.
        Ok((stream.into_std()?, peer))
    }
}

/// One front end, as its accept loop sees it.
pub(super) struct Door {
    pub(super) front: Front,
    /// Whether others accept from the same socket.
    pub(super) is_shared: bool,
    pub(super) index: usize,
    pub(super) connections_max: usize,
    pub(super) stats: Arc<Stats>,
    /// A connection has closed.
    pub(super) room: Notify,
    /// Whose metrics show it too.
    pub(super) node: Option<Arc<Node>>,
}

impl Door {
    pub(super) fn opened(&self) {
        self.stats.open.fetch_add(1, Relaxed);
        Stats::add(&self.stats.accepted);
        if let Some(node) = &self.node {
            node.metrics.connection_opened(self.front);
        }
    }

    pub(super) fn closed(&self) {
        self.stats.open.fetch_sub(1, Relaxed);
        self.room.notify_one();
        if let Some(node) = &self.node {
            node.metrics.connection_closed(self.front);
        }
    }

    fn failed(&self) {
        Stats::add(&self.stats.accept_errors);
        if let Some(node) = &self.node {
            node.metrics.accept_error(self.front);
        }
    }
}

/// When to stop: how long what is under way may take from then on.
pub(super) type Stop = watch::Receiver<Option<Duration>>;

/// Hands connections to workers until `stop`, then those that the system has accepted already.
pub(super) async fn accept_all(
    source: &impl Accept,
    door: Arc<Door>,
    workers: &Workers,
    mut stop: Stop,
) {
    let mut trouble = Trouble::default();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(Option::is_some) => break,
            () = trouble.quiet() => {
                trouble.is_over(&door);
                continue;
            }
            accepted = source.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                trouble.pause = None;
                tokio::select! {
                    biased;
                    () = room(&door, workers) => {}
                    _ = stop.wait_for(Option::is_some) => {}
                }
                workers.hand(&door, stream, peer);
            }
            Err(error) => {
                door.failed();
                let Some(pause) = trouble.pause(&door, &error) else { continue };
                workers.evict(None);
                tokio::select! {
                    biased;
                    _ = stop.wait_for(Option::is_some) => break,
                    () = sleep(pause) => {}
                }
            }
        }
    }
    if door.is_shared {
        // Whoever takes over has time for them.
        return;
    }
    // What has come until now is to be known: the last look at the socket may have been before it came.
    tokio::task::yield_now().await;
    for _ in 0..BACKLOG {
        match now(unconstrained(source.accept())).await {
            Some(Ok((stream, peer))) => workers.hand(&door, stream, peer),
            Some(Err(error)) if is_of_one(&error) => {}
            Some(Err(_)) | None => return,
        }
    }
}

/// Whether it was one connection that failed, and the next may not.
fn is_of_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

/// Waits until there is room for one more, and makes some where a connection is idle.
async fn room(door: &Door, workers: &Workers) {
    while door.stats.open() >= door.connections_max {
        workers.evict(Some(door.index));
        tokio::select! {
            () = door.room.notified() => {}
            () = sleep(PAUSE_MAX) => {}
        }
    }
}

/// What a future has to give without waiting.
async fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Whether accepting fails, and for how long it pauses. It says so when that begins and when it ends, which is not yet
/// when a single connection gets through: without descriptors they come and go one by one.
#[derive(Debug, Default)]
struct Trouble {
    pause: Option<Duration>,
    /// Ends when the trouble does, as long as no more comes.
    quiet: Option<Pin<Box<Sleep>>>,
}

impl Trouble {
    /// How long to pause; `None` when it was the connection that failed, and the next may not.
    fn pause(&mut self, door: &Door, error: &io::Error) -> Option<Duration> {
        if is_of_one(error) {
            return None;
        }
        let pause = match self.pause {
            Some(pause) => (pause * 2).min(PAUSE_MAX),
            None if self.quiet.is_some() => PAUSE_MIN,
            None => {
                let (front, open) = (door.front.name(), door.stats.open());
                tracing::warn!(front, open, %error, "cannot accept connections; closing idle ones and trying again");
                PAUSE_MIN
            }
        };
        self.pause = Some(pause);
        self.quiet = Some(Box::pin(sleep(QUIET)));
        self.pause
    }

    /// Waits until the trouble is past; for ever where there is none.
    async fn quiet(&mut self) {
        match &mut self.quiet {
            Some(quiet) => quiet.await,
            None => std::future::pending().await,
        }
    }

    fn is_over(&mut self, door: &Door) {
        *self = Self::default();
        tracing::info!(front = door.front.name(), "accepting connections again");
    }
}
