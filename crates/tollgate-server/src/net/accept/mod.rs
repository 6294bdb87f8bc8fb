//! Accepting: sockets, the accept loop, and the workers that get the connections.

mod inherited;
mod listener;
pub(super) mod worker;

pub use inherited::{InheritError, InheritedSockets};
pub use listener::{BindError, Listener};

use super::Stats;
use crate::{Node, supervise::Supervisor};
use listener::BACKLOG;
use std::{
    future::poll_fn,
    io,
    net::{SocketAddr, TcpStream},
    panic::resume_unwind,
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering::Relaxed},
    task::Poll,
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    task::{JoinSet, coop::unconstrained},
    time::{Sleep, sleep},
};
use tollgate_policy::settings::Front;
use worker::Workers;

/// How long accepting pauses after it failed, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// How long accepting must not have failed for that to be past.
const RECOVERY_PERIOD: Duration = Duration::from_secs(10);

/// Where connections come from: a socket, or a test.
pub(crate) trait Accept {
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
pub(crate) struct Frontend {
    pub(crate) front: Front,
    /// Whether others accept from the same socket.
    pub(crate) is_shared: bool,
    pub(crate) index: usize,
    pub(crate) connections_max: usize,
    pub(crate) stats: Arc<Stats>,
    /// A connection has closed.
    pub(crate) connection_closed: Notify,
    /// Whose metrics show it too.
    pub(crate) node: Option<Arc<Node>>,
}

impl Frontend {
    pub(crate) fn opened(&self) {
        self.stats.open.fetch_add(1, Relaxed);
        Stats::add(&self.stats.accepted);
        if let Some(node) = &self.node {
            node.metrics.connection_opened(self.front);
        }
    }

    pub(crate) fn closed(&self) {
        self.stats.open.fetch_sub(1, Relaxed);
        self.connection_closed.notify_one();
        if let Some(node) = &self.node {
            node.metrics.connection_closed(self.front);
        }
    }

    fn accept_failed(&self) {
        Stats::add(&self.stats.accept_errors);
        if let Some(node) = &self.node {
            node.metrics.accept_error(self.front);
        }
    }
}

/// When to stop: how long what is under way may take from then on.
pub(crate) type Stop = watch::Receiver<Option<Duration>>;

/// Accepts from every source until `stop`. Where one of the loops panics, this does.
pub(crate) async fn accept_on<S: Accept + 'static>(
    sources: &[(Arc<S>, Arc<Frontend>)],
    workers: &Arc<Workers>,
    stop: &Stop,
    supervisor: &Supervisor,
) {
    let mut loops = JoinSet::new();
    for (source, door) in sources {
        let (source, door, workers, stop) =
            (source.clone(), door.clone(), workers.clone(), stop.clone());
        loops.spawn_local(async move { accept_all(&*source, door, &workers, stop).await });
    }
    supervisor.mark_running();
    while let Some(ended) = loops.join_next().await {
        if let Err(Ok(panic)) = ended.map_err(tokio::task::JoinError::try_into_panic) {
            resume_unwind(panic);
        }
    }
    // A server without sockets waits here.
    stop.clone().wait_for(Option::is_some).await.ok();
}

/// Hands connections to workers until `stop`, then those that the system has accepted already.
pub(crate) async fn accept_all(
    source: &impl Accept,
    door: Arc<Frontend>,
    workers: &Workers,
    mut stop: Stop,
) {
    let mut trouble = AcceptBackoff::default();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(Option::is_some) => break,
            () = trouble.wait_recovered() => {
                trouble.recovered(&door);
                continue;
            }
            accepted = source.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                trouble.pause = None;
                tokio::select! {
                    biased;
                    () = wait_for_capacity(&door, workers) => {}
                    _ = stop.wait_for(Option::is_some) => {}
                }
                workers.dispatch(&door, stream, peer);
            }
            Err(error) => {
                door.accept_failed();
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
    // What has come until now is to be known: the last look at the socket may have been before it
    // came.
    tokio::task::yield_now().await;
    for _ in 0..BACKLOG {
        match poll_once(unconstrained(source.accept())).await {
            Some(Ok((stream, peer))) => workers.dispatch(&door, stream, peer),
            Some(Err(error)) if is_connection_error(&error) => {}
            Some(Err(_)) | None => return,
        }
    }
}

/// Whether it was one connection that failed, and the next may not.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

/// Waits until there is room for one more, and makes some where a connection is idle.
async fn wait_for_capacity(door: &Frontend, workers: &Workers) {
    while door.stats.open() >= door.connections_max {
        workers.evict(Some(door.index));
        tokio::select! {
            () = door.connection_closed.notified() => {}
            () = sleep(PAUSE_MAX) => {}
        }
    }
}

/// What a future has to give without waiting.
async fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Whether accepting fails, and for how long it pauses. It says so when that begins and when it
/// ends, which is not yet when a single connection gets through: without descriptors they come and
/// go one by one.
#[derive(Debug, Default)]
struct AcceptBackoff {
    pause: Option<Duration>,
    /// Ends when the trouble does, as long as no more comes.
    recovery: Option<Pin<Box<Sleep>>>,
}

impl AcceptBackoff {
    /// How long to pause; `None` when it was the connection that failed, and the next may not.
    fn pause(&mut self, door: &Frontend, error: &io::Error) -> Option<Duration> {
        if is_connection_error(error) {
            return None;
        }
        let pause = match self.pause {
            Some(pause) => (pause * 2).min(PAUSE_MAX),
            None if self.recovery.is_some() => PAUSE_MIN,
            None => {
                let (front, open) = (door.front.name(), door.stats.open());
                tracing::warn!(front, open, %error, "cannot accept connections; closing idle ones and trying again");
                PAUSE_MIN
            }
        };
        self.pause = Some(pause);
        self.recovery = Some(Box::pin(sleep(RECOVERY_PERIOD)));
        self.pause
    }

    /// Waits until the trouble is past; for ever where there is none.
    async fn wait_recovered(&mut self) {
        match &mut self.recovery {
            Some(quiet) => quiet.await,
            None => std::future::pending().await,
        }
    }

    fn recovered(&mut self, door: &Frontend) {
        *self = Self::default();
        tracing::info!(front = door.front.name(), "accepting connections again");
    }
}
