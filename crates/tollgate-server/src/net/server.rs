//! Threads that serve, and how they end.

use super::{
    Handler, Limits, Listener, Stats,
    accept::{Door, accept_all},
    worker::{Front, Http, Workers},
};
use std::{
    io, net::TcpListener, num::NonZero, rc::Rc, sync::Arc, thread::JoinHandle, time::Duration,
};
use tokio::{
    runtime,
    sync::{Notify, watch},
    task::LocalSet,
};

/// Collects front ends; [`start`](Self::start) serves them.
#[derive(Default)]
pub struct Builder {
    workers: Option<NonZero<usize>>,
    sockets: Vec<TcpListener>,
    fronts: Vec<Front>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fronts: Vec<_> = self.fronts.iter().map(|front| front.door.name).collect();
        f.debug_struct("Builder").field("workers", &self.workers).field("fronts", &fronts).finish()
    }
}

impl Builder {
    /// How many threads serve; one for each core unless this says otherwise.
    pub fn workers(self, workers: NonZero<usize>) -> Self {
        Self { workers: Some(workers), ..self }
    }

    /// Adds a front end. `handler` is called once on each worker.
    pub fn front<H: Handler>(
        mut self,
        listener: Listener,
        limits: Limits,
        handler: impl Fn() -> H + Send + Sync + 'static,
    ) -> Self {
        let door = Door {
            name: listener.front,
            index: self.fronts.len(),
            connections_max: limits.connections_max.max(1),
            stats: Arc::default(),
            room: Notify::new(),
        };
        let connect = Box::new(move || Box::new(Http(Rc::new(handler()))) as Box<_>);
        self.fronts.push(Front { door: Arc::new(door), limits, connect });
        self.sockets.push(listener.socket);
        self
    }

    /// Starts to accept and to serve.
    pub fn start(self) -> io::Result<Server> {
        let count = match self.workers {
            Some(count) => count.get(),
            None => std::thread::available_parallelism().map_or(1, NonZero::get),
        };
        let fronts: Arc<[Front]> = self.fronts.into();
        let mut workers = Workers::default();
        let mut threads = Vec::new();
        for _ in 0..count {
            threads.push(workers.start(fronts.clone())?);
        }
        let doors: Vec<_> = fronts.iter().map(|front| front.door.clone()).collect();
        let stats = doors.iter().map(|door| (door.name, door.stats.clone())).collect();
        let (stop, _) = watch::channel(None);
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let sockets: Vec<_> = self.sockets.into_iter().zip(doors).collect();
        let stopping = stop.subscribe();
        let accept = move || {
            let accepting = accept_on(sockets, workers, stopping);
            LocalSet::new().block_on(&runtime, accepting);
        };
        threads.push(std::thread::Builder::new().name("accept".into()).spawn(accept)?);
        Ok(Server { threads, drain: Drain { stop: Arc::new(stop) }, stats })
    }
}

async fn accept_on(
    sockets: Vec<(TcpListener, Arc<Door>)>,
    workers: Workers,
    mut stop: watch::Receiver<Option<Duration>>,
) {
    let workers = Rc::new(workers);
    let mut loops = Vec::new();
    for (socket, door) in sockets {
        let (workers, stop) = (workers.clone(), stop.clone());
        loops.push(tokio::task::spawn_local(async move {
            match tokio::net::TcpListener::from_std(socket) {
                Ok(source) => accept_all(source, door, &workers, stop).await,
                Err(error) => {
                    tracing::error!(front = door.name, %error, "cannot wait for connections")
                }
            }
        }));
    }
    for accepting in loops {
        accepting.await.ok();
    }
    let within = stop.wait_for(Option::is_some).await.ok().and_then(|within| *within);
    workers.drain(within.unwrap_or_default());
}

/// Front ends being served. Dropping it closes every connection at once; [`drain`](Self::drain) lets them finish.
#[derive(Debug)]
pub struct Server {
    threads: Vec<JoinHandle<()>>,
    drain: Drain,
    stats: Vec<(&'static str, Arc<Stats>)>,
}

impl Server {
    /// Nothing to serve yet.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// What happened to the connections of a front end.
    pub fn stats(&self, front: &str) -> Option<Arc<Stats>> {
        self.stats.iter().find(|(name, _)| *name == front).map(|(_, stats)| stats.clone())
    }

    /// A way to begin a drain from elsewhere.
    pub fn handle(&self) -> Drain {
        self.drain.clone()
    }

    /// Stops to accept, lets what is under way finish, tells peers to go elsewhere, and closes what is left after
    /// `within`. Returns when all threads have ended.
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

impl Drop for Server {
    fn drop(&mut self) {
        self.drain.begin(Duration::ZERO);
        self.wait();
    }
}

/// Begins a server's end.
#[derive(Clone, Debug)]
pub struct Drain {
    stop: Arc<watch::Sender<Option<Duration>>>,
}

impl Drain {
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
