//! Accepting: sockets, the accept loop, and the workers that serve the connections.

mod inherited;
mod listener;
pub(super) mod worker;

pub use inherited::{InheritError, InheritedSockets};
pub use listener::{BindError, Listener};

use super::{Limits, Stats};
use crate::supervise::Supervisor;
use listener::BACKLOG;
use std::future::{pending, poll_fn};
use std::net::{SocketAddr, TcpStream};
use std::pin::{Pin, pin};
use std::sync::{Arc, atomic::Ordering::Relaxed};
use std::{io, panic::resume_unwind, task::Poll, time::Duration};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinSet, coop::unconstrained};
use tokio::time::{Sleep, sleep};
use tollgate_policy::settings::Front;
use worker::{ConnectionService, Workers};

/// The shortest pause after a failed accept. `PAUSE_MAX` is the longest.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// Accepting has recovered after this time without a failure.
const RECOVERY_PERIOD: Duration = Duration::from_secs(10);

/// A source of connections: a socket, or a test.
pub(super) trait Accept {
    fn accept(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>>;
}

impl Accept for tokio::net::TcpListener {
    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.accept().await?;
        // The worker registers the stream with its own runtime.
        Ok((stream.into_std()?, peer))
    }
}

/// One listener of a server: its front end, limits and counters.
pub(crate) struct ListenerState {
    pub(super) front: Front,
    /// Whether other processes may accept from this socket.
    pub(super) is_shared: bool,
    /// Its index among the listeners of the server.
    pub(super) index: usize,
    pub(super) limits: Limits,
    pub(super) stats: Arc<Stats>,
    pub(super) connection_closed: Notify,
    pub(super) make_service: Box<dyn Fn() -> Box<ConnectionService> + Send + Sync>,
}

impl ListenerState {
    pub(super) fn opened(&self) {
        self.stats.open.fetch_add(1, Relaxed);
        Stats::add(&self.stats.accepted);
    }

    pub(super) fn closed(&self) {
        self.stats.open.fetch_sub(1, Relaxed);
        self.connection_closed.notify_one();
    }

    /// Waits until one more connection is allowed, and evicts idle ones meanwhile.
    async fn wait_for_capacity(&self, workers: &Workers) {
        while self.stats.open() >= self.limits.connections_max.max(1) {
            workers.evict(Some(self.index));
            tokio::select! {
                () = self.connection_closed.notified() => {}
                () = sleep(PAUSE_MAX) => {}
            }
        }
    }
}

/// Set when the server stops: the time that requests in flight have from then on.
pub(super) type Stop = watch::Receiver<Option<Duration>>;

/// Accepts from every source until `stop`. Propagates a panic of any loop.
pub(super) async fn accept_on<S: Accept + 'static>(
    sources: &[(Arc<S>, Arc<ListenerState>)],
    workers: &Arc<Workers>,
    stop: &Stop,
    supervisor: &Supervisor,
) {
    let mut loops = JoinSet::new();
    for (source, listener) in sources.iter().cloned() {
        let (workers, stop) = (workers.clone(), stop.clone());
        loops.spawn_local(async move { accept_all(&*source, listener, &workers, stop).await });
    }
    supervisor.mark_running();
    while let Some(ended) = loops.join_next().await {
        if let Err(Ok(panic)) = ended.map_err(tokio::task::JoinError::try_into_panic) {
            resume_unwind(panic);
        }
    }
    // A server without sockets only waits for the stop.
    stop.clone().wait_for(Option::is_some).await.ok();
}

/// Hands connections to workers until `stop`, then those left in the backlog.
pub(super) async fn accept_all(
    source: &impl Accept,
    listener: Arc<ListenerState>,
    workers: &Workers,
    mut stop: Stop,
) {
    let mut backoff = AcceptBackoff::default();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(Option::is_some) => break,
            () = backoff.wait_recovered() => {
                backoff = AcceptBackoff::default();
                tracing::info!(front = listener.front.name(), "accepting connections again");
                continue;
            }
            accepted = source.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                backoff.pause = None;
                tokio::select! {
                    biased;
                    () = listener.wait_for_capacity(workers) => {}
                    _ = stop.wait_for(Option::is_some) => {}
                }
                workers.dispatch(&listener, stream, peer);
            }
            Err(error) => {
                Stats::add(&listener.stats.accept_errors);
                let Some(pause) = backoff.next_pause(&listener, &error) else { continue };
                workers.evict(None);
                tokio::select! {
                    biased;
                    _ = stop.wait_for(Option::is_some) => break,
                    () = sleep(pause) => {}
                }
            }
        }
    }
    // The next process accepts the backlog of a shared socket.
    if !listener.is_shared {
        serve_backlog(source, &listener, workers).await;
    }
}

async fn serve_backlog(source: &impl Accept, listener: &Arc<ListenerState>, workers: &Workers) {
    // Lets the runtime poll the socket: connections may have arrived since its last poll.
    tokio::task::yield_now().await;
    for _ in 0..BACKLOG {
        let mut accepting = pin!(unconstrained(source.accept()));
        match poll_fn(|context| Poll::Ready(accepting.as_mut().poll(context))).await {
            Poll::Ready(Ok((stream, peer))) => workers.dispatch(listener, stream, peer),
            Poll::Ready(Err(error)) if is_connection_error(&error) => {}
            _ => return,
        }
    }
}

/// Whether the error concerns one connection only, so that the next one may succeed.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

/// Pauses between failed attempts to accept. Logs the first failure and the recovery. One success
/// is no recovery: without descriptors, connections get through one by one.
#[derive(Debug, Default)]
struct AcceptBackoff {
    pause: Option<Duration>,
    /// Elapses when accepting has recovered.
    recovery: Option<Pin<Box<Sleep>>>,
}

impl AcceptBackoff {
    /// The pause before the next attempt; `None` after a [connection error](is_connection_error).
    fn next_pause(&mut self, listener: &ListenerState, error: &io::Error) -> Option<Duration> {
        if is_connection_error(error) {
            return None;
        }
        if self.recovery.is_none() {
            let (front, open) = (listener.front.name(), listener.stats.open());
            tracing::warn!(front, open, %error, "cannot accept connections; closing idle ones and trying again");
        }
        self.pause = Some(self.pause.map_or(PAUSE_MIN, |pause| (pause * 2).min(PAUSE_MAX)));
        self.recovery = Some(Box::pin(sleep(RECOVERY_PERIOD)));
        self.pause
    }

    /// Returns when accepting has recovered; never while accepting works.
    async fn wait_recovered(&mut self) {
        match &mut self.recovery {
            Some(recovery) => recovery.await,
            None => pending().await,
        }
    }
}
