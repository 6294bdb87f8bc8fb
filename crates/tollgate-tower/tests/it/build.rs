//! Layers built from quotas, from files, and over Redis.

use http::Request;
use http::request::Builder;
use http_body_util::Full;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use tollgate::Quota;
use tollgate_faults::redis::Redis;
use tollgate_tower::{Decider, PolicyFileError, TollgateLayer};
use tower::{Layer, ServiceExt, service_fn};

async fn status<D: Decider>(layer: &TollgateLayer<D>, request: Builder) -> u16 {
    let behind = service_fn(async |_: Request<Full<bytes::Bytes>>| {
        Ok::<_, Infallible>(http::Response::new(Full::new(bytes::Bytes::new())))
    });
    let request = request.body(Full::default()).unwrap();
    layer.layer(behind).oneshot(request).await.unwrap().status().as_u16()
}

fn from(address: impl Into<IpAddr>) -> Builder {
    Request::get("/").extension(SocketAddr::new(address.into(), 4711))
}

#[tokio::test]
async fn one_quota_counts_each_address() {
    let layer = TollgateLayer::new(Quota::per_day(1));
    assert_eq!(status(&layer, from([192, 0, 2, 1])).await, 200);
    assert_eq!(status(&layer, from([192, 0, 2, 1])).await, 429);
    assert_eq!(status(&layer, from([192, 0, 2, 2])).await, 200);
    let network = |last| Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, last);
    assert_eq!(status(&layer, from(network(1))).await, 200);
    assert_eq!(status(&layer, from(network(2))).await, 429, "one client has a whole network");
    // Requests without an address share one count, so that they are limited too.
    assert_eq!(status(&layer, Request::get("/")).await, 200);
    assert_eq!(status(&layer, Request::get("/")).await, 429);
}

#[tokio::test]
async fn one_quota_counts_each_key() {
    let layer = TollgateLayer::by(Quota::per_day(1), |head| {
        Some(head.headers.get("x-api-key")?.to_str().ok()?.into())
    });
    let with = |key: &str| Request::get("/").header("x-api-key", key);
    assert_eq!(status(&layer, with("one")).await, 200);
    assert_eq!(status(&layer, with("one")).await, 429);
    assert_eq!(status(&layer, with("two")).await, 200);
    assert_eq!(status(&layer, Request::get("/")).await, 200);
    assert_eq!(status(&layer, Request::get("/")).await, 429, "those without a key share a count");
}

#[tokio::test]
async fn a_quota_of_zero_closes_the_service() {
    let layer = TollgateLayer::new(Quota::per_day(0));
    assert_eq!(status(&layer, from([192, 0, 2, 1])).await, 429);
}

#[tokio::test]
async fn processes_share_counts_in_redis() {
    let server = Redis::start();
    let one = TollgateLayer::new(Quota::per_day(3)).redis(&server.url()).unwrap();
    let other = TollgateLayer::new(Quota::per_day(3)).redis(&server.url()).unwrap();
    // On a busy machine, calls that take longer than 25 ms are decided by the failure policy, so
    // more may be admitted. Without sharing, one process would refuse at most three requests.
    let mut refused = 0;
    for _ in 0..10 {
        refused += usize::from(status(&one, from([192, 0, 2, 1])).await == 429);
        refused += usize::from(status(&other, from([192, 0, 2, 1])).await == 429);
    }
    assert!(refused >= 15, "{refused}");
    let error = TollgateLayer::new(Quota::per_day(3)).redis("localhost").unwrap_err();
    assert!(error.to_string().contains("redis://localhost:6379/0"), "{error}");
}

#[test]
fn a_file_says_what_is_wrong_and_where() {
    let folder = std::env::temp_dir().join(format!("tollgate-tower-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("limits.yaml");
    let load = || TollgateLayer::from_file(&path).map(drop);
    let missing = load().unwrap_err();
    assert!(matches!(missing, PolicyFileError::Unreadable(..)), "{missing}");
    assert!(missing.to_string().contains("limits.yaml: cannot be read"), "{missing}");
    std::fs::write(&path, "limits:\n  - {name: a, rate: 5/minute}\n  - {name: b}\n").unwrap();
    let error: Box<dyn std::error::Error> = Box::new(load().unwrap_err());
    let shown = error.to_string();
    assert!(shown.contains("limits.yaml:2:21: error[TG010]: `5/minute` is not a rate"), "{shown}");
    assert!(shown.contains("limits.yaml:3:"), "{shown}");
    assert!(shown.contains("write `min` for the unit"), "{shown}");
    std::fs::write(&path, "limits: [{name: a, rate: 5/min}]").unwrap();
    assert!(load().is_ok());
    std::fs::remove_dir_all(&folder).unwrap();
}
