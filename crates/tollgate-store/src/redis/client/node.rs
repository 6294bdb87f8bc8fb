//! One server: what waits for it, its connections, and whether it is left alone.

use super::connection::{Link, ScriptCall};
use super::control::BackgroundConnection;
use super::dial::{Dialer, NodeLocation};
use super::failure::{Failure, FailureAction};
use super::health::{Breaker, RefusalTracker};
use super::replica::ReplicaLink;
use super::supervise::{self, jitter};
use super::thread_connections;
use crate::redis::batch::queue::{PendingBatch, Queue, QueueLimit, ReplyReceiver};
use crate::redis::batch::reply::DecideReply;
use crate::redis::batch::single_charge::SingleChargeBatch;
use crate::redis::batch::{DecideRequest, DecideRequests, NamedCharge, connection_task};
use crate::redis::cluster::Cluster;
use crate::redis::key::KeyNamer;
use crate::redis::{RedisOptions, script};
use crate::{StoreError, StoreErrorKind};
use redis::{Cmd, Value};
use smallvec::smallvec;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, Weak};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Intent, LimitParams, Rate};

/// How many servers there have been in this process.
static NODES: AtomicU64 = AtomicU64::new(0);

/// What all servers of a store share.
#[derive(Clone, Debug)]
pub(crate) struct NodeContext {
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) options: Arc<RedisOptions>,
    pub(crate) namer: Arc<KeyNamer>,
    /// How many tasks died and were started again.
    pub(crate) task_restarts: Arc<AtomicUsize>,
    /// The store's number in this process.
    pub(crate) number: u64,
    /// Where its tasks and connections live, whoever asks for them.
    pub(crate) runtime: Handle,
}

/// One server.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: Box<str>,
    location: NodeLocation,
    pub(crate) shared: NodeContext,
    /// Its number in this process.
    pub(crate) number: u64,
    /// What waits for whichever connection is free.
    pub(crate) queue: Arc<Queue>,
    /// What waits for the connections of single threads.
    thread_queues: std::sync::Mutex<Vec<Arc<Queue>>>,
    pub(crate) queue_limit: Arc<QueueLimit>,
    pub(crate) breaker: Breaker,
    refusals: RefusalTracker,
    /// A connection for everything that is not a decision, so that it holds none up.
    control: Arc<Mutex<Option<Arc<Link>>>>,
    /// Another one for calls for which no request waits.
    pub(crate) background: BackgroundConnection,
    /// One to a replica, for peeks.
    pub(crate) replica: ReplicaLink,
    pub(crate) connected: AtomicUsize,
    /// Connections that ever came about. Each of them may lead to another server than the one
    /// before.
    connects: AtomicU64,
    cluster: Weak<Cluster>,
    tasks: supervise::TaskSupervisor,
}

impl Node {
    /// Starts to connect, on the runtime that this is called in.
    pub(crate) fn start(
        home: NodeLocation,
        shared: NodeContext,
        cluster: Weak<Cluster>,
    ) -> Arc<Self> {
        let options = Arc::clone(&shared.options);
        let name = home.name();
        let room = QueueLimit::new(options.in_flight);
        let node = Arc::new(Self {
            breaker: Breaker::new(&name, &options),
            refusals: RefusalTracker::default(),
            name: name.into(),
            location: home,
            number: NODES.fetch_add(1, Ordering::Relaxed),
            queue: Arc::new(Queue::new(&room)),
            thread_queues: std::sync::Mutex::default(),
            queue_limit: room,
            control: Arc::default(),
            background: BackgroundConnection::default(),
            replica: ReplicaLink::default(),
            connected: AtomicUsize::new(0),
            connects: AtomicU64::new(0),
            cluster,
            tasks: supervise::TaskSupervisor::default(),
            shared,
        });
        for _ in 0..options.connections.max(1) {
            node.start_connection_task(&node.shared.runtime, &node.queue);
        }
        let healed = Arc::clone(&node);
        let runtime = &node.shared.runtime;
        node.tasks.supervise("probe", &node.shared, runtime, move || {
            probe_while_open(Arc::clone(&healed))
        });
        if node.location.sentinels().is_some() {
            let moved = Arc::clone(&node);
            node.tasks.supervise("sentinels", &node.shared, runtime, move || {
                follow_sentinels(Arc::clone(&moved))
            });
        }
        node
    }

    /// Adds a connection that decides what waits in the queue.
    fn start_connection_task(self: &Arc<Self>, runtime: &Handle, queue: &Arc<Queue>) {
        let (node, queue) = (Arc::clone(self), Arc::clone(queue));
        let run = move || connection_task::run(Arc::clone(&node), Arc::clone(&queue));
        self.tasks.supervise("lane", &self.shared, runtime, run);
    }

