//! The connection task: sends batches over one connection, and reconnects after a loss.

use super::queue::{BatchScope, PendingBatch, Queue};
use super::rows::invalid_reply;
use crate::lease::SeenMarker;
use crate::redis::client::connection::Link;
use crate::redis::client::failure::{Failure, FailureAction};
use crate::redis::client::server::Server;
use crate::redis::client::supervise::Backoff;
use crate::{StoreError, StoreErrorKind};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::timeout;

/// Limit of redirects of one batch or call.
pub(crate) const REDIRECTS_MAX: u8 = 5;

/// Limit of calls in flight on a connection. With two, a request that arrives during a call can be
/// sent before the reply.
const CALLS_IN_FLIGHT_MAX: usize = 2;

/// Serves the queue for ever.
pub(crate) async fn run(server: Arc<Server>, queue: Arc<Queue>) {
    let options = Arc::clone(&server.shared.options);
    let mut backoff = Backoff::new(options.breaker_probe);
    loop {
        let link = connect(&server, &mut backoff).await;
        let (served, error) = {
            let _counted = [&server.connected, &queue.connected].map(CountGuard::new);
            options.notify(|observer| observer.connected(&server.name));
            serve(&server, &queue, &link).await
        };
        drop(link);
        server.requeue_elsewhere(&queue);
        options.notify(|observer| observer.disconnected(&server.name, &error));
        if served {
            backoff.reset();
        } else {
            backoff.pause().await;
        }
    }
}

/// Connects, with backoff. While the circuit breaker is open, only the probe task of the server
/// connects, so that a server that returns is not flooded.
async fn connect(server: &Server, backoff: &mut Backoff) -> Link {
    loop {
        server.breaker.wait_until(false).await;
        let failure = match dial(server).await {
            Ok(link) => return link,
            Err(failure) => failure,
        };
        server
            .shared
            .options
            .notify(|observer| observer.attempt_failed(&server.name, &failure.error));
        // A server that accepts no more connections may still answer on existing ones.
        if server.is_disconnected() {
            server.record_failure(&failure.error);
            server.fail_all(&failure.error);
        }
        backoff.pause().await;
    }
}

/// Dials, which may take longer than a call. If requests wait, the circuit breaker counts a failure
/// each time the deadline of a call passes.
async fn dial(server: &Server) -> Result<Link, Failure> {
    let mut dialing = pin!(server.dial());
    loop {
        match timeout(server.shared.options.deadline, &mut dialing).await {
            Ok(dialed) => return dialed,
            Err(_) if server.is_disconnected() && server.has_waiting_requests() => {
                server.record_failure(&Failure::timeout().error);
            }
            Err(_) => {}
        }
    }
}

/// Sends batches until the connection is lost. Returns whether the server was called, and why the
/// connection ended.
async fn serve(server: &Arc<Server>, queue: &Queue, link: &Link) -> (bool, StoreError) {
    let (mut served, mut ended, mut in_flight) = (false, None, 0);
    let mut calls = FuturesUnordered::new();
    let mut closed = pin!(link.closed());
    loop {
        let takes = ended.is_none() && calls.len() < CALLS_IN_FLIGHT_MAX;
        let event = tokio::select! {
            biased;
            Some((requests, decided)) = calls.next(), if !calls.is_empty() => {
                in_flight -= requests;
                ConnectionEvent::Decided(decided)
            }
            // The second call is at least as large as the first. So a lone request does not wait
            // for the reply to another. Under load, two calls share the waiting requests instead of
            // three.
            work = queue.next_at_least(in_flight), if takes => ConnectionEvent::Work(work),
            () = &mut closed, if ended.is_none() => ConnectionEvent::Lost,
            else => break,
        };
        match event {
            ConnectionEvent::Work(work) => {
                calls.extend(work.into_iter().map(|pending| {
                    let requests = pending.requests();
                    in_flight += requests;
                    decide(server, queue, link, pending).map(move |decided| (requests, decided))
                }));
            }
            ConnectionEvent::Decided(Ok(answered)) => served |= answered,
            // Other calls in flight may still be answered, and have deadlines.
            ConnectionEvent::Decided(Err(error)) => ended = ended.or(Some(error)),
            ConnectionEvent::Lost if link.has_primary_moved() => {
                ended = Some(Failure::primary_changed().error)
            }
            ConnectionEvent::Lost => ended = Some(Failure::closed_by_server().error),
        }
    }
    (served, ended.unwrap_or_else(invalid_reply))
}

