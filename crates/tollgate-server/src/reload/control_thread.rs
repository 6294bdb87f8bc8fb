//! The thread that reloads and tidies up. It serves no requests, so a slow file system or a large
//! file delays none.

use super::memory_trim::MemoryTrimTrigger;
use super::{AppliedPolicy, ReloadError, Reloader, SharedOrigin};
use crate::Node;
use crate::config::{Config, ConfigError, ConfigErrorKind};
use crate::front::admin::{PolicyControl, PolicyOrigin, ReloadFailure};
use crate::node::lock;
use crate::node::supervisor::{Attempt, Supervisor};
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

/// Looks that a full turn of the store's shards takes: ten seconds.
const TICKS_PER_SWEEP: usize = 200;
/// How long the end waits for the thread: a file system that does not answer must not keep the
/// process.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);
/// More reloads than this are not waited for at once.
const RELOAD_REQUESTS_MAX: usize = 16;

/// Asks for reloads. Clones ask the same process.
#[derive(Clone, Debug)]
pub struct ReloadHandle {
    requests: mpsc::Sender<ReloadReply>,
    origin: SharedOrigin,
}

/// Where the answer to a reload goes.
pub(crate) type ReloadReply = oneshot::Sender<Result<AppliedPolicy, ReloadError>>;

/// The thread. It ends when this is dropped, unless the file system keeps it.
#[derive(Debug)]
pub(crate) struct ControlThread {
    reload: ReloadHandle,
    /// Dropping it wakes the thread.
    stop: Option<oneshot::Sender<()>>,
    /// Closed when the thread has ended.
    ended: std::sync::mpsc::Receiver<()>,
}

impl ReloadHandle {
    /// Reads the file and puts it in force, changed or not.
    ///
    /// # Errors
    ///
    /// When it cannot be used; the last good one then stays in force.
    pub async fn now(&self) -> Result<AppliedPolicy, ReloadError> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(answer).await.map_err(|_| ReloadError::Stopping)?;
        answered.await.map_err(|_| self.unanswered())?
    }

    /// Why an order has no answer.
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

/// A way to ask for reloads of `config`, and where they are asked for.
pub(crate) fn reload_channel(config: &Config) -> (ReloadHandle, mpsc::Receiver<ReloadReply>) {
    let (requests, receiver) = mpsc::channel(RELOAD_REQUESTS_MAX);
    let origin = PolicyOrigin { file: config.path().map(Path::to_owned), last_reload: None };
    (ReloadHandle { requests, origin: Arc::new(Mutex::new(origin)) }, receiver)
}

impl ReloadHandle {
    /// Where to tell what is in force.
    pub(crate) fn shared_origin(&self) -> SharedOrigin {
        self.origin.clone()
    }
}

/// What the thread does.
pub(crate) trait ReloadTask: Send + 'static {
    /// Reads the file and puts it in force.
    fn reload(&mut self) -> Result<AppliedPolicy, ConfigError>;
    /// Looks at the files, and puts in force what is new.
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
    /// Starts to look after `node`. The thread begins again where it panics, and what `care` knows
    /// stays.
    pub(crate) fn start(
        node: Arc<Node>,
        mut task: impl ReloadTask,
        (reload, mut requests): (ReloadHandle, mpsc::Receiver<ReloadReply>),
    ) -> io::Result<Self> {
        let (stop, mut stopped) = oneshot::channel();
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let supervisor = Supervisor::new("control".to_owned(), Some(node.clone()));
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
            tracing::warn!("the policy's file system does not answer; ending without it");
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
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let event = poll_fn(|context| {
            if Pin::new(&mut *stopped).poll(context).is_ready() {
                return Poll::Ready(ControlEvent::Stop);
            }
            // Before the orders, so that a stream of them does not keep anyone from looking.
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
                node.gate.sweep(node.clock.now_us());
                if let Some(store) = node.gate.store().memory() {
                    store.sweep(node.clock.now_us(), store.shard_count().div_ceil(TICKS_PER_SWEEP));
                }
                if trim_trigger.tick(node.metrics.open_connections()) {
                    tollgate_store::release_free_memory();
                }
                supervisor.mark_running();
            }
            ControlEvent::Reload(answer) => {
                // Whoever asked may have gone; the reload counts all the same.
                let _ = answer.send(task.reload().map_err(ReloadError::Config));
            }
        }
    }
}

#[cfg(test)]
mod tests;
