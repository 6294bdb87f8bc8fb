//! Decides batches over one connection, for as long as it lasts, and makes another when it is lost.

use super::failure::{Failure, Then};
use super::jitter::Backoff;
use super::link::Link;
use super::node::Node;
use super::queue::Pending;
use super::reply::Decided;
use super::single;
use crate::{StoreError, StoreErrorKind};
use futures_util::future::{Either, join_all, select};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::timeout;

/// How often a batch is sent to another server, or again to one that was replaced.
pub(super) const HOPS_MOST: u8 = 5;

pub(super) async fn run(node: Arc<Node>) {
    let options = Arc::clone(&node.shared.options);
    let mut backoff = Backoff::new(options.breaker_probe);
    loop {
        let link = connect(&node, &mut backoff).await;
        let (served, error) = {
            let _counted = Counted::new(&node.connected);
            options.tell(|observer| observer.connected(&node.name));
            serve(&node, &link).await
        };
        drop(link);
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
        node.failed(&failure.error);
        if node.is_cut_off() {
            node.queue.drain().into_iter().for_each(|pending| pending.fail(&failure.error));
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
            Err(_) if node.is_cut_off() && !node.queue.is_empty() => {
                node.failed(&Failure::timeout().error);
            }
            Err(_) => {}
        }
    }
}

/// Decides until the connection is lost. Answers why it was, and whether anything had been decided.
async fn serve(node: &Arc<Node>, link: &Link) -> (bool, StoreError) {
    let mut served = false;
    loop {
        let work = match select(pin!(node.queue.next()), pin!(link.lost())).await {
            Either::Left((work, _)) => work,
            Either::Right(_) => {
                return (served, StoreError::new(StoreErrorKind::Unreachable, "it hung up"));
            }
        };
        let decided = join_all(work.into_iter().map(|pending| decide(node, link, pending))).await;
        served |= decided.iter().any(Option::is_none);
        if let Some(error) = decided.into_iter().flatten().next() {
            return (served, error);
        }
    }
}

/// Decides one batch. Answers with an error if the connection is of no use any more.
async fn decide(node: &Arc<Node>, link: &Link, mut pending: Pending) -> Option<StoreError> {
    if !pending.prune() {
        return None;
    }
    let call = node.call_for(&pending);
    match link.call(&call).await {
        Ok(value) => {
            let decided = match call.single {
                true => single::read(&pending.batch, pending.now_us, value),
                false => Decided::read(value),
            };
            match pending.answer(decided) {
                Ok(()) => node.breaker.succeed(),
                Err(error) => node.failed(&error),
            }
            None
        }
        Err(failure) => give_up(node, pending, failure),
    }
}

/// Sends a batch where it belongs, if the server said that it did nothing; otherwise says that it failed.
fn give_up(node: &Arc<Node>, mut pending: Pending, failure: Failure) -> Option<StoreError> {
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
                node.queue.put_back(pending);
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
