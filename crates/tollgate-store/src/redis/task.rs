//! Tasks that are started again if they die.

use super::jitter::jitter;
use super::node::Shared;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinHandle};

/// The tasks of one owner.
#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<Vec<AbortHandle>>);

impl Tasks {
    /// Runs a task on the runtime until [`stop`](Self::stop), and again if it panics.
    pub(super) fn supervise<F: Future<Output = ()> + Send + 'static>(
        &self,
        name: &'static str,
        shared: &Shared,
        runtime: &Handle,
        run: impl Fn() -> F + Send + 'static,
    ) {
        let shared = shared.clone();
        let supervisor = runtime.spawn(async move {
            loop {
                let mut task = Ends(tokio::spawn(run()));
                match (&mut task.0).await {
                    Err(error) if error.is_panic() => {
                        shared.died.fetch_add(1, Ordering::Relaxed);
                        shared.options.tell(|observer| observer.task_died(name));
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
struct Ends(JoinHandle<()>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.abort();
    }
}
