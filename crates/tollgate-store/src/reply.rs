//! Replies that are ready, or must be awaited.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The reply to a call after its first phase; `await` returns it. `R` is the
/// [undecided](crate::Store::Undecided) rest of the call. A store without a second phase is never
/// awaited.
#[must_use = "the second phase runs only while this is awaited"]
pub enum StoreReply<'a, T, R> {
    /// The reply is ready.
    Now(T),
    /// The rest of the call, and its second phase.
    Later(R, BoxedReply<'a, T>),
    /// The reply was taken.
    #[doc(hidden)]
    Taken,
}

/// The second phase of a call.
pub type BoxedReply<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl<'a, T: 'a, R: Copy + Send + 'a> StoreReply<'a, T, R> {
    /// Wraps the second phase of a call, with its undecided `rest`.
    pub fn later(rest: R, future: impl Future<Output = T> + Send + 'a) -> Self {
        Self::Later(rest, Box::pin(future))
    }

    /// Maps the reply.
    #[inline]
    pub fn map<U: 'a>(self, make: impl FnOnce(T) -> U + Send + 'a) -> StoreReply<'a, U, R> {
        match self {
            Self::Now(answer) => StoreReply::Now(make(answer)),
            Self::Later(rest, later) => StoreReply::later(rest, async move { make(later.await) }),
            Self::Taken => StoreReply::Taken,
        }
    }

    /// Continues with another call.
    #[inline]
    pub fn then<U: Send + 'a>(
        self,
        next: impl FnOnce(T) -> StoreReply<'a, U, R> + Send + 'a,
    ) -> StoreReply<'a, U, R> {
        match self {
            Self::Now(answer) => next(answer),
            Self::Later(rest, later) => {
                StoreReply::later(rest, async move { next(later.await).await })
            }
            Self::Taken => StoreReply::Taken,
        }
    }
}

impl<T> StoreReply<'_, T, Infallible> {
    /// The reply of a store whose replies are always ready, such as the memory store.
    #[inline]
    pub fn now(self) -> T {
        match self {
            Self::Now(answer) => answer,
            Self::Later(never, _) => match never {},
            Self::Taken => unreachable!("a reply that was awaited is not asked again"),
        }
    }
}

/// Only the boxed future is ever pinned.
impl<T, R> Unpin for StoreReply<'_, T, R> {}

impl<T, R> Future for StoreReply<'_, T, R> {
    type Output = T;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let this = self.get_mut();
        if let Self::Later(_, later) = this {
            return later.as_mut().poll(context);
        }
        match std::mem::replace(this, Self::Taken) {
            Self::Now(answer) => Poll::Ready(answer),
            _ => unreachable!("a future is not polled again once it is ready"),
        }
    }
}

impl<T: fmt::Debug, R> fmt::Debug for StoreReply<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(answer) => f.debug_tuple("Now").field(answer).finish(),
            Self::Later(..) => f.write_str("Later"),
            Self::Taken => f.write_str("Taken"),
        }
    }
}