    /// Adds a queue with connections of its own, for the requests of one thread.
    pub(crate) fn start_thread_queue(
        self: &Arc<Self>,
        runtime: &Handle,
        lanes: usize,
    ) -> Arc<Queue> {
        let queue = Arc::new(Queue::new(&self.queue_limit));
        self.thread_queues().push(Arc::clone(&queue));
        (0..lanes).for_each(|_| self.start_connection_task(runtime, &queue));
        queue
    }

    fn thread_queues(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Queue>>> {
        self.thread_queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends its tasks and closes its connections.
    pub(crate) fn stop(&self) {
        self.tasks.stop();
    }

    pub(crate) fn cluster(&self) -> Option<Arc<Cluster>> {
        self.cluster.upgrade()
    }

    /// Whether the node was started for this address.
    pub(crate) fn is_at(&self, address: &super::endpoint::ServerAddress) -> bool {
        matches!(&self.location, NodeLocation::Fixed(own) if own == address)
    }

    pub(crate) fn address(&self) -> Option<&super::endpoint::ServerAddress> {
        match &self.location {
            NodeLocation::Fixed(address) => Some(address),
            NodeLocation::Sentinels(_) => None,
        }
    }

    pub(crate) async fn dial(&self) -> Result<Link, Failure> {
        let link = self.reach().await?;
        self.connects.fetch_add(1, Ordering::AcqRel);
        Ok(link)
    }

    async fn reach(&self) -> Result<Link, Failure> {
        self.location.dial(&self.shared.dialer, self.is_disconnected()).await
    }

    /// How many connections there have been.
    pub(crate) fn connects(&self) -> u64 {
        self.connects.load(Ordering::Acquire)
    }

    /// Has `asks` decided, with whatever else waits.
    pub(crate) fn push(
        self: &Arc<Self>,
        slot: Option<u16>,
        now_us: Option<u64>,
        asks: DecideRequests,
    ) -> Result<ReplyReceiver, StoreError> {
        self.breaker.check()?;
        match thread_connections::thread_queue(self) {
            Some(own) => own.push(slot, now_us, asks),
            None => self.connected_queue(&self.queue).push(slot, now_us, asks),
        }
    }

    /// Whether a request waits, for whichever connection.
    pub(crate) fn has_waiting_requests(&self) -> bool {
        !self.queue.is_empty() || self.thread_queues().iter().any(|queue| !queue.is_empty())
    }

    /// Tells everybody who waits that nothing was decided.
    pub(crate) fn fail_all(&self, error: &StoreError) {
        let own = self.thread_queues().clone();
        for queue in own.iter().chain([&self.queue]) {
            queue.drain().into_iter().for_each(|pending| pending.fail(error));
        }
    }

    /// What waited for a connection that was lost waits for any other from now on, unless the
    /// server is left alone.
    pub(crate) fn requeue_elsewhere(&self, queue: &Arc<Queue>) {
        let shelter = self.connected_queue(queue);
        if Arc::ptr_eq(queue, &shelter) {
            return;
        }
        for pending in queue.drain().into_iter().rev() {
            match self.breaker.check() {
                Ok(()) => shelter.put_back(pending),
                Err(error) => pending.fail(&error),
            }
        }
    }

    /// The queue itself, if it has a connection; else one that does: the shared one first, which is
    /// also the one where to wait when none does.
    fn connected_queue(&self, queue: &Arc<Queue>) -> Arc<Queue> {
        let connected = [queue, &self.queue].into_iter().find(|queue| queue.is_connected());
        let other = || self.thread_queues().iter().find(|queue| queue.is_connected()).cloned();
        connected.cloned().or_else(other).unwrap_or_else(|| Arc::clone(&self.queue))
    }

    /// Counts a failure. The one that opens the breaker also answers whoever waits.
    pub(crate) fn record_failure(&self, error: &StoreError) {
        if self.breaker.fail(error) {
            self.fail_all(error);
        }
        if let Some(cluster) = self.cluster() {
            cluster.request_refresh();
        }
    }

    /// The server answered to a call.
    pub(crate) fn record_success(&self, call: &ScriptCall) {
        self.breaker.succeed();
        self.note_answer(call);
    }

    /// The server refused a call for reasons of the call's own, which takes no time and costs other
    /// calls nothing: so it is not left alone for it.
    pub(crate) fn record_refusal(&self, call: &ScriptCall, error: &StoreError) {
        self.breaker.succeed();
        self.note_refusal(call, error);
    }

    /// Tells of the end of refusals, where this answer is it.
    pub(crate) fn note_answer(&self, call: &ScriptCall) {
        if self.refusals.record_answer(call.script()) {
            self.shared.options.notify(|observer| observer.accepts_again(&self.name));
        }
    }

    /// Tells of refusals, where this is the first.
    pub(crate) fn note_refusal(&self, call: &ScriptCall, error: &StoreError) {
        if self.refusals.record_refusal(call.script()) {
            self.shared.options.notify(|observer| observer.refuses(&self.name, error));
        }
    }

    /// A batch as a call.
    pub(crate) fn call_for(&self, pending: &PendingBatch) -> ScriptCall {
        let batch = &pending.batch;
        let spare = self.shared.options.ttl_margin;
        let (tables, now_us) = (&batch.tables, pending.now_us);
        let mut call = match SingleChargeBatch::of(batch) {
            Some(singles) => ScriptCall::single(&singles, tables, now_us, spare),
            None => {
                let script = script::decide(tables, batch.has_debts());
                ScriptCall::new(script, tables, batch.program(), now_us, spare)
            }
        };
        call.asking = pending.asking;
        call
    }

    /// Makes a call that is not a decision.
    pub(crate) async fn control(self: &Arc<Self>, call: &ScriptCall) -> Result<Value, Failure> {
        let link = self.control_link().await?;
        let made = link.call(call).await;
        self.after_control(&link, made).await
    }

    /// Runs a command that is no script.
    pub(crate) async fn command(
        self: &Arc<Self>,
        command: &Cmd,
        asking: bool,
    ) -> Result<Value, Failure> {
        let link = self.control_link().await?;
        let made = link.command(command, asking).await;
        self.after_control(&link, made).await
    }

    /// A connection is made on the store's own runtime: whoever asked for it waits for a call's
    /// deadline only, which is over sooner, and would take it along.
    async fn control_link(self: &Arc<Self>) -> Result<Arc<Link>, Failure> {
        self.breaker
            .check()
            .map_err(|error| Failure { error, action: FailureAction::KeepConnection })?;
        let mut control = Arc::clone(&self.control).lock_owned().await;
        if let Some(link) = control.as_ref().filter(|link| !link.is_closed()) {
            return Ok(Arc::clone(link));
        }
        *control = None;
        let node = Arc::clone(self);
        let dialing = self.shared.runtime.spawn(async move {
            let dialed = node.dial().await;
            if let Err(failure) = &dialed
                && node.is_disconnected()
            {
                node.record_failure(&failure.error);
            }
            let link = Arc::new(dialed?);
            *control = Some(Arc::clone(&link));
            Ok(link)
        });
        // It is not there to answer once the store's runtime has ended.
        dialing.await.unwrap_or_else(|_| Err(Failure::timeout()))
    }

    async fn after_control(
        &self,
        link: &Arc<Link>,
        made: Result<Value, Failure>,
    ) -> Result<Value, Failure> {
        let Err(failure) = &made else {
            self.breaker.succeed();
            return made;
        };
        if matches!(failure.action, FailureAction::Reconnect | FailureAction::NotPrimary) {
            let mut control = self.control.lock().await;
            if control.as_ref().is_some_and(|own| Arc::ptr_eq(own, link)) {
                *control = None;
            }
        }
        // What a server refuses to do about one call says nothing of decisions, which count their
        // own failures.
        let counts = match failure.action {
            FailureAction::KeepConnection => failure.error.kind != StoreErrorKind::Rejected,
            _ => failure.action == FailureAction::Reconnect,
        };
        if counts {
            self.record_failure(&failure.error);
        }
        made
    }

    /// Does on a key of its own what a decision does, so that whatever keeps the server from
    /// deciding shows.
    async fn probe(&self) -> Result<(), StoreError> {
        // Nothing else goes over it, so that it is none of those that may lead to another server.
        let link = self.reach().await.map_err(|failure| failure.error)?;
        let Some(pending) = self.probe_batch() else { return Ok(()) };
        match link.call(&self.call_for(&pending)).await {
            Ok(value) => DecideReply::read(value).map(drop),
            // None of the cluster's keys is the server's at the moment, and it can say so.
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
        let served = names.clone().find(|name| map.is_none_or(|map| map.is_served_by(name, self)));
        let name = served.or_else(|| names.next())?;
        let (cost, mode, penalty) = (1, crate::Mode::Enforce, None);
        let lines = smallvec![NamedCharge { name, params, cost, mode, penalty }];
        let now_us = self.shared.options.script_time(0);
        Some(PendingBatch::without_waiters(
            DecideRequest { intent: Intent::Take, charges: lines },
            now_us,
        ))
    }

    /// Whether no connection is up.
    pub(crate) fn is_disconnected(&self) -> bool {
        self.connected.load(Ordering::Relaxed) == 0
    }
}

/// Probes the server while it is left alone.
async fn probe_while_open(node: Arc<Node>) {
    loop {
        node.breaker.wait_until(true).await;
        tokio::time::sleep(jitter(node.shared.options.breaker_probe)).await;
        match node.probe().await {
            Ok(()) => node.breaker.close(),
            Err(error) => {
                let options = &node.shared.options;
                options.notify(|observer| observer.attempt_failed(&node.name, &error));
                if let Some(cluster) = node.cluster() {
                    cluster.request_refresh();
                }
            }
        }
    }
}

/// Moves to another primary when the sentinels name one.
async fn follow_sentinels(node: Arc<Node>) {
    if let Some(sentinels) = node.location.sentinels() {
        sentinels.watch_primary(&node.shared.dialer).await;
    }
}
