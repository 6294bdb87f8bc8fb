//! A thread that serves connections.

use super::{
    Handler, Limits, ListenerOptions, Protocol, ProtocolConnection,
    accept::Frontend,
    connection,
    life::FrontendContext,
    registry::{Registration, Registry},
};
use crate::{
    Node,
    node::supervisor::{Attempt, Supervisor},
};
use std::{
    io,
    net::{SocketAddr, TcpStream},
    pin::pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread::JoinHandle,
    time::Duration,
};
use tokio::{
    runtime::{self, LocalOptions, LocalRuntime},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::{MissedTickBehavior, interval, sleep},
};

/// How long a worker's end waits for what its handlers began on other threads.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// One front end, as a worker sees it.
pub(super) struct WorkerFrontend {
    pub(super) door: Arc<Frontend>,
    pub(super) limits: Limits,
    pub(super) make_service: Box<dyn Fn() -> Box<dyn ConnectionService> + Send + Sync>,
}

/// What a worker does before it serves.
pub(super) type WorkerInit = dyn Fn() + Send + Sync;

/// Starts serving a connection, whatever it speaks.
pub(super) trait ConnectionService {
    fn serve(
        &self,
        stream: tokio::net::TcpStream,
        peer: SocketAddr,
        place: Registration,
        count: OpenConnectionGuard,
    );
}

/// A handler of HTTP.
pub(super) struct HttpService<H> {
    pub(super) handler: Rc<H>,
    pub(super) intake: Rc<ListenerOptions>,
}

impl<H: Handler> ConnectionService for HttpService<H> {
    fn serve(
        &self,
        stream: tokio::net::TcpStream,
        peer: SocketAddr,
        place: Registration,
        count: OpenConnectionGuard,
    ) {
        let (handler, intake) = (self.handler.clone(), self.intake.clone());
        tokio::task::spawn_local(async move {
            let _count = count;
            connection::serve(stream, peer, handler, intake, place).await;
        });
    }
}

/// A protocol that is not HTTP.
pub(super) struct ProtocolService<P>(pub(super) Rc<P>);

impl<P: Protocol> ConnectionService for ProtocolService<P> {
    fn serve(
        &self,
        stream: tokio::net::TcpStream,
        peer: SocketAddr,
        place: Registration,
        count: OpenConnectionGuard,
    ) {
        let protocol = self.0.clone();
        tokio::task::spawn_local(async move {
            let _count = count;
            protocol.serve(ProtocolConnection::new(stream, place), peer).await;
        });
    }
}

/// A connection that counts as open until this is dropped.
pub(super) struct OpenConnectionGuard {
    door: Arc<Frontend>,
    load: Arc<AtomicUsize>,
}

impl Drop for OpenConnectionGuard {
    fn drop(&mut self) {
        self.load.fetch_sub(1, Relaxed);
        self.door.closed();
    }
}

enum WorkerMessage {
    Serve { stream: TcpStream, peer: SocketAddr, count: OpenConnectionGuard },
    Evict(Option<usize>),
    Drain(Duration),
}

/// The workers, as those see them who send them something.
#[derive(Default)]
pub(super) struct Workers {
    all: Vec<Worker>,
    evictions: AtomicUsize,
}

struct Worker {
    inbox: UnboundedSender<WorkerMessage>,
    /// Its connections, those on their way included.
    load: Arc<AtomicUsize>,
    supervisor: Arc<Supervisor>,
}

