//! Tasks that restart after a panic, and pauses with jitter.
//!
//! Jitter prevents processes that lost a server from reconnecting all at once.

use super::server::ServerContext;
use crate::sync::lock_mutex;
use ahash::RandomState;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinHandle};

/// A random duration between half of `most` and `most`.
pub(crate) fn jitter(most: Duration) -> Duration {
    let dice = (RandomState::new().hash_one(0) % 1_024) as u32;
    most / 2 + most / 2 * dice / 1_024
}

/// Pauses between attempts, which double up to `most`.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    most: Duration,
}

const FIRST: Duration = Duration::from_millis(5);

impl Backoff {
    pub(crate) const fn new(most: Duration) -> Self {
        Self { next: FIRST, most }
    }

    pub(crate) const fn reset(&mut self) {
        self.next = FIRST;
    }

    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(jitter(self.next)).await;
        self.next = (self.next * 2).min(self.most);
    }
}

/// The tasks of one owner, restarted when they panic.
#[derive(Debug, Default)]
pub(crate) struct TaskSupervisor(Mutex<Vec<AbortHandle>>);

impl TaskSupervisor {
    /// Runs a task until [`stop`](Self::stop), and again if it panics.
    pub(crate) fn supervise<F: Future<Output = ()> + Send + 'static>(
        &self,
        name: &'static str,
        shared: &ServerContext,
        runtime: &Handle,
        run: impl Fn() -> F + Send + 'static,
    ) {
        let shared = shared.clone();
        let supervisor = runtime.spawn(async move {
            loop {
                let mut task = AbortOnDrop(tokio::spawn(run()));
                match (&mut task.0).await {
                    Err(error) if error.is_panic() => {
                        shared.task_restarts.fetch_add(1, Ordering::Relaxed);
                        shared.options.notify(|observer| observer.task_died(name));
                        tokio::time::sleep(jitter(Duration::from_millis(100))).await;
                    }
                    _ => return,
                }
            }
        });
        lock_mutex(&self.0).push(supervisor.abort_handle());
    }

    pub(crate) fn stop(&self) {
        lock_mutex(&self.0).drain(..).for_each(|task| task.abort());
    }
}

/// A task that ends with its supervisor.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
