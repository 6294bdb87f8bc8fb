//! The engine, as its users see it.

mod change;
mod deny_cache;
mod deny_cache_rows;
mod desk;
mod each;
mod failure;
mod faulty;
mod gate;
mod held;
mod limiter;
mod manage;
mod parts;
mod quota;
mod reservations;
mod slots;
mod slow;
mod wait;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The value of a future that never waits.
fn now<T>(future: impl IntoFuture<Output = T>) -> T {
    match pin!(future.into_future()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}
