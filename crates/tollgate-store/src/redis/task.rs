//! Tasks that are started again if they die.

use super::jitter::jitter;
use super::node::NodeContext;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinHandle};

/// The tasks of one owner.
#[derive(Debug, Default)]
pub(super) struct TaskSupervisor(Mutex<Vec<AbortHandle>>);

impl TaskSupervisor {
    /// Runs a task on the runtime until [`stop`](Self::stop), and again if it panics.
    pub(super) fn supervise<F: Future<Output = ()> + Send + 'static>(
        &self,
        name: &'static str,
        shared: &NodeContext,
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
        self.lock().push(supervisor.abort_handle());
    }

    pub(super) fn stop(&self) {
        self.lock().drain(..).for_each(|task| task.abort());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task that ends with its supervisor.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
