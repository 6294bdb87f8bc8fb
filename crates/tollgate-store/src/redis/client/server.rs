//! One server: its queues, its connections and its circuit breaker.

use super::connection::{Link, ScriptCall};
use super::control::CachedConnection;
use super::dial::{Dialer, ServerLocation};
use super::endpoint::ServerAddress;
use super::failure::{Failure, FailureAction};
use super::health::{Breaker, RefusalTracker};
use super::replica::ReplicaLink;
use super::server_clock::ServerClock;
use super::supervise::{self, jitter};
use crate::redis::RedisOptions;
use crate::redis::batch::queue::{BatchScope, PendingBatch, Queue, QueueLimit, ReplyReceiver};
use crate::redis::batch::slot_returns::{self, SlotReturns};
use crate::redis::batch::{DecideRequest, DecideRequests, NamedCharge, connection_task};
use crate::redis::cluster::{Cluster, slot_of};
use crate::redis::key::KeyNamer;
use crate::sync::lock_mutex;
use crate::{ChargeMode, StoreError};
use smallvec::smallvec;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use tokio::runtime::Handle;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Intent, LimitParams, Rate};

/// The number of servers that this process has started.
static SERVERS: AtomicU64 = AtomicU64::new(0);

/// State that all servers of a store share.
#[derive(Clone, Debug)]
pub(crate) struct ServerContext {
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) options: Arc<RedisOptions>,
    pub(crate) namer: Arc<KeyNamer>,
    /// Tasks that panicked and were restarted.
    pub(crate) task_restarts: Arc<AtomicUsize>,
    /// The clock of the server that answered last.
    pub(crate) latest_clock: Arc<ServerClock>,
    /// The store's number in this process, for thread connections.
    pub(crate) number: u64,
    /// The runtime of the store's tasks and shared connections.
    pub(crate) runtime: Handle,
}

/// One server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: Box<str>,
    location: ServerLocation,
    pub(crate) shared: ServerContext,
    /// The server's number in this process, for thread connections.
    pub(crate) number: u64,
    /// Requests for the connections that all threads share.
    pub(crate) queue: Arc<Queue>,
    /// Requests for the connections of single threads.
    thread_queues: std::sync::Mutex<Vec<Arc<Queue>>>,
    pub(crate) queue_limit: Arc<QueueLimit>,
    pub(crate) breaker: Breaker,
    refusals: RefusalTracker,
    /// The connection for calls that decide nothing.
    pub(crate) control: CachedConnection,
    /// The connection for calls that no request waits for.
    pub(crate) background: CachedConnection,
    pub(crate) slot_returns: Arc<SlotReturns>,
    /// The connection for peeks.
    pub(crate) replica: ReplicaLink,
    pub(crate) clock: ServerClock,
    pub(crate) connected: AtomicUsize,
    /// Connections made so far. Each may reach a different server.
    connects: AtomicU64,
    /// Whether scripts may use keys of several slots, as the last connection found.
    spans_slots: AtomicBool,
    cluster: Weak<Cluster>,
    tasks: supervise::TaskSupervisor,
}

