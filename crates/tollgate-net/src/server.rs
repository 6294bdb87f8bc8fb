//! Servers: the threads that serve a set of front ends, and their shutdown.

use super::accept::worker::{ConnectionService, WorkerInit, Workers};
use super::accept::{ListenerState, accept_on};
use super::connection::{http_service, protocol_service};
use super::{Handler, Limits, Listener, ListenerOptions, Protocol, Stats};
use crate::supervise::{Attempt, Supervisor, WatchedThreads};
use std::{fmt, io, net::TcpListener, num::NonZero, sync::Arc, thread::JoinHandle, time::Duration};
use tokio::runtime;
use tokio::sync::{Notify, watch};
use tokio::task::LocalSet;
use tollgate_policy::settings::Front;

/// Collects front ends; [`start`](Self::start) serves them.
#[derive(Default)]
pub struct ServerBuilder {
    workers: Option<NonZero<usize>>,
    threads: Option<Arc<WatchedThreads>>,
    sockets: Vec<TcpListener>,
    listeners: Vec<Arc<ListenerState>>,
    prepare: Option<Arc<WorkerInit>>,
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("workers", &self.workers).finish_non_exhaustive()
    }
}

impl ServerBuilder {
    /// Sets the number of worker threads. Default: one for each core.
    pub fn workers(self, workers: NonZero<usize>) -> Self {
        Self { workers: Some(workers), ..self }
    }

    /// Reports threads that panic or are stuck to `threads`.
    pub fn watched_by(self, threads: Arc<WatchedThreads>) -> Self {
        Self { threads: Some(threads), ..self }
    }

    /// Calls `prepare` on each worker, in its runtime, before the worker serves.
    pub fn prepare(self, prepare: impl Fn() + Send + Sync + 'static) -> Self {
        Self { prepare: Some(Arc::new(prepare)), ..self }
    }

    /// Adds an HTTP front end. `handler` is called once on each worker.
    pub fn front<H: Handler>(
        self,
        listener: Listener,
        limits: Limits,
        handler: impl Fn() -> H + Send + Sync + 'static,
    ) -> Self {
        self.front_with(listener, limits, ListenerOptions::default(), handler)
    }

    /// Adds an HTTP front end with options for its listener.
    pub fn front_with<H: Handler>(
        self,
        listener: Listener,
        limits: Limits,
        options: ListenerOptions,
        handler: impl Fn() -> H + Send + Sync + 'static,
    ) -> Self {
        self.add(listener, limits, move || http_service(handler(), options))
    }

    /// Adds a front end of another protocol. `protocol` is called once on each worker.
    pub fn protocol<P: Protocol>(
        self,
        listener: Listener,
        limits: Limits,
        protocol: impl Fn() -> P + Send + Sync + 'static,
    ) -> Self {
        self.add(listener, limits, move || protocol_service(protocol()))
    }

    fn add(
        mut self,
        listener: Listener,
        limits: Limits,
        make_service: impl Fn() -> Box<ConnectionService> + Send + Sync + 'static,
    ) -> Self {
        let stats: Arc<Stats> = Arc::default();
        self.listeners.push(Arc::new(ListenerState {
            front: listener.front,
            is_shared: listener.is_shared,
            index: self.listeners.len(),
            limits,
            stats,
            connection_closed: Notify::new(),
            make_service: Box::new(make_service),
        }));
        self.sockets.push(listener.socket);
        self
    }

    /// Starts accepting and serving.
    ///
    /// # Errors
    ///
    /// When threads or pollers cannot be created.
    pub fn start(self) -> io::Result<FrontendServer> {
        let count = match self.workers {
            Some(count) => count.get(),
            None => std::thread::available_parallelism().map_or(1, NonZero::get),
        };
        let listeners: Arc<[Arc<ListenerState>]> = self.listeners.into();
        let mut workers = Workers::default();
        let mut threads = Vec::new();
        for _ in 0..count {
            let (watched, prepare) = (self.threads.clone(), self.prepare.clone());
            threads.push(workers.start(listeners.clone(), watched, prepare)?);
        }
        let stats =
            listeners.iter().map(|listener| (listener.front, listener.stats.clone())).collect();
        let subject = listeners.first().map_or("", |listener| listener.front.name());
        let supervisor = Supervisor::watched(format!("{subject}-accept"), self.threads);
        let (stop, stopping) = watch::channel(None);
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let sources: io::Result<Vec<_>> = {
            let _inside = runtime.enter();
            let source = |(socket, listener): (_, &Arc<ListenerState>)| {
                Ok((Arc::new(tokio::net::TcpListener::from_std(socket)?), listener.clone()))
            };
            self.sockets.into_iter().zip(&*listeners).map(source).collect()
        };
        let (sources, workers) = (sources?, Arc::new(workers));
        let accept = move || {
            supervisor.run(|attempt| {
                if attempt == Attempt::First || stopping.borrow().is_none() {
                    LocalSet::new().block_on(&runtime, async {
                        tokio::select! {
                            () = accept_on(&sources, &workers, &stopping, &supervisor) => {}
                            () = supervisor.answer_heartbeats() => {}
                        }
                    });
                }
            });
            drop(sources);
            let within = *stopping.borrow();
            workers.drain(within.unwrap_or_default());
        };
        threads.push(std::thread::Builder::new().name("accept".into()).spawn(accept)?);
        Ok(FrontendServer { threads, drain: DrainHandle { stop: Arc::new(stop) }, stats })
    }
}

/// Running front ends. Dropping this closes all connections immediately; [`drain`](Self::drain)
/// lets requests in flight finish.
#[derive(Debug)]
pub struct FrontendServer {
    threads: Vec<JoinHandle<()>>,
    drain: DrainHandle,
    stats: Vec<(Front, Arc<Stats>)>,
}

impl FrontendServer {
    /// Creates a builder without front ends.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// The connection counters of each front end.
    pub fn stats(&self) -> &[(Front, Arc<Stats>)] {
        &self.stats
    }

    /// A handle that can start a drain from another thread.
    pub fn handle(&self) -> DrainHandle {
        self.drain.clone()
    }

    /// Stops accepting, lets requests in flight finish, and closes remaining connections after
    /// `within`. Returns when all threads have ended.
    pub fn drain(self, within: Duration) {
        self.drain.begin(within);
        self.join();
    }

    /// Waits for a drain started through a handle.
    pub fn join(mut self) {
        self.wait();
    }

    fn wait(&mut self) {
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
    }
}

impl Drop for FrontendServer {
    fn drop(&mut self) {
        self.drain.begin(Duration::ZERO);
        self.wait();
    }
}

/// Starts the drain of a server.
#[derive(Clone, Debug)]
pub struct DrainHandle {
    stop: Arc<watch::Sender<Option<Duration>>>,
}

impl DrainHandle {
    /// Stops accepting, and limits requests in flight to this time. Only the first call counts.
    pub fn begin(&self, within: Duration) {
        self.stop.send_if_modified(|stop| {
            let is_first = stop.is_none();
            stop.get_or_insert(within);
            is_first
        });
    }
}
