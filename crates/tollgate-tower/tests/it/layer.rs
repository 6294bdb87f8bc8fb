//! The shared table of cases through the layer, and tests of the layer alone.

use crate::broken::Broken;
use crate::table::{Case, Fields, Got, Step, answers, failing, identity, settled, shed, tokens};
use crate::{NOW_US, layer};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use tollgate::engine::{Gate, GateSetup, policy};
use tollgate::store::LeaseStore;
use tollgate::{ManualClock, MemoryStore};
use tollgate_tower::{Decider, Standalone, TollgateLayer, Verifier};
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

/// Sends one request.
async fn ask<D: Decider>(layer: &TollgateLayer<D>, step: &Step) -> Got {
    let seen = Arc::new(Mutex::new(None));
    let kept = seen.clone();
    let (status, fields, body) = step.upstream;
    let behind = service_fn(move |request: Request<Full<Bytes>>| {
        let target = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let mut all = texts(request.headers());
        all.push((":path".into(), target));
        *kept.lock().unwrap() = Some(all);
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
    Got {
        status: head.status.as_u16(),
        answered: texts(&head.headers),
        body: String::from_utf8(body.to_vec()).unwrap(),
        seen,
    }
}

fn texts(headers: &http::HeaderMap) -> Vec<(String, String)> {
    let text = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.to_string(), value.to_str().unwrap().to_owned())
    };
    headers.iter().map(text).collect()
}

async fn play<D: Decider>(case: &Case, layer: &TollgateLayer<D>) {
    for (index, step) in case.steps.iter().enumerate() {
        step.check(&format!("{}, step {index}", case.name), &ask(layer, step).await);
    }
}

/// An engine over this store, with the policy of a case.
fn engine<S: LeaseStore + Default + 'static>(case: &Case) -> Arc<Standalone<S>> {
    let compiled = policy::compile(case.policy.as_bytes())
        .unwrap_or_else(|errors| panic!("{}: {errors:#?}", case.name));
    let gate = Gate::new(GateSetup::of(&compiled), S::default()).unwrap();
    let mut engine = Standalone::new(gate).with_clock(ManualClock::new(NOW_US));
    if let Some((_, keys)) = case.keys {
        let jwt = compiled.settings.jwt.as_ref().unwrap();
        engine = engine.with_tokens(Verifier::new(jwt, keys.as_bytes()).unwrap());
    }
    Arc::new(engine)
}

#[tokio::test]
async fn the_table_holds() {
    let cases = [
        answers::CASES,
        identity::CASES,
        tokens::CASES,
        settled::CASES,
        failing::CASES,
        shed::CASES,
    ];
    for case in cases.into_iter().flatten() {
        match case.storeless {
            true => play(case, &TollgateLayer::over(engine::<Broken>(case))).await,
            false => play(case, &TollgateLayer::over(engine::<MemoryStore>(case))).await,
        }
    }
}

/// Sends one request with these headers, and returns the status.
async fn status(layer: &TollgateLayer, target: &'static str, fields: Fields) -> u16 {
    ask(layer, &step(target, fields)).await.status
}

fn step(request: &'static str, fields: Fields) -> Step {
    Step {
        request,
        fields,
        upstream: (200, &[], ""),
        passes: true,
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
        assert_eq!(ask(&layer, &not_modified()).await.status, 304);
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
            refusal.headers.write(response.headers_mut());
            response
        },
    );
    let got = ask(&layer, &step("GET /x", &[])).await;
    assert_eq!((got.status, &*got.body), (420, "/x a None"));
    assert!(got.answered.iter().any(|field| field.0 == "ratelimit-policy"));
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
