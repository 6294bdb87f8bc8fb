//! The thread that reloads and tidies up. It serves no requests, so a slow file system or a large file delays none.

use super::crowd::CrowdWatch;
use super::{InForce, ReloadError, Reloader, Told};
use crate::Node;
use crate::config::{Config, ConfigError};
use crate::front::admin::{self, Origin, ReloadFailure};
use crate::storage;
use crate::supervise::{Supervisor, Turn};
use crate::watch::LOOK_EVERY;
use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::runtime;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};

/// Looks that a full turn of the store's shards takes: ten seconds.
const LOOKS_PER_SWEEP: usize = 200;
/// How long the end waits for the thread: a file system that does not answer must not keep the process.
const END_WITHIN: Duration = Duration::from_secs(1);
/// More reloads than this are not waited for at once.
const ORDERS_MAX: usize = 16;

/// Asks for reloads. Clones ask the same process.
#[derive(Clone, Debug)]
pub struct Reload {
    orders: mpsc::Sender<Answer>,
    told: Told,
}

/// Where the answer to a reload goes.
pub(crate) type Answer = oneshot::Sender<Result<InForce, ReloadError>>;

/// The thread. It ends when this is dropped, unless the file system keeps it.
#[derive(Debug)]
pub(crate) struct Control {
    reload: Reload,
    /// Dropping it wakes the thread.
    stop: Option<oneshot::Sender<()>>,
    /// Closed when the thread has ended.
    ended: std::sync::mpsc::Receiver<()>,
}

impl Reload {
    /// Reads the file and puts it in force, changed or not.
    ///
    /// # Errors
    ///
    /// When it cannot be used; the last good one then stays in force.
    pub async fn now(&self) -> Result<InForce, ReloadError> {
        let (answer, answered) = oneshot::channel();
        self.orders.send(answer).await.map_err(|_| ReloadError::Stopping)?;
        answered.await.map_err(|_| self.unanswered())?
    }

    /// Why an order has no answer.
    fn unanswered(&self) -> ReloadError {
        if self.orders.is_closed() { ReloadError::Stopping } else { ReloadError::BrokeOff }
    }
}

/// For whoever waits elsewhere than in a future.
impl admin::Control for Reload {
    fn reload(&self) -> Result<(), ReloadFailure> {
        let (answer, answered) = oneshot::channel();
        let sent = self.orders.blocking_send(answer).is_ok();
        let answer = if sent { answered.blocking_recv().ok() } else { None };
        match answer.unwrap_or_else(|| Err(self.unanswered())) {
            Ok(_) => Ok(()),
            Err(error) => Err(ReloadFailure {
                message: error.to_string(),
                diagnostics: match error {
                    ReloadError::Config(ConfigError::Invalid { diagnostics, .. }) => diagnostics,
                    _ => Vec::new(),
                },
            }),
        }
    }

    fn origin(&self) -> Origin {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A way to ask for reloads of `config`, and where they are asked for.
pub(crate) fn orders(config: &Config) -> (Reload, mpsc::Receiver<Answer>) {
    let (orders, receiver) = mpsc::channel(ORDERS_MAX);
    let origin = Origin { file: config.path().map(Path::to_owned), last_reload: None };
    (Reload { orders, told: Arc::new(Mutex::new(origin)) }, receiver)
}

impl Reload {
    /// Where to tell what is in force.
    pub(crate) fn told(&self) -> Told {
        self.told.clone()
    }
}

/// What the thread does.
pub(crate) trait Care: Send + 'static {
    /// Reads the file and puts it in force.
    fn reload(&mut self) -> Result<InForce, ConfigError>;
    /// Looks at the files, and puts in force what is new.
    fn look(&mut self);
}

impl Care for Reloader {
    fn reload(&mut self) -> Result<InForce, ConfigError> {
        Self::reload(self)
    }

    fn look(&mut self) {
        Self::look(self);
    }
}

impl Control {
    /// Starts to look after `node`. The thread begins again where it panics, and what `care` knows stays.
    pub(crate) fn start(
        node: Arc<Node>,
        mut care: impl Care,
        (reload, mut orders): (Reload, mpsc::Receiver<Answer>),
    ) -> io::Result<Self> {
        let (stop, mut stopped) = oneshot::channel();
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let supervisor = Supervisor::new("control".to_owned(), Some(node.clone()));
        let (ending, ended) = std::sync::mpsc::channel();
        let run = move || {
            let _ending = ending;
            supervisor.run(|turn| {
                if turn == Turn::First || stopped.try_recv() == Err(TryRecvError::Empty) {
                    runtime.block_on(async {
                        tokio::select! {
                            () = run(&node, &mut care, &mut orders, &mut stopped, &supervisor) => {}
                            () = storage::watch(&node) => {}
                        }
                    });
                }
            });
        };
        std::thread::Builder::new().name("control".into()).spawn(run)?;
        Ok(Self { reload, stop: Some(stop), ended })
    }

    pub(crate) fn reload(&self) -> &Reload {
        &self.reload
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop.take();
        if self.ended.recv_timeout(END_WITHIN) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("the policy's file system does not answer; ending without it");
        }
    }
}

enum Event {
    Stop,
    Reload(Answer),
    Look,
}

async fn run(
    node: &Node,
    care: &mut impl Care,
    orders: &mut mpsc::Receiver<Answer>,
    stopped: &mut oneshot::Receiver<()>,
    supervisor: &Supervisor,
) {
    let mut crowd = CrowdWatch::default();
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let event = poll_fn(|context| {
            if Pin::new(&mut *stopped).poll(context).is_ready() {
                return Poll::Ready(Event::Stop);
            }
            // Before the orders, so that a stream of them does not keep anyone from looking.
            if looks.poll_tick(context).is_ready() {
                return Poll::Ready(Event::Look);
            }
            match orders.poll_recv(context) {
                Poll::Ready(Some(answer)) => Poll::Ready(Event::Reload(answer)),
                Poll::Ready(None) | Poll::Pending => Poll::Pending,
            }
        });
        match event.await {
            Event::Stop => return,
            Event::Look => {
                care.look();
                node.gate.sweep(node.clock.now_us());
                if let Some(store) = node.gate.store().memory() {
                    store.sweep(node.clock.now_us(), store.shard_count().div_ceil(LOOKS_PER_SWEEP));
                }
                if crowd.look(node.metrics.open_connections()) {
                    tollgate_store::release_free_memory();
                }
                supervisor.begun();
            }
            Event::Reload(answer) => {
                // Whoever asked may have gone; the reload counts all the same.
                let _ = answer.send(care.reload().map_err(ReloadError::Config));
            }
        }
    }
}

#[cfg(test)]
mod tests;
