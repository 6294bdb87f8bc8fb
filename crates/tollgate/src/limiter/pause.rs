//! Timers that outlive no runtime.

use super::wait::WaitError;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// A timer in a task of its own. A runtime that ends cancels the task; a timer that is polled
/// afterwards would panic.
struct Pause(JoinHandle<()>);

impl Pause {
    fn begin(duration: Duration) -> Result<Self, WaitError> {
        let runtime = Handle::try_current().map_err(|_| WaitError::NoRuntime)?;
        Ok(Self(runtime.spawn(async move { sleep(duration).await })))
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), WaitError>> {
        Pin::new(&mut self.0).poll(cx).map_err(|_| WaitError::NoRuntime)
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits for `duration`.
pub(super) async fn pause(duration: Duration) -> Result<(), WaitError> {
    let mut pause = Pause::begin(duration)?;
    poll_fn(|cx| pause.poll_end(cx)).await
}

/// Waits for `future`, but not longer than `duration`; `None` if the time is over.
pub(super) async fn at_most<T>(
    duration: Duration,
    future: impl Future<Output = T>,
) -> Result<Option<T>, WaitError> {
    let (mut pause, mut future) = (Pause::begin(duration)?, pin!(future));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Ok(Some(value))),
        Poll::Pending => pause.poll_end(cx).map_ok(|()| None),
    })
    .await
}
