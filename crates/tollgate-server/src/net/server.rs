//! Threads that serve, and how they end.

use super::{
    Handler, Limits, Listener, ListenerOptions, Protocol, Stats,
    accept::{Accept, Frontend, Stop, accept_all},
    worker::{
        ConnectionService, HttpService, ProtocolService, WorkerFrontend, WorkerInit, Workers,
    },
};
use crate::{
    Node,
    node::supervisor::{Attempt, Supervisor},
};
use std::{
    io, net::TcpListener, num::NonZero, panic::resume_unwind, rc::Rc, sync::Arc,
    thread::JoinHandle, time::Duration,
};
use tokio::{
    runtime,
    sync::{Notify, watch},
    task::{JoinSet, LocalSet},
};
use tollgate_policy::settings::Front;

/// Collects front ends; [`start_servers`](Self::start) serves them.
#[derive(Default)]
pub struct ServerBuilder {
    workers: Option<NonZero<usize>>,
    node: Option<Arc<Node>>,
    sockets: Vec<TcpListener>,
    fronts: Vec<WorkerFrontend>,
    prepare: Option<Arc<WorkerInit>>,
}

impl std::fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fronts: Vec<_> = self.fronts.iter().map(|front| front.door.front.name()).collect();
        f.debug_struct("ServerBuilder")
            .field("workers", &self.workers)
            .field("fronts", &fronts)
            .finish()
    }
}

impl ServerBuilder {
    /// How many threads serve; one for each core unless this says otherwise.
    pub fn workers(self, workers: NonZero<usize>) -> Self {
        Self { workers: Some(workers), ..self }
    }

    /// Counts connections in the metrics of this node as well, for the front ends that are added
    /// from here on.
    pub fn node(self, node: Arc<Node>) -> Self {
        Self { node: Some(node), ..self }
    }

    /// Has this done on each worker, in its runtime, before it serves.
    pub fn prepare(self, prepare: impl Fn() + Send + Sync + 'static) -> Self {
        Self { prepare: Some(Arc::new(prepare)), ..self }
    }

    /// Adds a front end. `handler` is called once on each worker.
    pub fn front<H: Handler>(
        self,
        listener: Listener,
        limits: Limits,
        handler: impl Fn() -> H + Send + Sync + 'static,
    ) -> Self {
        self.front_with(listener, limits, ListenerOptions::default(), handler)
    }

    /// Adds a front end whose connections begin as `intake` says.
    pub fn front_with<H: Handler>(
        self,
        listener: Listener,
        limits: Limits,
        intake: ListenerOptions,
        handler: impl Fn() -> H + Send + Sync + 'static,
    ) -> Self {
        self.add(listener, limits, move || {
            Box::new(HttpService { handler: Rc::new(handler()), intake: Rc::new(intake.clone()) })
        })
    }

    /// Adds a front end that speaks something other than HTTP. `protocol` is called once on each
    /// worker.
    pub fn protocol<P: Protocol>(
        self,
        listener: Listener,
        limits: Limits,
        protocol: impl Fn() -> P + Send + Sync + 'static,
    ) -> Self {
        self.add(listener, limits, move || Box::new(ProtocolService(Rc::new(protocol()))))
    }

    fn add(
        mut self,
        listener: Listener,
        limits: Limits,
        connect: impl Fn() -> Box<dyn ConnectionService> + Send + Sync + 'static,
    ) -> Self {
        let stats: Arc<Stats> = Arc::default();
        if let Some(node) = &self.node {
            node.metrics.register_stats(listener.front, stats.clone());
        }
        let door = Frontend {
            front: listener.front,
            is_shared: listener.is_shared,
            index: self.fronts.len(),
            connections_max: limits.connections_max.max(1),
            stats,
            connection_closed: Notify::new(),
            node: self.node.clone(),
        };
        self.fronts.push(WorkerFrontend {
            door: Arc::new(door),
            limits,
            make_service: Box::new(connect),
        });
        self.sockets.push(listener.socket);
        self
    }

    /// Starts to accept and to serve.
    ///
    /// # Errors
    ///
    /// When the system gives no threads or pollers.
    pub fn start(self) -> io::Result<FrontendServer> {
        let count = match self.workers {
            Some(count) => count.get(),
            None => std::thread::available_parallelism().map_or(1, NonZero::get),
        };
        let fronts: Arc<[WorkerFrontend]> = self.fronts.into();
        let mut workers = Workers::default();
        let mut threads = Vec::new();
        for _ in 0..count {
            threads.push(workers.start(fronts.clone(), self.node.clone(), self.prepare.clone())?);
        }
        let doors: Vec<_> = fronts.iter().map(|front| front.door.clone()).collect();
        let stats = doors.iter().map(|door| (door.front, door.stats.clone())).collect();
        let (stop, _) = watch::channel(None);
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let sources: io::Result<Vec<_>> = {
            let _inside = runtime.enter();
            let source = |(socket, door)| {
                let listener = tokio::net::TcpListener::from_std(socket)?;
                Ok((Arc::new(listener), door))
            };
            self.sockets.into_iter().zip(doors).map(source).collect()
        };
        let (sources, workers, stopping) = (sources?, Arc::new(workers), stop.subscribe());
        let subject = fronts.first().map_or("", |front| front.door.front.name());
        let supervisor = Supervisor::new(format!("{subject}-accept"), self.node);
        let accept = move || {
            supervisor.run(|turn| {
                if turn == Attempt::First || stopping.borrow().is_none() {
                    let accepting = accept_on(&sources, &workers, &stopping, &supervisor);
                    LocalSet::new().block_on(&runtime, accepting);
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

/// Accepts from every source until `stop`. Where one of the loops panics, this does.
pub(super) async fn accept_on<S: Accept + 'static>(
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

/// Front ends being served. Dropping it closes every connection at once; [`drain`](Self::drain)
/// lets them finish.
#[derive(Debug)]
pub struct FrontendServer {
    threads: Vec<JoinHandle<()>>,
    drain: DrainHandle,
    stats: Vec<(Front, Arc<Stats>)>,
}

impl FrontendServer {
    /// Nothing to serve yet.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// What happened to the connections of a front end.
    pub fn stats(&self, front: Front) -> Option<Arc<Stats>> {
        self.stats.iter().find(|(known, _)| *known == front).map(|(_, stats)| stats.clone())
    }

    /// A way to begin a drain from elsewhere.
    pub fn handle(&self) -> DrainHandle {
        self.drain.clone()
    }

    /// Stops to accept, lets what is under way finish, tells peers to go elsewhere, and closes what
    /// is left after `within`. Returns when all threads have ended.
    pub fn drain(self, within: Duration) {
        self.drain.begin(within);
        self.join();
    }

    /// Waits for a drain that something else begins.
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

/// Begins a server's end.
#[derive(Clone, Debug)]
pub struct DrainHandle {
    stop: Arc<watch::Sender<Option<Duration>>>,
}

impl DrainHandle {
    /// Stops to accept and gives requests under way this long. Only the first call counts.
    pub fn begin(&self, within: Duration) {
        self.stop.send_if_modified(|stop| match stop {
            Some(_) => false,
            None => {
                *stop = Some(within);
                true
            }
        });
    }
}
