//! The charges that a request holds, how long it holds them, and what frees them.

use crate::table::lives::{Act, FIRST, LAST, LIVES};
use crate::{NOW_US, layer};
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty};
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tollgate::{ManualClock, TokioClock};
use tollgate_tower::{Engine, TollgateLayer};
use tower::{Layer, Service, ServiceExt, service_fn};

/// A body that the test sends in pieces.
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

type Answer = Response<axum::body::Body>;
type Sender = UnboundedSender<io::Result<&'static str>>;

/// A service whose responses the test controls.
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
    let mut call = Box::pin(service.call(Request::get("/").body(Empty::new()).unwrap()));
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(status(&layer).await, 429);
    drop(call);
    assert_eq!(status(&layer).await, 200);
    drop(hold);
}

/// A response may take longer than the `ttl` of a slot.
#[tokio::test(start_paused = true)]
async fn a_slot_is_held_until_the_last_byte_however_long_that_takes() {
    let slots = "limits: [{name: slots, algorithm: concurrency, rate: 1, ttl: 3s}]";
    let layer = layer(slots, TokioClock::starting_at(NOW_US));
    for _ in 0..2 {
        let (sender, first) = answer(&layer).await;
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(status(&layer).await, 429);
        }
        sender.send(Ok("end")).unwrap();
        drop(sender);
        first.into_body().collect().await.unwrap();
        assert_eq!(status(&layer).await, 200);
        // No request holds a slot, so none is renewed.
        tokio::time::sleep(Duration::from_secs(9)).await;
    }
}

/// One request per second, with a queue of two.
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
    // Other charges stay when the client leaves.
    assert_eq!(layer.left(), 96);
}

trait Left {
    /// The remaining units of the last limit.
    fn left(&self) -> u64;
}

impl Left for TollgateLayer {
    fn left(&self) -> u64 {
        let engine = self.engine();
        let (gate, now_us) = (engine.gate(), engine.now_us());
        let rules = gate.rules();
        let facts = rules.facts(Default::default());
        let verdict = gate.peek(&rules, now_us, &facts, 1, &mut Default::default()).now();
        verdict.rows.last().unwrap().outcome.remaining
    }
}

/// The state of one scenario.
struct World {
    layer: TollgateLayer,
    answered: HashMap<&'static str, (Sender, axum::body::Body)>,
    waiting: HashMap<&'static str, Pin<Box<dyn Future<Output = Answer> + Send>>>,
    reached: usize,
}

impl World {
    async fn act(&mut self, act: Act, at: &str) {
        match act {
            Act::Begin(name) => {
                let (sender, response) = answer(&self.layer).await;
                assert_eq!(response.status(), 200, "{at}");
                sender.send(Ok(FIRST)).unwrap();
                let mut body = response.into_body();
                body.frame().await.unwrap().unwrap();
                self.reached += 1;
                self.answered.insert(name, (sender, body));
            }
            Act::Wait(name) => {
                let mut future = Box::pin(behind(&self.layer, "application/json").1);
                let context = &mut Context::from_waker(Waker::noop());
                assert!(future.as_mut().poll(context).is_pending(), "{at}");
                self.waiting.insert(name, future);
            }
            Act::End(name) | Act::Break(name) => {
                let (sender, mut body) = self.answered.remove(name).unwrap();
                let ends = matches!(act, Act::End(_));
                let last = if ends { Ok(LAST) } else { Err(io::Error::other("gone")) };
                sender.send(last).unwrap();
                drop(sender);
                assert_eq!(body.frame().await.unwrap().is_ok(), ends, "{at}");
                if ends {
                    assert!(body.frame().await.is_none(), "{at}");
                }
            }
            Act::Leave(name) => drop((self.answered.remove(name), self.waiting.remove(name))),
            Act::Passes => {
                let (sender, response) = answer(&self.layer).await;
                assert_eq!(response.status(), 200, "{at}");
                drop(sender);
                response.into_body().collect().await.unwrap();
                self.reached += 1;
            }
            Act::Refused => assert_eq!(status(&self.layer).await, 429, "{at}"),
            Act::Left(left) => assert_eq!(self.layer.left(), left, "{at}"),
            Act::Reached(count) => assert_eq!(self.reached, count, "{at}"),
        }
    }
}

#[tokio::test]
async fn lives_go_as_told() {
    for life in LIVES {
        let layer = layer(life.policy, ManualClock::new(NOW_US));
        let mut world =
            World { layer, answered: HashMap::new(), waiting: HashMap::new(), reached: 0 };
        for (index, act) in life.acts.iter().enumerate() {
            world.act(*act, &format!("{}, {index}: {act:?}", life.name)).await;
        }
    }
}