impl Server {
    /// Starts the server's tasks, which connect.
    pub(crate) fn start(
        location: ServerLocation,
        shared: ServerContext,
        cluster: Weak<Cluster>,
    ) -> Arc<Self> {
        let options = Arc::clone(&shared.options);
        let name = location.name();
        let queue_limit = QueueLimit::new(options.in_flight);
        let server = Arc::new(Self {
            breaker: Breaker::new(&name, &options),
            refusals: RefusalTracker::default(),
            name: name.into(),
            location,
            number: SERVERS.fetch_add(1, Ordering::Relaxed),
            queue: Arc::new(Queue::new(&queue_limit, cluster.strong_count() > 0)),
            thread_queues: std::sync::Mutex::default(),
            queue_limit,
            control: CachedConnection::default(),
            background: CachedConnection::default(),
            slot_returns: Arc::default(),
            replica: ReplicaLink::default(),
            clock: ServerClock::default(),
            connected: AtomicUsize::new(0),
            connects: AtomicU64::new(0),
            spans_slots: AtomicBool::new(false),
            cluster,
            tasks: supervise::TaskSupervisor::default(),
            shared,
        });
        for _ in 0..options.connections.max(1) {
            server.start_connection_task(&server.shared.runtime, &server.queue);
        }
        let healed = Arc::clone(&server);
        let runtime = &server.shared.runtime;
        server.tasks.supervise("probe", &server.shared, runtime, move || {
            probe_while_open(Arc::clone(&healed))
        });
        let returning = Arc::clone(&server);
        server.tasks.supervise("slot returns", &server.shared, runtime, move || {
            slot_returns::run(Arc::clone(&returning))
        });
        if server.location.sentinels().is_some() {
            let moved = Arc::clone(&server);
            server.tasks.supervise("sentinels", &server.shared, runtime, move || {
                follow_sentinels(Arc::clone(&moved))
            });
        }
        server
    }

    /// Adds a connection that decides the requests of `queue`.
    fn start_connection_task(self: &Arc<Self>, runtime: &Handle, queue: &Arc<Queue>) {
        let (server, queue) = (Arc::clone(self), Arc::clone(queue));
        let run = move || connection_task::run(Arc::clone(&server), Arc::clone(&queue));
        self.tasks.supervise("connection", &self.shared, runtime, run);
    }

    /// Adds a queue and connections for the requests of one thread.
    fn start_thread_queue(self: &Arc<Self>, runtime: &Handle, connections: usize) -> Arc<Queue> {
        let queue = Arc::new(Queue::new(&self.queue_limit, self.cluster.strong_count() > 0));
        lock_mutex(&self.thread_queues).push(Arc::clone(&queue));
        (0..connections).for_each(|_| self.start_connection_task(runtime, &queue));
        queue
    }

    pub(crate) fn stop(&self) {
        self.tasks.stop();
    }

    pub(crate) fn cluster(&self) -> Option<Arc<Cluster>> {
        self.cluster.upgrade()
    }

    pub(crate) fn is_at(&self, address: &ServerAddress) -> bool {
        matches!(&self.location, ServerLocation::Fixed(own) if own == address)
    }

    pub(crate) fn address(&self) -> Option<&ServerAddress> {
        match &self.location {
            ServerLocation::Fixed(address) => Some(address),
            ServerLocation::Sentinels(_) => None,
        }
    }

    /// The name of a marker key, in one of the server's own slots. `None` while these slots are
    /// unknown. Index 0 is the marker, the others are spare ones, which only clusters have.
    pub(crate) fn marker_key(&self, index: usize) -> Option<Vec<u8>> {
        let mut names = self.shared.namer.marker_keys();
        match self.cluster() {
            Some(cluster) => cluster.marker_key(self, index, names),
            None => names.next().filter(|_| index == 0),
        }
    }

    /// Records where the server said that the slot of `key` is.
    pub(crate) fn record_redirect(&self, key: &[u8], action: &FailureAction) {
        if let Some(cluster) = self.cluster() {
            cluster.redirected(slot_of(key), self, action);
        }
    }

    pub(crate) async fn dial(&self) -> Result<Link, Failure> {
        let link = self.reach().await?;
        if self.cluster().is_some() {
            let within = self.shared.options.connect_deadline();
            self.spans_slots.store(link.spans_slots(within).await?, Ordering::Relaxed);
        }
        let number = self.connects.fetch_add(1, Ordering::AcqRel) + 1;
        Ok(link.with_number(number))
    }

    /// Whether one call may decide charges of several slots.
    pub(crate) fn spans_slots(&self) -> bool {
        self.spans_slots.load(Ordering::Relaxed)
    }

    async fn reach(&self) -> Result<Link, Failure> {
        self.location.dial(&self.shared.dialer, self.is_disconnected()).await
    }

    pub(crate) fn connects(&self) -> u64 {
        self.connects.load(Ordering::Acquire)
    }

