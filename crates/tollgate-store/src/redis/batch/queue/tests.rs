use super::*;
use crate::StoreErrorKind;
use crate::redis::batch::NamedCharge;
use futures_util::FutureExt;
use smallvec::smallvec;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Intent, LimitParams, Rate};

fn ask(name: &str) -> DecideRequest {
    let params = LimitParams::FixedWindow(FixedWindow::new(Rate::try_new(1, 1_000).unwrap()));
    let (name, cost, mode, penalty) = (name.into(), 1, crate::ChargeMode::Enforce, None);
    DecideRequest {
        intent: Intent::Take,
        charges: smallvec![NamedCharge { name, params, cost, mode, penalty }],
        fence: None,
    }
}

/// A queue of a server outside a cluster.
fn queue_of(max: usize) -> Queue {
    Queue::new(&QueueLimit::new(max), false)
}

/// A queue of a cluster's server.
fn lingering_queue() -> Arc<Queue> {
    Arc::new(Queue::new(&QueueLimit::new(1_000), true))
}

fn push(queue: &Queue) -> ReplyReceiver {
    queue.push(BatchScope::Primary, None, smallvec![ask("a")]).unwrap()
}

/// The next batch of a connection task with `in_flight` requests in flight. A task of its own,
/// because the runtime polls the test itself before all tasks.
async fn next_of_task(queue: &Arc<Queue>, in_flight: usize) -> usize {
    let queue = Arc::clone(queue);
    let task = tokio::spawn(async move { queue.next_at_least(in_flight).await[0].requests() });
    timeout(Duration::from_secs(10), task).await.expect("the task waits for nothing").unwrap()
}

#[test]
fn requests_that_wait_share_a_batch_up_to_a_size() {
    let queue = queue_of(1_000);
    let replies: Vec<_> = (0..BATCH_REQUESTS_MAX + 1)
        .map(|_| queue.push(BatchScope::Server, None, smallvec![ask("a")]).unwrap())
        .collect();
    assert_eq!(queue.limit.waiting(), BATCH_REQUESTS_MAX + 1);
    let batches = queue.drain();
    let sizes: Vec<_> = batches.iter().map(|pending| pending.batch.requests.len()).collect();
    assert_eq!(sizes, [BATCH_REQUESTS_MAX, 1]);
    assert_eq!(batches[0].batch.tables.keys.len(), 1, "a key stands in it once");
    assert!(queue.is_empty());
    assert_eq!(queue.limit.waiting(), 0);
    drop(replies);
}

#[test]
fn slots_have_batches_of_their_own_that_go_out_together() {
    let queue = queue_of(1_000);
    let slots = [3, 5, 3, 5, 3];
    let _replies: Vec<_> = slots
        .map(|slot| queue.push(BatchScope::Slot(slot), None, smallvec![ask("a")]).unwrap())
        .into();
    let popped = queue.pop(1);
    let sizes: Vec<_> = popped.iter().map(|one| (one.scope, one.batch.requests.len())).collect();
    assert_eq!(sizes, [(BatchScope::Slot(3), 3), (BatchScope::Slot(5), 2)]);
    // New requests must not join a batch that has left the queue.
    let _reply = queue.push(BatchScope::Slot(3), None, smallvec![ask("a")]).unwrap();
    assert_eq!(queue.pop(1).len(), 1);
}

#[test]
fn a_second_call_waits_until_it_is_as_large_as_the_first() {
    let queue = queue_of(1_000);
    let _replies = [push(&queue), push(&queue)];
    assert!(queue.pop(3).is_empty(), "three requests are in flight");
    let _third = push(&queue);
    assert_eq!(queue.pop(3)[0].requests(), 3);
    assert!(queue.is_empty());
    let _full: Vec<_> = (0..BATCH_REQUESTS_MAX).map(|_| push(&queue)).collect();
    let popped =
        queue.next_at_least(2 * BATCH_REQUESTS_MAX).now_or_never().expect("a batch is full");
    assert_eq!(popped[0].requests(), BATCH_REQUESTS_MAX);
}

/// The bytes of the second request wait in a socket, and no task has read them yet.
#[tokio::test]
async fn a_request_that_waits_in_a_socket_joins_the_call() {
    for (queue, expected) in [(lingering_queue(), 2), (Arc::new(queue_of(10)), 1)] {
        let (client, server) = tokio::net::UnixStream::pair().unwrap();
        let own = Arc::clone(&queue);
        let reader = tokio::spawn(async move {
            server.readable().await.unwrap();
            drop(push(&own));
        });
        yield_now().await;
        client.try_write(b"?").unwrap();
        let _first = push(&queue);
        assert_eq!(next_of_task(&queue, 0).await, expected);
        reader.await.unwrap();
    }
}

