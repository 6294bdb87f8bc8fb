//! Layers with one quota: charges, slots, refunds, and the headers that clients get.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use std::convert::Infallible;
use std::future::pending;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Waker};
use std::time::Duration;
use tollgate::Quota;
use tollgate::quota::Algorithm;
use tollgate_tower::{Decider, Standalone, TollgateLayer};
use tower::{Layer, Service, ServiceExt, service_fn};

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn request() -> Request<Full<Bytes>> {
    let request = Request::get("/").extension(SocketAddr::new(PEER, 4711));
    request.body(Full::default()).unwrap()
}

async fn ask<D: Decider>(layer: &TollgateLayer<D>, status: u16) -> Response<axum::body::Body> {
    let service = service_fn(move |_: Request<Full<Bytes>>| async move {
        let body = Full::new(Bytes::from_static(b"hello"));
        Ok::<_, Infallible>(Response::builder().status(status).body(body).unwrap())
    });
    layer.layer(service).oneshot(request()).await.unwrap()
}

fn header<'a, B>(response: &'a Response<B>, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn answers_and_refusals_name_the_quota() {
    let layer = TollgateLayer::new(Quota::per_day(1));
    let passed = ask(&layer, 200).await;
    assert_eq!(passed.status(), StatusCode::OK);
    assert_eq!(header(&passed, "ratelimit-policy"), r#""requests";q=1;w=86400"#);
    let limit = header(&passed, "ratelimit");
    assert!(limit.starts_with(r#""requests";r=0;t="#), "{limit}");
    let refused = ask(&layer, 200).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(header(&refused, "ratelimit-policy"), r#""requests";q=1;w=86400"#);
    assert!(header(&refused, "retry-after").parse::<u64>().unwrap() > 0);
    let body = refused.into_body().collect().await.unwrap().to_bytes();
    assert!(str::from_utf8(&body).unwrap().contains("quota-exceeded"), "{body:?}");
}

#[tokio::test]
async fn without_headers_only_a_refusal_has_its_wait() {
    let layer = TollgateLayer::new(Quota::per_day(1)).without_headers();
    assert!(!ask(&layer, 200).await.headers().contains_key("ratelimit"));
    let refused = ask(&layer, 200).await;
    assert!(!refused.headers().contains_key("ratelimit"), "{:?}", refused.headers());
    assert!(header(&refused, "retry-after").parse::<u64>().unwrap() > 0);
}

#[tokio::test]
async fn the_quota_follows_the_limits_that_the_service_names() {
    let service = service_fn(async |_: Request<Full<Bytes>>| {
        let response = Response::builder()
            .header("ratelimit-policy", r#""inner";q=9;w=60"#)
            .header("ratelimit", r#""inner";r=3;t=7"#);
        Ok::<_, Infallible>(response.body(Full::new(Bytes::new())).unwrap())
    });
    let layer = TollgateLayer::new(Quota::per_day(2));
    let response = layer.layer(service).oneshot(request()).await.unwrap();
    let policies = r#""inner";q=9;w=60, "requests";q=2;w=86400"#;
    assert_eq!(header(&response, "ratelimit-policy"), policies);
    let limits = header(&response, "ratelimit");
    assert!(limits.starts_with(r#""inner";r=3;t=7, "requests";r=1;t="#), "{limits}");
}

#[tokio::test]
async fn closures_see_the_head_of_a_request() {
    let layer = TollgateLayer::new(Quota::per_day(3));
    let is_root = |head: &http::request::Parts| head.uri.path() == "/";
    let costly = layer.clone().cost(move |head| if is_root(head) { 2 } else { 0 });
    assert_eq!(ask(&costly, 200).await.status(), StatusCode::OK);
    assert_eq!(ask(&costly, 200).await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(ask(&costly.clone().skip(is_root), 200).await.status(), StatusCode::OK);
    let other = IpAddr::from([192, 0, 2, 7]);
    let elsewhere = costly.peer(move |head| is_root(head).then_some(other));
    assert_eq!(ask(&elsewhere, 200).await.status(), StatusCode::OK);
    assert_eq!(layer.limiter().peek(other).remaining, 1);
    assert_eq!(layer.limiter().peek(PEER).remaining, 1);
}

/// Of each layer, one request is refunded and one is not.
async fn refunds<D: Decider>(layer: TollgateLayer<D>) {
    let layer = layer.refund(|answer| answer.status == StatusCode::NOT_MODIFIED);
    for (status, expected) in [(304, 304), (304, 304), (200, 200), (200, 429)] {
        assert_eq!(ask(&layer, status).await.status(), expected);
    }
}

#[tokio::test]
async fn answers_undo_charges_in_every_store() {
    refunds(TollgateLayer::new(Quota::per_day(1))).await;
    refunds(TollgateLayer::new(Quota::per_day(1)).store(tollgate::MemoryStore::default())).await;
}

#[tokio::test]
async fn a_slot_is_held_until_the_body_has_been_read() {
    let layer = TollgateLayer::new(Quota::concurrency(1));
    let first = ask(&layer, 200).await;
    assert_eq!(ask(&layer, 200).await.status(), StatusCode::TOO_MANY_REQUESTS);
    drop(first);
    let second = ask(&layer, 200).await;
    assert_eq!(second.status(), StatusCode::OK);
    let mut body = second.into_body();
    body.frame().await.unwrap().unwrap();
    assert_eq!(ask(&layer, 200).await.status(), StatusCode::OK, "its last bytes are sent");
}

#[tokio::test]
async fn a_slot_outlasts_its_ttl_while_its_request_runs() {
    let ttl = Duration::from_millis(1);
    let layer = TollgateLayer::new(Quota::concurrency(1).with_ttl(ttl).unwrap());
    let first = ask(&layer, 200).await;
    std::thread::sleep(2 * ttl);
    let refused = ask(&layer, 200).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "1", "at most the ttl");
    drop(first);
    assert_eq!(ask(&layer, 200).await.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_leaves_the_queue_gives_its_place_back() {
    let quota = Quota::per_day(24).with_algorithm(Algorithm::LeakyBucket).unwrap();
    let layer = TollgateLayer::new(quota.with_queue(1).unwrap());
    assert_eq!(ask(&layer, 200).await.status(), StatusCode::OK);
    let never =
        service_fn(|_: Request<Full<Bytes>>| pending::<Result<Response<Full<Bytes>>, ()>>());
    let mut delayed = Box::pin(layer.layer(never).call(request()));
    assert!(delayed.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(ask(&layer, 200).await.status(), StatusCode::TOO_MANY_REQUESTS);
    drop(delayed);
    let mut next = Box::pin(layer.layer(never).call(request()));
    assert!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[tokio::test]
async fn operators_see_and_block_keys_by_the_limiter() {
    let layer = TollgateLayer::new(Quota::per_day(2));
    assert_eq!(ask(&layer, 200).await.status(), StatusCode::OK);
    assert_eq!(layer.limiter().peek(PEER).remaining, 1);
    layer.limiter().block(PEER, std::time::Duration::from_secs(60));
    let blocked = ask(&layer, 200).await;
    assert_eq!(blocked.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(header(&blocked, "x-tollgate-source"), "blocked");
    layer.limiter().reset(PEER);
    assert_eq!(ask(&layer.clone(), 200).await.status(), StatusCode::OK);
}

/// The futures of both kinds of layers can be sent to other threads.
#[test]
fn futures_are_send() {
    fn call<D: Decider>(layer: &TollgateLayer<D>) -> impl Send {
        let service = service_fn(async |_: Request<Full<Bytes>>| {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
        });
        layer.layer(service).call(request())
    }
    drop(call(&TollgateLayer::new(Quota::per_day(1))));
    drop(call::<tollgate_tower::HttpGate<Standalone>>(
        &TollgateLayer::from_yaml("limits: [{name: a, rate: 5/min}]").unwrap(),
    ));
}

/// No limit reads the path, so no spelling of a path can avoid a limit.
#[tokio::test]
async fn a_path_with_two_readings_is_the_services_business() {
    let layer = TollgateLayer::new(Quota::per_day(1));
    let service = service_fn(async |_: Request<Full<Bytes>>| {
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
    });
    let request = Request::get("/x//../login").body(Full::default()).unwrap();
    let response = layer.layer(service).oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}
