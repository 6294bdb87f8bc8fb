//! One folder per protocol, each with the same files: `decode` reads the wire, `encode` writes it.

pub mod admin;
mod ambiguous_path;
mod date;
mod forward_auth;
pub mod gateway;
pub mod grpc;
mod guard;
pub mod http;
mod media;
mod page;
pub mod resp;

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// The value of a future that asks no store but memory, and so never waits.
#[inline]
fn now<T>(future: Pin<&mut impl Future<Output = T>>) -> T {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("the memory store has its answer at once"),
    }
}
