//! The control thread: reloads files and runs periodic tasks. It serves no requests, so a slow file
//! system or a large file delays none.

use super::memory_trim::MemoryTrimTrigger;
use super::{AppliedPolicy, ReloadError, Reloader, SharedOrigin};
use crate::Node;
use crate::config::{Config, ConfigError, ConfigErrorKind};
use crate::front::admin::{PolicyControl, PolicyOrigin, ReloadFailure};
use crate::reload::poll::POLL_INTERVAL;
use crate::storage;
use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use tokio::runtime;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};
use tollgate_net::HEARTBEAT_INTERVAL;
use tollgate_net::lock;
use tollgate_net::{Attempt, Supervisor};

/// Ticks per sweep over all shards of the store: ten seconds.
const TICKS_PER_SWEEP: usize = 200;
/// Ticks between two heartbeat rounds.
const TICKS_PER_HEARTBEAT: u128 = HEARTBEAT_INTERVAL.as_millis() / POLL_INTERVAL.as_millis();
/// The time that a stop waits for the thread, which may hang in the file system.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);
/// Limit of waiting reload requests.
const RELOAD_REQUESTS_MAX: usize = 16;

/// Requests reloads. Clones share one process.
#[derive(Clone, Debug)]
pub struct ReloadHandle {
    requests: mpsc::Sender<ReloadReply>,
    origin: SharedOrigin,
}

/// The channel for the result of a reload.
pub(crate) type ReloadReply = oneshot::Sender<Result<AppliedPolicy, ReloadError>>;

/// The thread. Dropping this stops it, unless it hangs in the file system.
#[derive(Debug)]
pub(crate) struct ControlThread {
    reload: ReloadHandle,
    /// Dropping this wakes the thread.
    stop: Option<oneshot::Sender<()>>,
    /// Closed when the thread has ended.
    ended: std::sync::mpsc::Receiver<()>,
}

impl ReloadHandle {
    /// Loads the file and applies it, changed or not.
    ///
    /// # Errors
    ///
    /// When the file is unusable. The last good one stays in force.
    pub async fn now(&self) -> Result<AppliedPolicy, ReloadError> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(answer).await.map_err(|_| ReloadError::Stopping)?;
        answered.await.map_err(|_| self.unanswered())?
    }

    /// The reason why a request got no reply.
    fn unanswered(&self) -> ReloadError {
        if self.requests.is_closed() { ReloadError::Stopping } else { ReloadError::Panicked }
    }
}

impl PolicyControl for ReloadHandle {
    fn reload(&self) -> Pin<Box<dyn Future<Output = Result<(), ReloadFailure>> + Send + '_>> {
        Box::pin(async {
            self.now().await.map(drop).map_err(|error| ReloadFailure {
                message: error.to_string(),
                diagnostics: match error {
                    ReloadError::Config(ConfigError {
                        kind: ConfigErrorKind::Invalid(diagnostics),
                        ..
                    }) => diagnostics,
                    _ => Vec::new(),
                },
            })
        })
    }

    fn policy_origin(&self) -> PolicyOrigin {
        lock(&self.origin).clone()
    }
}

/// Creates a handle for reloads of `config`, and the receiver of its requests.
pub(crate) fn reload_channel(config: &Config) -> (ReloadHandle, mpsc::Receiver<ReloadReply>) {
    let (requests, receiver) = mpsc::channel(RELOAD_REQUESTS_MAX);
    let origin = PolicyOrigin { file: config.path().map(Path::to_owned), last_reload: None };
    (ReloadHandle { requests, origin: Arc::new(Mutex::new(origin)) }, receiver)
}

impl ReloadHandle {
    /// The origin of the policy, updated by the reloader.
    pub(crate) fn shared_origin(&self) -> SharedOrigin {
        self.origin.clone()
    }
}

/// The work of the control thread.
pub(crate) trait ReloadTask: Send + 'static {
    /// Loads the file and applies it.
    fn reload(&mut self) -> Result<AppliedPolicy, ConfigError>;
    /// Checks the files, and applies new content.
    fn poll(&mut self);
}

impl ReloadTask for Reloader {
    fn reload(&mut self) -> Result<AppliedPolicy, ConfigError> {
        Self::reload(self)
    }

    fn poll(&mut self) {
        Self::poll(self);
    }
}

impl ControlThread {
    /// Starts the thread. It restarts after a panic, and `task` keeps its state.
    pub(crate) fn start(
        node: Arc<Node>,
        mut task: impl ReloadTask,
        (reload, mut requests): (ReloadHandle, mpsc::Receiver<ReloadReply>),
    ) -> io::Result<Self> {
        let (stop, mut stopped) = oneshot::channel();
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let supervisor = Supervisor::new("control".to_owned(), Some(node.threads.clone()));
        let (ending, ended) = std::sync::mpsc::channel();
        let run = move || {
            let _ending = ending;
            supervisor.run(|attempt| {
                if attempt == Attempt::First || stopped.try_recv() == Err(TryRecvError::Empty) {
                    runtime.block_on(async {
                        tokio::select! {
                            () = run(&node, &mut task, &mut requests, &mut stopped, &supervisor) => {}
                            () = storage::monitor(&node) => {}
                        }
                    });
                }
            });
        };
        std::thread::Builder::new().name("control".into()).spawn(run)?;
        Ok(Self { reload, stop: Some(stop), ended })
    }

    pub(crate) fn reload(&self) -> &ReloadHandle {
        &self.reload
    }
}

impl Drop for ControlThread {
    fn drop(&mut self) {
        self.stop.take();
        if self.ended.recv_timeout(STOP_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("control thread is stuck reading a file; stopping without it");
        }
    }
}

enum ControlEvent {
    Stop,
    Reload(ReloadReply),
    Tick,
}

async fn run(
    node: &Node,
    task: &mut impl ReloadTask,
    requests: &mut mpsc::Receiver<ReloadReply>,
    stopped: &mut oneshot::Receiver<()>,
    supervisor: &Supervisor,
) {
    let mut trim_trigger = MemoryTrimTrigger::default();
    let mut ticks_total: u128 = 0;
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let event = poll_fn(|context| {
            if Pin::new(&mut *stopped).poll(context).is_ready() {
                return Poll::Ready(ControlEvent::Stop);
            }
            // Polled before the requests, so that many requests do not delay the tick.
            if ticks.poll_tick(context).is_ready() {
                return Poll::Ready(ControlEvent::Tick);
            }
            match requests.poll_recv(context) {
                Poll::Ready(Some(answer)) => Poll::Ready(ControlEvent::Reload(answer)),
                Poll::Ready(None) | Poll::Pending => Poll::Pending,
            }
        });
        match event.await {
            ControlEvent::Stop => return,
            ControlEvent::Tick => {
                task.poll();
                ticks_total += 1;
                if ticks_total.is_multiple_of(TICKS_PER_HEARTBEAT) {
                    node.threads.ask(node.clock.now_us());
                }
                node.gate.sweep(node.clock.now_us());
                node.top.tick(node.clock.now_us());
                node.history.tick(&node.gate, node.clock.now_us());
                if let Some(store) = node.gate.store().memory() {
                    store.sweep(node.clock.now_us(), store.shard_count().div_ceil(TICKS_PER_SWEEP));
                }
                if trim_trigger.tick(node.metrics.open_connections()) {
                    tollgate_store::release_free_memory();
                }
                supervisor.mark_running();
            }
            ControlEvent::Reload(answer) => {
                // The requester may be gone.
                let _ = answer.send(task.reload().map_err(ReloadError::Config));
            }
        }
    }
}

#[cfg(test)]
mod tests;
