//! Decides batches over one connection, for as long as it lasts, and makes another when it is lost.

use super::queue::{PendingBatch, Queue};
use super::reply::DecideReply;
use super::rows::invalid_reply;
use super::single_charge;
use crate::StoreError;
use crate::redis::client::connection::Link;
use crate::redis::client::failure::{Failure, FailureAction};
use crate::redis::client::node::Node;
use crate::redis::client::supervise::Backoff;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::timeout;

/// How often a batch is sent to another server, or again to one that was replaced.
pub(crate) const REDIRECTS_MAX: u8 = 5;

/// How many calls are under way over one connection: a request that arrives while one is does not
/// have to wait for its answer.
const CALLS_MOST: usize = 2;

/// Serves the queue.
pub(crate) async fn run(node: Arc<Node>, queue: Arc<Queue>) {
    let options = Arc::clone(&node.shared.options);
    let mut backoff = Backoff::new(options.breaker_probe);
    loop {
        let link = connect(&node, &mut backoff).await;
        let (served, error) = {
            let _counted = [&node.connected, &queue.connected].map(CountGuard::new);
            options.notify(|observer| observer.connected(&node.name));
            serve(&node, &queue, &link).await
        };
        drop(link);
        node.requeue_elsewhere(&queue);
        options.notify(|observer| observer.disconnected(&node.name, &error));
        match served {
            true => backoff.reset(),
            false => backoff.pause().await,
        }
    }
}

/// Connects, sooner or later. While the server is left alone nobody but the probe tries, so that it
/// is not overrun when it returns.
async fn connect(node: &Node, backoff: &mut Backoff) -> Link {
    loop {
        node.breaker.wait_until(false).await;
        let failure = match dial(node).await {
            Ok(link) => return link,
            Err(failure) => failure,
        };
        node.shared.options.notify(|observer| observer.attempt_failed(&node.name, &failure.error));
        // A server that takes no more connections may well decide over those that it has.
        if node.is_disconnected() {
            node.record_failure(&failure.error);
            node.fail_all(&failure.error);
        }
        backoff.pause().await;
    }
}

/// Connecting may take longer than a call, so meanwhile every deadline that somebody waited through
/// in vain counts as a failure.
async fn dial(node: &Node) -> Result<Link, Failure> {
    let mut dialing = pin!(node.dial());
    loop {
        match timeout(node.shared.options.deadline, &mut dialing).await {
            Ok(dialed) => return dialed,
            Err(_) if node.is_disconnected() && node.has_waiting_requests() => {
                node.record_failure(&Failure::timeout().error);
            }
            Err(_) => {}
        }
    }
}

/// Decides until the connection is lost. Answers why it was, and whether anything had been decided.
async fn serve(node: &Arc<Node>, queue: &Queue, link: &Link) -> (bool, StoreError) {
    let (mut served, mut ended) = (false, None);
    let mut calls = FuturesUnordered::new();
    let mut lost = pin!(link.closed());
    loop {
        let takes = ended.is_none() && calls.len() < CALLS_MOST;
        let event = tokio::select! {
            biased;
            Some(decided) = calls.next(), if !calls.is_empty() => ConnectionEvent::Decided(decided),
            work = queue.next(), if takes => ConnectionEvent::Work(work),
            () = &mut lost, if ended.is_none() => ConnectionEvent::Lost,
            else => break,
        };
        match event {
            ConnectionEvent::Work(work) => {
                calls.extend(work.into_iter().map(|pending| decide(node, queue, link, pending)));
            }
            ConnectionEvent::Decided(Ok(answered)) => served |= answered,
            // What else is under way may have been answered already, and has a deadline.
            ConnectionEvent::Decided(Err(error)) => ended = ended.or(Some(error)),
            ConnectionEvent::Lost if link.has_primary_moved() => {
                ended = Some(Failure::primary_changed().error)
            }
            ConnectionEvent::Lost => ended = Some(Failure::closed_by_server().error),
        }
    }
    (served, ended.unwrap_or_else(invalid_reply))
}

/// What a connection waits for.
enum ConnectionEvent {
    Work(Vec<PendingBatch>),
    /// Whether the server answered to a batch; or why the connection is of no use any more.
    Decided(Result<bool, StoreError>),
    Lost,
}

/// Decides one batch, and answers whether the server was asked; with an error if the connection is
/// of no use any more.
async fn decide(
    node: &Arc<Node>,
    queue: &Queue,
    link: &Link,
    mut pending: PendingBatch,
) -> Result<bool, StoreError> {
    if !pending.drop_cancelled() {
        return Ok(false);
    }
    let call = node.call_for(&pending);
    match link.call(&call).await {
        Ok(value) => {
            let decided = match call.single {
                true => single_charge::read(&pending.batch, pending.now_us, value),
                false => DecideReply::read(value),
            };
            match pending.answer(decided) {
                Ok(()) => node.record_success(&call),
                Err(error) => node.record_failure(&error),
            }
            Ok(true)
        }
        Err(Failure { action: FailureAction::CallRefused, error }) => {
            node.record_refusal(&call, &error);
            pending.fail(&error);
            Ok(true)
        }
        Err(failure) => redirect_or_fail(node, queue, pending, failure).map_or(Ok(true), Err),
    }
}

/// Sends a batch where it belongs, if the server said that it did nothing; otherwise says that it
/// failed.
fn redirect_or_fail(
    node: &Arc<Node>,
    queue: &Queue,
    mut pending: PendingBatch,
    failure: Failure,
) -> Option<StoreError> {
    let Failure { error, action: then } = failure;
    let useless =
        matches!(then, FailureAction::Reconnect | FailureAction::NotPrimary).then(|| error.clone());
    let elsewhere = !matches!(
        then,
        FailureAction::KeepConnection | FailureAction::Reconnect | FailureAction::SendScript
    );
    // A slot on its way arrives, and whoever waits has a deadline.
    let hop = u8::from(then != FailureAction::TryAgain);
    if elsewhere && pending.redirects + hop <= REDIRECTS_MAX {
        pending.redirects += hop;
        match node.cluster() {
            Some(cluster) => {
                cluster.redirect(node, pending, then);
                return useless;
            }
            // The address may lead to another server by now.
            None if then == FailureAction::NotPrimary => {
                queue.put_back(pending);
                node.record_failure(&error);
                return useless;
            }
            None => {}
        }
    }
    node.record_failure(&error);
    pending.fail(&error);
    useless
}

/// Counts for as long as it lives.
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
