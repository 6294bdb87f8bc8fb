//! The table, through the layer; and what only a layer has.

use crate::table::{CASES, Fields, Step};
use crate::{NOW_US, layer};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use tollgate::ManualClock;
use tollgate_tower::TollgateLayer;
use tower::{Layer, ServiceExt, service_fn};

const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4711);

fn request(step: &Step) -> Request<Full<Bytes>> {
    let (method, target) = step.request.split_once(' ').unwrap();
    let mut builder = Request::builder().method(method).uri(target).extension(PEER);
    for (name, value) in step.fields {
        builder = builder.header(*name, *value);
    }
    builder.body(Full::default()).unwrap()
}

/// Asks once. The second value is the request as the service behind saw it.
async fn ask(
    layer: &TollgateLayer,
    step: &Step,
) -> (Response<Bytes>, Option<http::request::Parts>) {
    let seen = Arc::new(Mutex::new(None));
    let kept = seen.clone();
    let (status, fields, body) = step.upstream;
    let behind = service_fn(move |request: Request<Full<Bytes>>| {
        *kept.lock().unwrap() = Some(request.into_parts().0);
        async move {
            let mut builder = Response::builder().status(status);
            for (name, value) in fields {
                builder = builder.header(*name, *value);
            }
            Ok::<_, Infallible>(
                builder.body(Full::new(Bytes::from_static(body.as_bytes()))).unwrap(),
            )
        }
    });
    let response = layer.layer(behind).oneshot(request(step)).await.unwrap();
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let seen = seen.lock().unwrap().take();
    (Response::from_parts(head, body), seen)
}

#[tokio::test]
async fn the_table_holds() {
    for case in CASES {
        let layer = layer(case.policy, ManualClock::new(NOW_US));
        for (index, step) in case.steps.iter().enumerate() {
            let at = format!("{}, step {index}", case.name);
            let (response, seen) = ask(&layer, step).await;
            assert_eq!(response.status(), step.status, "{at}: {response:?}");
            for (name, expected) in step.answered {
                let found = response.headers().get(*name).map(|value| value.to_str().unwrap());
                assert_eq!(found, *expected, "{at}: {name} of the answer");
            }
            if let Some(body) = step.body {
                assert_eq!(response.body(), body.as_bytes(), "{at}");
            }
            assert_eq!(seen.is_some(), step.status != 429, "{at}: whether it passed");
            let Some(seen) = seen else { continue };
            for (name, expected) in step.seen {
                let target = seen.uri.path_and_query().map(|target| target.as_str());
                let field = || seen.headers.get(*name).map(|value| value.to_str().unwrap());
                let found = if *name == ":path" { target } else { field() };
                assert_eq!(found, *expected, "{at}: {name} of the request");
            }
        }
    }
}

/// One request with these fields; its status.
async fn status(layer: &TollgateLayer, target: &'static str, fields: Fields) -> u16 {
    let (response, _) = ask(layer, &step(target, fields)).await;
    response.status().as_u16()
}

fn step(request: &'static str, fields: Fields) -> Step {
    Step {
        request,
        fields,
        upstream: (200, &[], ""),
        status: 0,
        answered: &[],
        seen: &[],
        body: None,
    }
}

const ONE: &str =
    "headers: [x-ratelimit-delta]\nlimits: [{name: a, rate: 3/366d, algorithm: gcra, key: [user]}]";

#[tokio::test]
async fn extractors_costs_and_exceptions_are_the_services_own() {
    let layer = layer(ONE, ManualClock::new(NOW_US))
        .attribute("user", |head| head.uri.path().strip_prefix("/u/").map(Into::into))
        .attribute("unused", |_| panic!("no limit asks for it"))
        .cost(|head| if head.method == "POST" { 2 } else { 1 })
        .skip(|head| head.headers.contains_key("x-health"));
    assert_eq!(status(&layer, "POST /u/1", &[]).await, 200);
    assert_eq!(status(&layer, "POST /u/1", &[]).await, 429);
    assert_eq!(status(&layer, "GET /u/1", &[]).await, 200);
    assert_eq!(status(&layer, "GET /u/1", &[("x-health", "")]).await, 200);
    assert_eq!(status(&layer, "GET /u/1", &[]).await, 429);
    assert_eq!(status(&layer, "GET /u/2", &[]).await, 200);
}

#[tokio::test]
async fn answers_can_undo_what_their_requests_counted_for() {
    let layer = layer(ONE, ManualClock::new(NOW_US))
        .attribute("user", |_| Some("1".into()))
        .refund(|answer| answer.status == 304);
    let not_modified = || Step { upstream: (304, &[], ""), ..step("GET /", &[]) };
    for _ in 0..5 {
        assert_eq!(ask(&layer, &not_modified()).await.0.status(), 304);
    }
    for expected in [200, 200, 200, 429] {
        assert_eq!(status(&layer, "GET /", &[]).await, expected);
    }
}

#[tokio::test]
async fn refusals_can_have_other_words() {
    let layer = layer("limits: [{name: a, rate: 0/min}]", ManualClock::new(NOW_US)).refusal(
        |refusal, head| {
            let words = format!(
                "{} {} {:?}",
                head.uri.path(),
                refusal.limits.join(","),
                refusal.retry_after_s
            );
            let mut response = Response::builder().status(420).body(Bytes::from(words)).unwrap();
            refusal.shown.write(response.headers_mut());
            response
        },
    );
    let (response, _) = ask(&layer, &step("GET /x", &[])).await;
    assert_eq!((response.status().as_u16(), &**response.body()), (420, &b"/x a None"[..]));
    assert!(response.headers().contains_key("ratelimit-policy"));
}

#[tokio::test]
async fn layers_and_their_clones_share_counts() {
    let layer = layer("limits: [{name: a, rate: 2/366d}]", ManualClock::new(NOW_US));
    assert_eq!(status(&layer, "GET /", &[]).await, 200);
    assert_eq!(status(&layer.clone(), "GET /", &[]).await, 200);
    assert_eq!(status(&layer, "GET /", &[]).await, 429);
    let other = TollgateLayer::over(layer.engine().clone());
    assert_eq!(status(&other, "GET /", &[]).await, 429);
}
