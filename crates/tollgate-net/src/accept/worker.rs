//! Workers: threads with their own runtime that serve connections.

use super::ListenerState;
use crate::Limits;
use crate::connection::{Registration, Registry};
use crate::supervise::{Attempt, Supervisor, WatchedThreads};
use socket2::SockRef;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::{io, pin::pin, rc::Rc, thread::JoinHandle, time::Duration};
use tokio::runtime::{self, LocalOptions};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval, sleep};

/// The time that an ending worker waits for blocking tasks, which may hang in the file system.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Starts a task that serves a connection: `http_service` or `protocol_service` of
/// [`connection`](crate::connection).
pub(crate) type ConnectionService =
    dyn Fn(tokio::net::TcpStream, SocketAddr, Registration, OpenConnectionGuard);

/// A function that each worker runs before it serves.
pub(crate) type WorkerInit = dyn Fn() + Send + Sync;

/// Counts a connection as open until it is dropped.
pub(crate) struct OpenConnectionGuard {
    listener: Arc<ListenerState>,
    load: Arc<AtomicUsize>,
}

impl Drop for OpenConnectionGuard {
    fn drop(&mut self) {
        self.load.fetch_sub(1, Relaxed);
        self.listener.closed();
    }
}

enum WorkerMessage {
    Serve { stream: TcpStream, peer: SocketAddr, guard: OpenConnectionGuard },
    Evict(Option<usize>),
    Drain(Duration),
}

/// All workers of a server.
#[derive(Default)]
pub(crate) struct Workers {
    all: Vec<Worker>,
    evictions: AtomicUsize,
}

struct Worker {
    inbox: UnboundedSender<WorkerMessage>,
    /// The worker's connections, including those in the inbox.
    load: Arc<AtomicUsize>,
    supervisor: Arc<Supervisor>,
}

impl Workers {
    /// Starts another worker. A worker that panics loses its connections and restarts.
    pub(crate) fn start(
        &mut self,
        listeners: Arc<[Arc<ListenerState>]>,
        threads: Option<Arc<WatchedThreads>>,
        prepare: Option<Arc<WorkerInit>>,
    ) -> io::Result<JoinHandle<()>> {
        let (inbox, mut messages) = unbounded_channel();
        let name = format!("worker-{}", self.all.len());
        // The name of the first front end tells the workers of the admin API from the others.
        let front = listeners.first().map_or("", |listener| listener.front.name());
        let supervisor = Supervisor::watched(format!("{front}-{name}"), threads);
        let supervised = supervisor.clone();
        let (started_tx, started) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            supervised.run(|attempt| {
                // All senders are dropped, so no connection can come.
                if attempt == Attempt::Restart && messages.is_closed() {
                    return;
                }
                // The runtime is local to this attempt: a panic drops it with all its tasks.
                let runtime = runtime::Builder::new_current_thread()
                    .enable_all()
                    .build_local(LocalOptions::default());
                let runtime = match runtime {
                    Ok(runtime) => runtime,
                    Err(error) => {
                        let task = supervised.subject();
                        tracing::error!(task, %error, "cannot create a runtime for a worker");
                        return drop(started_tx.try_send(Err(error)));
                    }
                };
                started_tx.try_send(Ok(())).ok();
                runtime.block_on(async {
                    if let Some(prepare) = &prepare {
                        prepare();
                    }
                    tokio::select! {
                        () = run_worker(&listeners, &mut messages, &supervised) => {}
                        () = supervised.answer_heartbeats() => {}
                    }
                });
                runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
            });
        })?;
        // A closed channel means that the thread panicked, which is already reported.
        started.recv().unwrap_or(Ok(()))?;
        self.all.push(Worker { inbox, load: Arc::default(), supervisor });
        Ok(thread)
    }

    /// Gives a connection to the worker with the fewest connections. A restarting worker gets a
    /// connection only if no other worker runs.
    pub(crate) fn dispatch(
        &self,
        listener: &Arc<ListenerState>,
        stream: TcpStream,
        peer: SocketAddr,
    ) {
        let open = self.all.iter().filter(|worker| !worker.inbox.is_closed());
        let load = |worker: &&Worker| (!worker.supervisor.is_running(), worker.load.load(Relaxed));
        let Some(worker) = open.min_by_key(load) else { return };
        worker.load.fetch_add(1, Relaxed);
        listener.opened();
        let guard = OpenConnectionGuard { listener: listener.clone(), load: worker.load.clone() };
        // Fails only if the worker has ended. Dropping the stream closes the connection.
        worker.inbox.send(WorkerMessage::Serve { stream, peer, guard }).ok();
    }

    /// Makes the next worker, round robin, evict a connection: of the listener with this index, or
    /// of any listener.
    pub(crate) fn evict(&self, listener: Option<usize>) {
        let turn = self.evictions.fetch_add(1, Relaxed);
        if let Some(worker) = self.all.get(turn % self.all.len().max(1)) {
            worker.inbox.send(WorkerMessage::Evict(listener)).ok();
        }
    }

    pub(crate) fn drain(&self, within: Duration) {
        for worker in &self.all {
            worker.inbox.send(WorkerMessage::Drain(within)).ok();
        }
    }
}

/// Serves connections until a drain, then waits for the drain to finish.
async fn run_worker(
    listeners: &[Arc<ListenerState>],
    messages: &mut UnboundedReceiver<WorkerMessage>,
    supervisor: &Supervisor,
) {
    let tick = listeners.iter().map(|listener| listener.limits.tick).min();
    let registry = Rc::new(Registry::new(tick.unwrap_or(Limits::default().tick)));
    let services: Vec<_> = listeners.iter().map(|listener| (listener.make_service)()).collect();
    supervisor.mark_running();
    let serve = |stream: TcpStream, peer, guard: OpenConnectionGuard| {
        let Some(service) = services.get(guard.listener.index) else { return };
        // These calls fail only on a closed connection.
        stream.set_nodelay(true).ok();
        if let Some(bytes) = guard.listener.limits.send_buffer_bytes {
            SockRef::from(&stream).set_send_buffer_size(bytes).ok();
        }
        if let Ok(stream) = tokio::net::TcpStream::from_std(stream) {
            service(stream, peer, registry.register(&guard.listener), guard);
        }
    };
    // The drain keeps this ticker: a second one would tick at once, so deadlines would be early.
    let mut ticks = pin!(run_ticks(&registry));
    let within = loop {
        tokio::select! {
            message = messages.recv() => match message {
                Some(WorkerMessage::Serve { stream, peer, guard }) => serve(stream, peer, guard),
                Some(WorkerMessage::Evict(listener)) => registry.evict(listener),
                Some(WorkerMessage::Drain(within)) => break within,
                None => break Duration::ZERO,
            },
            () = &mut ticks => {}
        }
    };
    registry.drain();
    tokio::select! {
        biased;
        () = registry.wait_until_empty() => {}
        () = &mut ticks => {}
        () = sleep(within) => registry.count_cut(),
    }
}

/// Advances the registry's ticks for ever. Sleeps while there are no connections.
pub(crate) async fn run_ticks(registry: &Registry) {
    let mut ticks = interval(registry.tick());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        registry.wait_until_occupied().await;
        ticks.tick().await;
        registry.advance_tick();
    }
}
