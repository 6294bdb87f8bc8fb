//! The adaptive shedder in front of a service: its queue, refusals and refunds.

use crate::{NOW_US, layer};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::oneshot;
use tollgate::TokioClock;
use tollgate::engine::{ShedCounts, ShedReason};
use tollgate_tower::{Engine, TollgateLayer};
use tower::{Layer, Service, service_fn};

const ONE: &str =
    "classes: [{name: critical, match: {path: /charge}}, {name: normal, default: true}]
shed: {adaptive: {min: 1, max: 1}, fleet: {capacity: 100}}
headers: [draft-11]
limits: [{name: a, rate: 100/366d, algorithm: fixed-window}]";

type Reply = Response<axum::body::Body>;
type Call = Pin<Box<dyn Future<Output = Result<Reply, io::Error>> + Send>>;

/// A call to a service that responds when the test tells it to.
fn call(layer: &TollgateLayer, path: &str) -> (oneshot::Sender<u16>, Call) {
    let (answer, answered) = oneshot::channel::<u16>();
    let answered = Arc::new(Mutex::new(Some(answered)));
    let service = service_fn(move |_: Request<Empty<Bytes>>| {
        let answered = answered.lock().unwrap().take().unwrap();
        async move {
            let status = answered.await.map_err(|_| io::Error::other("gone"))?;
            Ok::<_, io::Error>(Response::builder().status(status).body(Empty::new()).unwrap())
        }
    });
    let request = Request::get(path).body(Empty::new()).unwrap();
    (answer, Box::pin(layer.layer(service).call(request)))
}

fn poll(call: &mut Call) -> Poll<u16> {
    let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    polled.map(|reply| reply.unwrap().status().as_u16())
}

fn counts(layer: &TollgateLayer, class: &str) -> ShedCounts {
    let all = layer.engine().gate().shed_counts();
    all.into_iter().find(|(name, _)| &**name == class).expect(class).1
}

