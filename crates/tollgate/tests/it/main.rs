//! The engine as its users see it.

mod bad_input;
mod batch;
mod candidate;
mod deny_cache;
mod deny_cache_rows;
mod explain;
mod failed_primary;
mod failure;
mod faulty_store;
mod fixture;
mod fleet;
mod gate;
mod in_flight;
mod key;
mod lapsed_slots;
mod limiter;
mod local_blocks;
mod local_charges;
mod local_rate;
mod manage;
mod multi;
mod observer;
mod quota;
mod redis;
mod reload;
mod reservations;
mod slots;
mod slow_store;
mod together;
mod wait;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The value of a future that is ready at once.
fn now<T>(future: impl IntoFuture<Output = T>) -> T {
    match pin!(future.into_future()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}
