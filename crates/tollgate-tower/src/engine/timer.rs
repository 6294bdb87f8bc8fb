//! The timer: tokio's, or a thread.

use crate::Task;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// Sleeps on tokio inside a runtime, else on a thread of its own. Queues are bounded, so threads
/// are few.
pub(crate) fn sleep(delay: Duration) -> Task {
    #[cfg(feature = "tokio")]
    if tokio::runtime::Handle::try_current().is_ok() {
        return Box::pin(tokio::time::sleep(delay));
    }
    Box::pin(on_thread(delay))
}

#[derive(Default)]
struct SleepState {
    is_elapsed: bool,
    waker: Option<Waker>,
}

async fn on_thread(delay: Duration) {
    let state: Arc<Mutex<SleepState>> = Arc::default();
    let shared = state.clone();
    let lock = |state: &Mutex<SleepState>| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_elapsed = true;
        state.waker.take()
    };
    let wait = std::thread::Builder::new().name("tollgate-timer".into()).spawn(move || {
        std::thread::sleep(delay);
        if let Some(waker) = lock(&shared) {
            waker.wake();
        }
    });
    // Without a thread, no timer would wake this task.
    if wait.is_err() {
        return;
    }
    poll_fn(|context| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_elapsed {
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    })
    .await;
}