#[tokio::test]
async fn a_lone_request_waits_one_turn_of_the_loop_and_for_no_reply() {
    let queue = lingering_queue();
    for in_flight in [0, 1] {
        let _reply = push(&queue);
        let mut next = pin!(queue.next_at_least(in_flight));
        assert!(next.as_mut().now_or_never().is_none(), "the runtime polls its sockets first");
        assert_eq!(next.now_or_never().expect("a batch")[0].requests(), 1);
    }
}

#[tokio::test]
async fn a_small_call_waits_while_each_turn_of_the_loop_brings_requests() {
    let queue = lingering_queue();
    let _first = push(&queue);
    let mut next = pin!(queue.next_at_least(0));
    for turn in ["first", "second", "third"] {
        assert!(next.as_mut().now_or_never().is_none(), "the {turn} turn brought a request");
        let _joins = push(&queue);
    }
    assert!(next.as_mut().now_or_never().is_none(), "the fourth turn is still to be waited for");
    assert_eq!(next.now_or_never().expect("no request came")[0].requests(), 4);

    let mut next = pin!(queue.next_at_least(0));
    let _few: Vec<_> = (1..SMALL_BATCH_REQUESTS).map(|_| push(&queue)).collect();
    assert!(next.as_mut().now_or_never().is_none(), "the runtime polls its sockets first");
    let _last = push(&queue);
    let popped = next.now_or_never().expect("the batch is large enough");
    assert_eq!(popped[0].requests(), SMALL_BATCH_REQUESTS);
}

/// A connection that was woken, and is lost before it takes the requests, wakes another one.
#[tokio::test]
async fn a_lost_connection_leaves_the_requests_to_another() {
    let queue = lingering_queue();
    let mut lost = Box::pin(queue.next_at_least(0));
    let mut other = pin!(queue.next_at_least(0));
    assert!(lost.as_mut().now_or_never().is_none());
    assert!(other.as_mut().now_or_never().is_none());
    let _reply = push(&queue);
    assert!(lost.as_mut().now_or_never().is_none(), "the runtime polls its sockets first");
    drop(lost);
    let taken = timeout(Duration::from_secs(10), other).await.expect("a wake-up");
    assert_eq!(taken[0].requests(), 1);
}

/// A queue may have several connections. One that waits for more requests leaves a lone request to
/// another.
#[tokio::test]
async fn an_idle_connection_takes_a_lone_request() {
    let queue = queue_of(1_000);
    let mut busy = pin!(queue.next_at_least(3));
    assert!(busy.as_mut().now_or_never().is_none());
    let mut idle = pin!(queue.next_at_least(0));
    assert!(idle.as_mut().now_or_never().is_none());
    let _reply = queue.push(BatchScope::Server, None, smallvec![ask("a")]).unwrap();
    assert!(busy.as_mut().now_or_never().is_none());
    assert_eq!(idle.await[0].requests(), 1);
}

#[test]
fn a_batch_is_decided_when_the_last_of_it_was_asked() {
    let queue = queue_of(1_000);
    let _replies =
        [1, 3, 2].map(|us| queue.push(BatchScope::Server, Some(us), smallvec![ask("a")]).unwrap());
    let batches = queue.drain();
    assert_eq!(batches.iter().map(|batch| batch.now_us).collect::<Vec<_>>(), [Some(3)]);
}

#[test]
fn no_more_wait_than_may() {
    let queue = queue_of(2);
    let _first = queue.push(BatchScope::Server, None, smallvec![ask("a"), ask("b")]).unwrap();
    let error = queue.push(BatchScope::Server, None, smallvec![ask("c")]).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Busy);
    queue.drain();
    assert!(queue.push(BatchScope::Server, None, smallvec![ask("c")]).is_ok());
}

#[test]
fn what_nobody_waits_for_is_not_decided() {
    let queue = queue_of(10);
    let first = queue.push(BatchScope::Server, None, smallvec![ask("a")]).unwrap();
    let second = queue.push(BatchScope::Server, None, smallvec![ask("b"), ask("c")]).unwrap();
    let third = queue.push(BatchScope::Server, None, smallvec![ask("d")]).unwrap();
    drop(first);
    let mut pending = queue.drain().pop().unwrap();
    assert!(pending.drop_cancelled());
    let keys = |pending: &PendingBatch| -> Vec<_> {
        pending.batch.live_requests().map(|(_, lines)| lines[0].key).collect()
    };
    assert_eq!(keys(&pending), [1, 2, 3]);
    drop(third);
    let parts = pending.split();
    assert_eq!(parts.len(), 1, "one of two is still there");
    assert_eq!(parts[0].batch.tables.keys, [b"b", b"c"]);
    drop(second);
    assert!(!parts.into_iter().next().unwrap().drop_cancelled());
}