/// The remaining units of the limit, without entering the shedders.
fn remaining(layer: &TollgateLayer) -> u64 {
    let gate = layer.engine().gate();
    let rules = gate.rules();
    let (facts, mut work) = (rules.facts(Default::default()), Default::default());
    gate.peek(&rules, NOW_US, &facts, 1, &mut work).now().rows[0].outcome.remaining
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_the_slot_of_the_one_before_it() {
    let layer = layer(ONE, TokioClock::starting_at(NOW_US));
    let (answer, mut first) = call(&layer, "/");
    assert!(poll(&mut first).is_pending());
    let (second_answer, mut second) = call(&layer, "/");
    assert!(poll(&mut second).is_pending());
    assert_eq!(counts(&layer, "normal").admitted, 1, "the second waits");
    answer.send(200).unwrap();
    let reply = first.await.unwrap();
    reply.into_body().collect().await.unwrap();
    second_answer.send(200).unwrap();
    assert_eq!(second.await.unwrap().status(), 200);
    let normal = counts(&layer, "normal");
    assert_eq!((normal.admitted, normal.shed, normal.in_flight), (2, [0; 3], 0));
    assert_eq!(remaining(&layer), 98);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_too_long_is_shed_and_given_back() {
    let layer = layer(ONE, TokioClock::starting_at(NOW_US));
    let (_answer, mut first) = call(&layer, "/");
    assert!(poll(&mut first).is_pending());
    let (_unused, second) = call(&layer, "/");
    let reply = tokio::time::timeout(Duration::from_secs(5), second).await.unwrap().unwrap();
    assert_eq!(reply.status(), 503);
    assert_eq!(reply.headers()["x-tollgate-source"], "shed");
    let wait_s: u64 = reply.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait_s), "{wait_s}");
    let normal = counts(&layer, "normal");
    assert_eq!((normal.admitted, normal.shed.iter().sum::<u64>(), normal.in_flight), (1, 1, 1));
    assert_eq!(normal.shed[ShedReason::ALL.iter().position(|it| it.name() == "fleet").unwrap()], 0);
    assert_eq!(remaining(&layer), 99, "the limit got its unit back");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_the_queue_gets_everything_back() {
    let layer = layer(ONE, TokioClock::starting_at(NOW_US));
    let (answer, mut first) = call(&layer, "/");
    assert!(poll(&mut first).is_pending());
    let (_unused, mut second) = call(&layer, "/");
    assert!(poll(&mut second).is_pending());
    assert_eq!(counts(&layer, "normal").offered(), 1, "the wait has not ended");
    drop(second);
    assert_eq!(remaining(&layer), 99);
    assert_eq!(counts(&layer, "normal").in_flight, 1);
    answer.send(200).unwrap();
    first.await.unwrap();
    // The slot is free: no queued request took it.
    let (answer, third) = call(&layer, "/");
    answer.send(200).unwrap();
    assert_eq!(third.await.unwrap().status(), 200);
    let normal = counts(&layer, "normal");
    assert_eq!((normal.in_flight, normal.left), (0, 1));
    let shed: u64 = normal.shed.iter().sum();
    assert_eq!((normal.offered(), normal.admitted + shed + normal.left), (3, 3));
}

/// Many clients at once: memory and slots are freed, and no client is served twice.
#[tokio::test(start_paused = true)]
async fn ten_thousand_clients_leave_nothing_behind() {
    let policy =
        "shed: {adaptive: {min: 1, max: 4}, fair_by: [header.x-user], fleet: {capacity: 100}}
limits: []";
    let layer = layer(policy, TokioClock::starting_at(NOW_US));
    let served = Arc::new(Mutex::new(0));
    let count = served.clone();
    let service = service_fn(move |_: Request<Empty<Bytes>>| {
        let count = count.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            *count.lock().unwrap() += 1;
            Ok::<_, io::Error>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let mut service = layer.layer(service);
    let calls = (0..10_000).map(|user| {
        let request = Request::get("/").header("x-user", user.to_string());
        tokio::spawn(service.call(request.body(Empty::new()).unwrap()))
    });
    let (mut admitted, mut shed) = (0, 0);
    for call in calls.collect::<Vec<_>>() {
        match call.await.unwrap().unwrap().status().as_u16() {
            200 => admitted += 1,
            503 => shed += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!(admitted, *served.lock().unwrap());
    assert!(admitted > 0 && shed > 0, "{admitted} admitted, {shed} shed");
    let all = counts(&layer, "default");
    assert_eq!((all.offered(), all.admitted, all.in_flight), (10_000, admitted, 0));
}

/// In shadow mode a full node only reports it.
#[tokio::test(start_paused = true)]
async fn shadow_sheds_nothing() {
    let policy = "shed: {adaptive: {min: 1, max: 1}, mode: shadow}\nlimits: []";
    let layer = layer(policy, TokioClock::starting_at(NOW_US));
    let calls: Vec<_> = (0..50).map(|_| call(&layer, "/")).collect();
    let mut waiting = Vec::new();
    for (answer, mut call) in calls {
        assert!(poll(&mut call).is_pending());
        waiting.push((answer, call));
    }
    let all = counts(&layer, "default");
    assert_eq!((all.admitted, all.shed, all.in_flight), (50, [0; 3], 50));
    // The queue has room for eight requests.
    assert_eq!(all.shadow_shed, [0, 0, 41]);
    tokio::time::advance(Duration::from_secs(1)).await;
    for (answer, call) in waiting {
        answer.send(200).unwrap();
        assert_eq!(call.await.unwrap().status(), 200);
    }
    // The queued requests would have been shed at their deadline.
    assert_eq!(counts(&layer, "default").shadow_shed, [0, 0, 49]);
}

/// A shadow queue delays no request, so no queueing time is counted.
#[tokio::test(start_paused = true)]
async fn nobody_waits_in_the_queue_of_a_shadow() {
    for (mode, waited_us) in [("shadow", 0), ("enforce", 1_000)] {
        let policy = format!("shed: {{adaptive: {{min: 1, max: 1}}, mode: {mode}}}\nlimits: []");
        let layer = layer(&policy, TokioClock::starting_at(NOW_US));
        let ((first, mut one), (second, mut other)) = (call(&layer, "/"), call(&layer, "/"));
        assert!(poll(&mut one).is_pending() && poll(&mut other).is_pending());
        tokio::time::advance(Duration::from_millis(1)).await;
        first.send(200).unwrap();
        assert_eq!(one.await.unwrap().status(), 200);
        second.send(200).unwrap();
        assert_eq!(other.await.unwrap().status(), 200);
        let classes = layer.engine().gate().adaptive().unwrap().classes;
        assert_eq!(classes[0].queue_us, waited_us, "{mode}");
    }
}

/// A body that never ends, like that of an event stream.
struct Endless;

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, io::Error>>> {
        std::task::Poll::Pending
    }
}

/// The upstream has responded, so the client decides how long the response lasts.
#[tokio::test(start_paused = true)]
async fn a_response_that_streams_holds_no_slot_of_the_adaptive_shedder() {
    let policy = "shed: {adaptive: {min: 1, max: 1}}\nlimits: []";
    let layer = layer(policy, TokioClock::starting_at(NOW_US));
    let service =
        service_fn(async |_: Request<Empty<Bytes>>| Ok::<_, io::Error>(Response::new(Endless)));
    let mut service = layer.layer(service);
    let mut open = Vec::new();
    for _ in 0..25 {
        let request = Request::get("/").body(Empty::new()).unwrap();
        let response = service.call(request).await.unwrap();
        assert_eq!(response.status(), 200);
        open.push(response);
    }
    assert_eq!(counts(&layer, "default").in_flight, 25);
    drop(open);
    assert_eq!(counts(&layer, "default").in_flight, 0);
}
