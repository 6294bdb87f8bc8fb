//! What a request holds, for how long, and what frees it.

use crate::{NOW_US, layer};
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tollgate::{ManualClock, TokioClock};
use tollgate_tower::{Engine, Standalone, TollgateBody, TollgateLayer};
use tower::{Layer, Service, ServiceExt, service_fn};

/// A body whose pieces come when the test says so.
struct Pieces(UnboundedReceiver<io::Result<&'static str>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let frame = |piece: &'static str| Frame::data(Bytes::from_static(piece.as_bytes()));
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(frame)))
    }
}

type Answer = Response<TollgateBody<Pieces, Standalone>>;
type Sender = UnboundedSender<io::Result<&'static str>>;

/// A service whose answers are in the test's hand.
fn behind(
    layer: &TollgateLayer,
    kind: &'static str,
) -> (Sender, impl Future<Output = Answer> + Send + use<>) {
    let (sender, pieces) = unbounded_channel();
    let pieces = Arc::new(Mutex::new(Some(Pieces(pieces))));
    let kind = http::HeaderValue::from_static(kind);
    let service = service_fn(move |_: Request<Empty<Bytes>>| {
        let body = pieces.lock().unwrap().take().unwrap();
        let response = Response::builder().header("content-type", &kind).body(body).unwrap();
        async { Ok::<_, io::Error>(response) }
    });
    let request = Request::get("/").body(Empty::new()).unwrap();
    let call = layer.layer(service).oneshot(request);
    (sender, async { call.await.unwrap() })
}

async fn answer(layer: &TollgateLayer) -> (Sender, Answer) {
    let (sender, future) = behind(layer, "application/json");
    (sender, future.await)
}

async fn status(layer: &TollgateLayer) -> u16 {
    answer(layer).await.1.status().as_u16()
}

const SLOT: &str = "limits: [{name: slots, algorithm: concurrency, rate: 1, ttl: 1h}]";

#[tokio::test]
async fn a_slot_is_held_until_the_body_ends() {
    let layer = layer(SLOT, ManualClock::new(NOW_US));
    let (sender, response) = answer(&layer).await;
    let mut body = response.into_body();
    sender.send(Ok("a")).unwrap();
    body.frame().await.unwrap().unwrap();
    assert_eq!(status(&layer).await, 429, "the body is under way");
    drop(sender);
    assert!(body.frame().await.is_none());
    assert_eq!(status(&layer).await, 200, "the body has ended, though it is not dropped");
    drop(body);
}

#[tokio::test]
async fn a_client_that_leaves_frees_its_slot() {
    let layer = layer(SLOT, ManualClock::new(NOW_US));
    let (_sender, response) = answer(&layer).await;
    assert_eq!(status(&layer).await, 429);
    drop(response);
    let (sender, response) = answer(&layer).await;
    assert_eq!(response.status(), 200, "dropped in the middle of an answer");
    sender.send(Err(io::Error::other("gone"))).unwrap();
    let mut body = response.into_body();
    assert!(body.frame().await.unwrap().is_err());
    assert_eq!(status(&layer).await, 200, "the service broke off");
}

#[tokio::test]
async fn a_client_that_leaves_before_the_answer_frees_its_slot() {
    let layer = layer(SLOT, ManualClock::new(NOW_US));
    let (hold, held) = oneshot::channel::<()>();
    let held = Arc::new(Mutex::new(Some(held)));
    let service = service_fn(move |_: Request<Empty<Bytes>>| {
        let held = held.lock().unwrap().take().unwrap();
        async move {
            let _ = held.await;
            Ok::<_, io::Error>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let mut service = layer.layer(service);
    let mut call = service.call(Request::get("/").body(Empty::new()).unwrap());
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(status(&layer).await, 429);
    drop(call);
    assert_eq!(status(&layer).await, 200);
    drop(hold);
}

/// One a second, two may wait.
const PACE: &str = "headers: none\nlimits: [{name: pace, algorithm: leaky-bucket, rate: 1/s, queue: 2}, {name: all, rate: 100/366d, algorithm: gcra}]";

#[tokio::test(start_paused = true)]
async fn requests_wait_for_their_turn() {
    let layer = layer(PACE, TokioClock::starting_at(NOW_US));
    let begin = tokio::time::Instant::now();
    let calls: Vec<_> = (0..3).map(|_| tokio::spawn(behind(&layer, "text/plain").1)).collect();
    let mut turns = Vec::new();
    for call in calls {
        assert_eq!(call.await.unwrap().status(), 200);
        turns.push(begin.elapsed().as_secs());
    }
    assert_eq!(turns, [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_the_end_of_the_queue_frees_its_place() {
    let layer = layer(PACE, TokioClock::starting_at(NOW_US));
    assert_eq!(status(&layer).await, 200);
    let mut second = Box::pin(behind(&layer, "text/plain").1);
    let mut third = Box::pin(behind(&layer, "text/plain").1);
    let context = &mut Context::from_waker(Waker::noop());
    assert!(second.as_mut().poll(context).is_pending());
    assert!(third.as_mut().poll(context).is_pending());
    assert_eq!(status(&layer).await, 429, "both places are taken");
    drop(third);
    let begin = tokio::time::Instant::now();
    assert_eq!(status(&layer).await, 200, "the last place is free again");
    assert_eq!(begin.elapsed(), Duration::from_secs(2));
    assert_eq!(second.await.status(), 200);
    // What else was counted stays counted: whoever leaves has asked all the same.
    assert_eq!(layer.left(), 96);
}

trait Left {
    /// What is left of the last limit.
    fn left(&self) -> u64;
}

impl Left for TollgateLayer {
    fn left(&self) -> u64 {
        let engine = self.engine();
        let (gate, now_us) = (engine.gate(), engine.now_us());
        let rules = gate.rules();
        let facts = rules.facts(Default::default());
        let verdict = gate.peek_now(&rules, now_us, &facts, 1, &mut Default::default());
        verdict.rows.last().unwrap().outcome.remaining
    }
}

const TOKENS: &str = "limits: [{name: tokens, rate: 100/366d, algorithm: gcra, cost: {estimate: 10, response: {json: n}}}]";

#[tokio::test]
async fn costs_are_settled_when_the_body_ends() {
    let layer = layer(TOKENS, ManualClock::new(NOW_US));
    let (sender, response) = answer(&layer).await;
    assert_eq!(layer.left(), 90, "the estimate is reserved");
    let mut body = response.into_body();
    for piece in ["{\"n", "\": 4", "2}"] {
        sender.send(Ok(piece)).unwrap();
        body.frame().await.unwrap().unwrap();
        assert_eq!(layer.left(), 90, "not before the end");
    }
    drop(sender);
    assert!(body.frame().await.is_none());
    assert_eq!(layer.left(), 58);
}

#[tokio::test]
async fn an_answer_that_breaks_off_costs_the_estimate_at_least() {
    let layer = layer(TOKENS, ManualClock::new(NOW_US));
    for (piece, left) in [("{\"n\":3,", 90), ("{\"n\":30,", 60), ("{", 50)] {
        let (sender, response) = answer(&layer).await;
        let mut body = response.into_body();
        sender.send(Ok(piece)).unwrap();
        body.frame().await.unwrap().unwrap();
        drop(body);
        assert_eq!(layer.left(), left, "{piece}");
    }
}