enum ConnectionEvent {
    Work(Vec<PendingBatch>),
    /// Whether the server was called; an error if the connection is unusable.
    Decided(Result<bool, StoreError>),
    Lost,
}

/// Decides one batch. Returns whether the server was called; an error if the connection is
/// unusable.
async fn decide(
    server: &Arc<Server>,
    queue: &Queue,
    link: &Link,
    mut pending: PendingBatch,
) -> Result<bool, StoreError> {
    if !pending.drop_cancelled() {
        return Ok(false);
    }
    if pending.scope == BatchScope::Primary && !server.spans_slots() {
        // The batch spans slots, but the server that now has this address cannot do that.
        let failure = Failure::new(StoreErrorKind::Unreachable, FailureAction::NotLocal, "");
        return redirect_or_fail(server, queue, pending, failure).map_or(Ok(false), Err);
    }
    let call = server.call_for(&pending);
    let clock = &server.shared.options.boot_clock;
    let sent_us = clock.now_us();
    let is_fenced = pending.batch.fences().next().is_some();
    let marker_key = if is_fenced { server.marker_key(0) } else { None };
    match link.call_and_get(&call, marker_key.as_deref()).await {
        Ok((value, read)) => {
            if let (Some(key), Some(Err(failure))) = (&marker_key, &read) {
                server.record_redirect(key, &failure.action);
            }
            let marker = SeenMarker::of(read);
            let fences = pending.batch.fences();
            fences.for_each(|fence| fence.record(server, link.number, marker));
            let reply = pending.read_reply(&call, value);
            if let (Ok(reply), None) = (&reply, pending.now_us) {
                server.note_server_time((sent_us, clock.now_us()), reply.now_us);
            }
            match pending.answer(reply, &server.slot_returns) {
                Ok(()) => server.record_success(&call),
                Err(error) if error.kind == StoreErrorKind::Rejected => {
                    server.record_refusal(&call, &error);
                }
                Err(error) => server.record_failure(&error),
            }
            Ok(true)
        }
        Err(Failure { action: FailureAction::CallRefused, error }) => {
            server.record_refusal(&call, &error);
            pending.fail(&error);
            Ok(true)
        }
        Err(failure) => redirect_or_fail(server, queue, pending, failure).map_or(Ok(true), Err),
    }
}

/// Requeues a batch if the server did nothing for it and another attempt can succeed, else fails
/// it. Returns an error if the connection is unusable.
fn redirect_or_fail(
    server: &Arc<Server>,
    queue: &Queue,
    mut pending: PendingBatch,
    failure: Failure,
) -> Option<StoreError> {
    use FailureAction::{KeepConnection, NotPrimary, Reconnect, SendScript, TryAgain};
    let Failure { error, action } = failure;
    let unusable = matches!(action, Reconnect | NotPrimary).then(|| error.clone());
    let is_repeatable = !matches!(action, KeepConnection | Reconnect | SendScript);
    // A slot migrates only for a short time, and callers have deadlines: `TryAgain` does not count.
    let redirects = pending.redirects + u8::from(action != TryAgain);
    if is_repeatable && redirects <= REDIRECTS_MAX {
        pending.redirects = redirects;
        match server.cluster() {
            Some(cluster) => {
                cluster.redirect(server, pending, action);
                return unusable;
            }
            // The address may belong to another server by now.
            None if action == NotPrimary => {
                queue.put_back(pending);
                server.record_failure(&error);
                return unusable;
            }
            None => {}
        }
    }
    server.record_failure(&error);
    pending.fail(&error);
    unusable
}

/// Increments a counter until dropped.
struct CountGuard<'a>(&'a AtomicUsize);

impl<'a> CountGuard<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