    /// Queues requests; the connection task batches them with others.
    pub(crate) fn push(
        self: &Arc<Self>,
        scope: BatchScope,
        now_us: Option<u64>,
        requests: DecideRequests,
    ) -> Result<ReplyReceiver, StoreError> {
        self.breaker.check()?;
        self.connected_queue(thread_queue(self)).push(scope, now_us, requests)
    }

    pub(crate) fn has_waiting_requests(&self) -> bool {
        !self.queue.is_empty()
            || lock_mutex(&self.thread_queues).iter().any(|queue| !queue.is_empty())
    }

    /// Fails all waiting requests.
    pub(crate) fn fail_all(&self, error: &StoreError) {
        let own = lock_mutex(&self.thread_queues).clone();
        for queue in own.iter().chain([&self.queue]) {
            queue.drain().into_iter().for_each(|pending| pending.fail(error));
        }
    }

    /// Moves the requests of a lost connection to a queue that is still connected. If the breaker
    /// is open, they fail.
    pub(crate) fn requeue_elsewhere(&self, queue: &Arc<Queue>) {
        let other = self.connected_queue(Some(Arc::clone(queue)));
        if Arc::ptr_eq(queue, &other) {
            return;
        }
        for pending in queue.drain().into_iter().rev() {
            match self.breaker.check() {
                Ok(()) => other.put_back(pending),
                Err(error) => pending.fail(&error),
            }
        }
    }

    /// `preferred` if it has a connection, else the shared queue, else any connected one. If no
    /// queue is connected, requests wait in the shared queue.
    fn connected_queue(&self, preferred: Option<Arc<Queue>>) -> Arc<Queue> {
        let connected = |queue: &Arc<Queue>| queue.is_connected();
        let shared = || Arc::clone(&self.queue);
        let other =
            || lock_mutex(&self.thread_queues).iter().find(|queue| connected(queue)).cloned();
        let shared_if_connected = || connected(&self.queue).then(shared);
        let found = preferred.filter(connected).or_else(shared_if_connected).or_else(other);
        found.unwrap_or_else(shared)
    }

    /// Counts a failure. If it opens the breaker, all waiting requests fail.
    pub(crate) fn record_failure(&self, error: &StoreError) {
        if self.breaker.fail(error) {
            self.fail_all(error);
        }
        if let Some(cluster) = self.cluster() {
            cluster.request_refresh();
        }
    }

    pub(crate) fn record_success(&self, call: &ScriptCall) {
        self.breaker.succeed();
        self.note_answer(call);
    }

    /// Records that the server refused one call. Does not count for the breaker: the refusal took
    /// no time, and other calls may succeed.
    pub(crate) fn record_refusal(&self, call: &ScriptCall, error: &StoreError) {
        self.breaker.succeed();
        self.note_refusal(call, error);
    }

    /// Reports that the server accepts calls of this script again.
    pub(crate) fn note_answer(&self, call: &ScriptCall) {
        if self.refusals.record_answer(call.script()) {
            self.shared.options.notify(|observer| observer.accepts_again(&self.name));
        }
    }

    /// Reports the first refusal of this script.
    pub(crate) fn note_refusal(&self, call: &ScriptCall, error: &StoreError) {
        if self.refusals.record_refusal(call.script()) {
            self.shared.options.notify(|observer| observer.refuses(&self.name, error));
        }
    }

    /// The script call that decides a batch.
    pub(crate) fn call_for(&self, pending: &PendingBatch) -> ScriptCall {
        let ttl_margin = self.shared.options.ttl_margin;
        let mut call =
            ScriptCall::decide(&pending.batch, pending.scope, pending.now_us, ttl_margin);
        call.asking = pending.asking;
        call
    }

    /// Decides a request on a key of its own, to detect anything that prevents decisions.
    async fn probe(&self) -> Result<(), StoreError> {
        // Not counted in `connects`: no other call uses this connection.
        let link = self.reach().await.map_err(|failure| failure.error)?;
        let Some(pending) = self.probe_batch() else { return Ok(()) };
        let call = self.call_for(&pending);
        match link.call(&call).await {
            Ok(value) => pending.read_reply(&call, value).map(drop),
            // The server answers, but currently has no slots.
            Err(failure) if failure.is_redirection() && self.cluster().is_some() => Ok(()),
            Err(failure) => Err(failure.error),
        }
    }