impl Workers {
    /// Starts another one. One that panics loses its connections, is missing on `node`, and begins
    /// again.
    pub(super) fn start(
        &mut self,
        fronts: Arc<[WorkerFrontend]>,
        node: Option<Arc<Node>>,
        prepare: Option<Arc<WorkerInit>>,
    ) -> io::Result<JoinHandle<()>> {
        let (inbox, mut messages) = unbounded_channel();
        let name = format!("worker-{}", self.all.len());
        // The traffic's workers and those of the admin API are counted apart.
        let front = fronts.first().map_or("", |front| front.door.front.name());
        let supervisor = Arc::new(Supervisor::new(format!("{front}-{name}"), node));
        let supervised = supervisor.clone();
        let (told, made) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            supervised.run(|turn| {
                // Nobody is left to be served when all have gone who could say so.
                if turn == Attempt::Restart && messages.is_closed() {
                    return;
                }
                // It stays on the thread that makes it, and goes with all that runs on it when the
                // work breaks off.
                let runtime = match runtime() {
                    Ok(runtime) => runtime,
                    Err(error) => {
                        tracing::error!(task = supervised.subject(), %error, "no runtime for a worker");
                        return drop(told.try_send(Err(error)));
                    }
                };
                told.try_send(Ok(())).ok();
                runtime.block_on(async {
                    if let Some(prepare) = &prepare {
                        prepare();
                    }
                    run_worker(&fronts, &mut messages, &supervised).await;
                });
                // What a handler does on other threads may be stuck in the file system.
                runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
            });
        })?;
        // Whoever ended without a word has panicked, and been heard.
        made.recv().unwrap_or(Ok(()))?;
        self.all.push(Worker { inbox, load: Arc::default(), supervisor });
        Ok(thread)
    }

    /// Gives a connection to the worker with the fewest. One that broke off has none, and gets some
    /// only when no other is there.
    pub(super) fn dispatch(&self, door: &Arc<Frontend>, stream: TcpStream, peer: SocketAddr) {
        let there = self.all.iter().filter(|worker| !worker.inbox.is_closed());
        let burden =
            |worker: &&Worker| (!worker.supervisor.is_running(), worker.load.load(Relaxed));
        let Some(worker) = there.min_by_key(burden) else { return };
        worker.load.fetch_add(1, Relaxed);
        door.opened();
        let count = OpenConnectionGuard { door: door.clone(), load: worker.load.clone() };
        // Only a worker that has ended takes nothing, and then the connection is closed here.
        worker.inbox.send(WorkerMessage::Serve { stream, peer, count }).ok();
    }

    /// Has a worker close an idle connection, another worker each time.
    pub(super) fn evict(&self, front: Option<usize>) {
        let turn = self.evictions.fetch_add(1, Relaxed);
        if let Some(worker) = self.all.get(turn % self.all.len().max(1)) {
            worker.inbox.send(WorkerMessage::Evict(front)).ok();
        }
    }

    /// Has every worker end, within this time.
    pub(super) fn drain(&self, within: Duration) {
        for worker in &self.all {
            worker.inbox.send(WorkerMessage::Drain(within)).ok();
        }
    }
}

fn runtime() -> io::Result<LocalRuntime> {
    runtime::Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
}

/// A worker's life: connections in, deadlines, and an end.
async fn run_worker(
    fronts: &[WorkerFrontend],
    messages: &mut UnboundedReceiver<WorkerMessage>,
    supervisor: &Supervisor,
) {
    let tick = fronts.iter().map(|front| front.limits.tick).min().unwrap_or(Limits::default().tick);
    let registry = Rc::new(Registry::new(tick));
    let doors: Vec<(Rc<FrontendContext>, Box<dyn ConnectionService>)> = fronts
        .iter()
        .map(|WorkerFrontend { door, limits, make_service: connect }| {
            let stats = door.stats.clone();
            (
                Rc::new(FrontendContext { index: door.index, limits: limits.clone(), stats }),
                connect(),
            )
        })
        .collect();
    supervisor.mark_running();
    let serve = |stream: TcpStream, peer, count: OpenConnectionGuard| {
        let Some((terms, door)) = doors.get(count.door.index) else { return };
        // Either fails only on a connection that is gone already.
        stream.set_nodelay(true).ok();
        if let Ok(stream) = tokio::net::TcpStream::from_std(stream) {
            door.serve(stream, peer, registry.register(terms), count);
        }
    };
    // One for both halves of this life: another would begin with a tick at once, and every deadline
    // would be early by it.
    let mut ticks = pin!(run_ticks(&registry));
    let within = loop {
        tokio::select! {
            message = messages.recv() => match message {
                Some(WorkerMessage::Serve { stream, peer, count }) => serve(stream, peer, count),
                Some(WorkerMessage::Evict(front)) => registry.evict(front),
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

/// Lets time pass for the connections, for ever; while there are none, nothing has to wake up.
pub(super) async fn run_ticks(registry: &Registry) {
    let mut ticks = interval(registry.tick());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        registry.wait_until_occupied().await;
        ticks.tick().await;
        registry.advance_tick();
    }
}
