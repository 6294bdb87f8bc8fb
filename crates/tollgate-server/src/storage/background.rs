//! The thread on which the connections to a store live: it outlives every request and every worker,
//! so none of them takes a connection with it when it ends.

use std::io;
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A thread with a runtime. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct StoreThread {
    handle: Handle,
    /// Dropping it wakes the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl StoreThread {
    pub(super) fn start(name: &str) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let run = move || {
            let _ = runtime.block_on(stopped);
            // Looking up a name cannot be called off, and nobody waits for it.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(run)?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Where tasks of the store run.
    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for StoreThread {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // It has said why it panicked, if it did.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
