//! The wait of a request in the queue of the adaptive shedder.

use crate::Engine;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use tollgate::engine::{QueuedEntry, ShedRefusal, ShedTicket};

/// Waits until the request is admitted or shed, at its deadline at the latest. A dropped future
/// leaves the queue.
///
/// # Errors
///
/// If the request is shed.
pub async fn wait_in_queue(
    engine: &impl Engine,
    queued: QueuedEntry,
) -> Result<ShedTicket, ShedRefusal> {
    let wait_us = queued.deadline_us().saturating_sub(engine.now_us());
    let mut deadline = engine.sleep(Duration::from_micros(wait_us));
    let mut queued = Some(queued);
    poll_fn(|context| {
        let Some(mut waiting) = queued.take() else { return Poll::Pending };
        if let Poll::Ready(ended) = Pin::new(&mut waiting).poll(context) {
            return Poll::Ready(ended);
        }
        if deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(waiting.expire());
        }
        queued = Some(waiting);
        Poll::Pending
    })
    .await
}
