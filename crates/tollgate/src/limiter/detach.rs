//! Futures that finish after their owner is gone.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Runs a future whose owner cannot wait: polls it once, then spawns it if there is a runtime.
pub(crate) fn spawn_detached(future: impl Future<Output = ()> + Send + 'static) {
    let mut future = Box::pin(future);
    let is_pending = future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
    #[cfg(feature = "tokio")]
    if is_pending && let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(future);
    }
    #[cfg(not(feature = "tokio"))]
    let _ = is_pending;
}

/// A future that finishes even if it is dropped, since a call to a store cannot be undone.
pub(crate) fn run_to_completion<T: 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = T> + Send {
    RunToCompletion(Some(Box::pin(future)))
}

struct RunToCompletion<T: 'static>(Option<Boxed<T>>);

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<T> Future for RunToCompletion<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<T> Drop for RunToCompletion<T> {
    fn drop(&mut self) {
        if let Some(future) = self.0.take() {
            spawn_detached(async move { drop(future.await) });
        }
    }
}
