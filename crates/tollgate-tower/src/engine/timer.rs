//! A wait, on whatever there is.

use crate::Task;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// On tokio where it runs; else on a thread, since one that waits costs little and a queue is
/// bounded.
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
    let alarm: Arc<Mutex<SleepState>> = Arc::default();
    let shared = alarm.clone();
    let lock = |alarm: &Mutex<SleepState>| {
        let mut alarm = alarm.lock().unwrap_or_else(PoisonError::into_inner);
        alarm.is_elapsed = true;
        alarm.waker.take()
    };
    let wait = std::thread::Builder::new().name("tollgate-timer".into()).spawn(move || {
        std::thread::sleep(delay);
        if let Some(waker) = lock(&shared) {
            waker.wake();
        }
    });
    // Without a thread there is nobody to wait for.
    if wait.is_err() {
        return;
    }
    poll_fn(|context| {
        let mut alarm = alarm.lock().unwrap_or_else(PoisonError::into_inner);
        if alarm.is_elapsed {
            return Poll::Ready(());
        }
        alarm.waker = Some(context.waker().clone());
        Poll::Pending
    })
    .await;
}