    fn probe_batch(&self) -> Option<PendingBatch> {
        let params = LimitParams::FixedWindow(FixedWindow::new(Rate::try_new(1, 1_000).ok()?));
        let cluster = self.cluster();
        let mut names = (0..1_024_u32)
            .map(|n| self.shared.namer.state_key(u64::MAX, &n.to_be_bytes(), &params));
        let map = cluster.as_ref();
        let served =
            names.clone().find(|name| map.is_none_or(|map| map.serves(self, slot_of(name))));
        let name = served.or_else(|| names.next())?;
        let charge =
            NamedCharge { name, params, cost: 1, mode: ChargeMode::Enforce, penalty: None };
        let charges = smallvec![charge];
        let request = DecideRequest { intent: Intent::Take, charges, fence: None };
        Some(PendingBatch::without_waiters(request, self.shared.options.script_time(0)))
    }

    /// Whether no connection is up.
    pub(crate) fn is_disconnected(&self) -> bool {
        self.connected.load(Ordering::Relaxed) == 0
    }
}

/// Probes the server while the breaker is open.
async fn probe_while_open(server: Arc<Server>) {
    loop {
        server.breaker.wait_until(true).await;
        tokio::time::sleep(jitter(server.shared.options.breaker_probe)).await;
        match server.probe().await {
            Ok(()) => server.breaker.close(),
            Err(error) => {
                let options = &server.shared.options;
                options.notify(|observer| observer.attempt_failed(&server.name, &error));
                if let Some(cluster) = server.cluster() {
                    cluster.request_refresh();
                }
            }
        }
    }
}

async fn follow_sentinels(server: Arc<Server>) {
    if let Some(sentinels) = server.location.sentinels() {
        sentinels.watch_primary(&server.shared.dialer).await;
    }
}

thread_local! {
    static THREAD_CONNECTIONS: RefCell<ThreadConnections> = RefCell::default();
}

/// The connections of the calling thread.
///
/// A request over another thread's connection wakes that thread and is woken by it. These two
/// context switches cost more than the decision. A thread with its own runtime avoids both. Until
/// its own connections are up, its requests use the shared ones.
#[derive(Default)]
struct ThreadConnections {
    /// By store number: the runtime, and the number of connections to each server.
    stores: Vec<(u64, Handle, usize)>,
    /// By server number: the queue of this thread's requests.
    queues: Vec<(u64, Weak<Queue>)>,
}

/// Gives the calling thread its own connections to a store's servers, on the current runtime.
pub(crate) fn attach_thread(store: u64, connections: usize) {
    THREAD_CONNECTIONS.with_borrow_mut(|own| {
        own.stores.retain(|(one, ..)| *one != store);
        own.stores.push((store, Handle::current(), connections.max(1)));
        own.queues.retain(|(_, queue)| queue.strong_count() > 0);
    });
}

/// The queue of the calling thread, if the thread has connections of its own.
pub(crate) fn thread_queue(server: &Arc<Server>) -> Option<Arc<Queue>> {
    // A thread that is ending has dropped its connections.
    THREAD_CONNECTIONS.try_with(|own| own.borrow_mut().queue(server)).ok()?
}

impl ThreadConnections {
    fn queue(&mut self, server: &Arc<Server>) -> Option<Arc<Queue>> {
        if let Some((_, queue)) = self.queues.iter().find(|(number, _)| *number == server.number) {
            return queue.upgrade();
        }
        let (_, runtime, connections) =
            self.stores.iter().find(|(store, ..)| *store == server.shared.number)?;
        self.queues.retain(|(_, queue)| queue.strong_count() > 0);
        let queue = server.start_thread_queue(runtime, *connections);
        self.queues.push((server.number, Arc::downgrade(&queue)));
        Some(queue)
    }
}
