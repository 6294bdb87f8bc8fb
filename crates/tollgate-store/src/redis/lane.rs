//! Decides batches over one connection, for as long as it lasts, and makes another when it is lost.

use super::failure::{Failure, Then};
use super::jitter::Backoff;
use super::link::Link;
use super::node::Node;
use super::queue::{Pending, Queue};
use super::replay::senseless;
use super::reply::Decided;
use super::single;
use crate::StoreError;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::timeout;

/// How often a batch is sent to another server, or again to one that was replaced.
pub(super) const HOPS_MOST: u8 = 5;

/// How many calls are under way over one connection: a request that arrives while one is does not have to wait for its answer.
const CALLS_MOST: usize = 2;

/// Serves the queue.
pub(super) async fn run(node: Arc<Node>, queue: Arc<Queue>) {
    let options = Arc::clone(&node.shared.options);
    let mut backoff = Backoff::new(options.breaker_probe);
    loop {
        let link = connect(&node, &mut backoff).await;
        let (served, error) = {
            let _counted = [&node.connected, &queue.connected].map(Counted::new);
            options.tell(|observer| observer.connected(&node.name));
            serve(&node, &queue, &link).await
        };
        drop(link);
        node.take_over(&queue);
        options.tell(|observer| observer.disconnected(&node.name, &error));
        match served {
            true => backoff.reset(),
            false => backoff.pause().await,
        }
    }
}

/// Connects, sooner or later. While the server is left alone nobody but the probe tries, so that it is not overrun when it returns.
async fn connect(node: &Node, backoff: &mut Backoff) -> Link {
    loop {
        node.breaker.until(false).await;
        let failure = match dial(node).await {
            Ok(link) => return link,
            Err(failure) => failure,
        };
        node.shared.options.tell(|observer| observer.attempt_failed(&node.name, &failure.error));
        // A server that takes no more connections may well decide over those that it has.
        if node.is_cut_off() {
            node.failed(&failure.error);
            node.fail_all(&failure.error);
        }
        backoff.pause().await;
    }
}

/// Connecting may take longer than a call, so meanwhile every deadline that somebody waited through in vain counts as a failure.
async fn dial(node: &Node) -> Result<Link, Failure> {
    let mut dialing = pin!(node.dial());
    loop {
        match timeout(node.shared.options.deadline, &mut dialing).await {
            Ok(dialed) => return dialed,
            Err(_) if node.is_cut_off() && node.is_awaited() => {
                node.failed(&Failure::timeout().error);
            }
            Err(_) => {}
        }
    }
}

/// Decides until the connection is lost. Answers why it was, and whether anything had been decided.
async fn serve(node: &Arc<Node>, queue: &Queue, link: &Link) -> (bool, StoreError) {
    let (mut served, mut ended) = (false, None);
    let mut calls = FuturesUnordered::new();
    let mut lost = pin!(link.lost());
    loop {
        let takes = ended.is_none() && calls.len() < CALLS_MOST;
        let event = tokio::select! {
            biased;
            Some(decided) = calls.next(), if !calls.is_empty() => Event::Decided(decided),
            work = queue.next(), if takes => Event::Work(work),
            () = &mut lost, if ended.is_none() => Event::Lost,
            else => break,
        };
        match event {
            Event::Work(work) => {
                calls.extend(work.into_iter().map(|pending| decide(node, queue, link, pending)));
            }
            Event::Decided(Ok(answered)) => served |= answered,
            // What else is under way may have been answered already, and has a deadline.
            Event::Decided(Err(error)) => ended = ended.or(Some(error)),
            Event::Lost if link.is_elsewhere() => ended = Some(Failure::elsewhere().error),
            Event::Lost => ended = Some(Failure::hung_up().error),
        }
    }
    (served, ended.unwrap_or_else(senseless))
}

/// What a connection waits for.
enum Event {
    Work(Vec<Pending>),
    /// Whether the server answered to a batch; or why the connection is of no use any more.
    Decided(Result<bool, StoreError>),
    Lost,
}

/// Decides one batch, and answers whether the server was asked; with an error if the connection is of no use any more.
async fn decide(
    node: &Arc<Node>,
    queue: &Queue,
    link: &Link,
    mut pending: Pending,
) -> Result<bool, StoreError> {
    if !pending.prune() {
        return Ok(false);
    }
    let call = node.call_for(&pending);
    match link.call(&call).await {
        Ok(value) => {
            let decided = match call.single {
                true => single::read(&pending.batch, pending.now_us, value),
                false => Decided::read(value),
            };
            match pending.answer(decided) {
                Ok(()) => node.decided(&call),
                Err(error) => node.failed(&error),
            }
            Ok(true)
        }
        Err(Failure { then: Then::Refused, error }) => {
            node.refused(&call, &error);
            pending.fail(&error);
            Ok(true)
        }
        Err(failure) => give_up(node, queue, pending, failure).map_or(Ok(true), Err),
    }
}

/// Sends a batch where it belongs, if the server said that it did nothing; otherwise says that it failed.
fn give_up(
    node: &Arc<Node>,
    queue: &Queue,
    mut pending: Pending,
    failure: Failure,
) -> Option<StoreError> {
    let Failure { error, then } = failure;
    let useless = matches!(then, Then::Reconnect | Then::Elsewhere).then(|| error.clone());
    let elsewhere = !matches!(then, Then::Keep | Then::Reconnect | Then::Reload);
    // A slot on its way arrives, and whoever waits has a deadline.
    let hop = u8::from(then != Then::TryAgain);
    if elsewhere && pending.hops + hop <= HOPS_MOST {
        pending.hops += hop;
        match node.cluster() {
            Some(cluster) => {
                cluster.redirect(node, pending, then);
                return useless;
            }
            // The address may lead to another server by now.
            None if then == Then::Elsewhere => {
                queue.put_back(pending);
                node.failed(&error);
                return useless;
            }
            None => {}
        }
    }
    node.failed(&error);
    pending.fail(&error);
    useless
}

/// Counts for as long as it lives.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
