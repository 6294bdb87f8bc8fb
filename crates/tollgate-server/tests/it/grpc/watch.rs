//! The health service's `Watch`: sends each change of the status.

use super::*;
use hyper::body::Incoming;
use tollgate_server::front::grpc::messages::{HealthCheckRequest, HealthCheckResponse};

const WATCH: &str = "/grpc.health.v1.Health/Watch";

async fn watch(address: SocketAddr, service: &str) -> Incoming {
    let asked = framed(&HealthCheckRequest { service: service.to_owned() });
    let response = open(address, WATCH, &asked, &[]).await;
    assert_eq!(response.headers()["content-type"], "application/grpc");
    response.into_body()
}

/// The next status; `None` when the connection ends.
async fn next(body: &mut Incoming) -> Option<i32> {
    let data = body.frame().await?.ok()?.into_data().unwrap();
    assert_eq!(data.len(), 5 + data[4] as usize, "one message a frame");
    Some(HealthCheckResponse::decode(&data[5..]).unwrap().status)
}

#[test]
fn whoever_watches_is_told_at_once_and_of_every_change() {
    let node = Node::start("", &[]);
    let health = &node.running.node().health;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut all = watch(node.address(), "").await;
        let mut ours = watch(node.address(), "envoy.service.ratelimit.v3.RateLimitService").await;
        assert_eq!((next(&mut all).await, next(&mut ours).await), (Some(1), Some(1)));
        health.fail("test", "told to");
        assert_eq!((next(&mut all).await, next(&mut ours).await), (Some(2), Some(2)));
        health.degrade("other", "nothing that keeps traffic away");
        health.clear("test");
        assert_eq!((next(&mut all).await, next(&mut ours).await), (Some(1), Some(1)));
        let mut other = watch(node.address(), "other").await;
        assert_eq!(next(&mut other).await, Some(3), "SERVICE_UNKNOWN");
    });
}

/// A node that drains sends its status first, and does not wait for watchers.
#[test]
fn a_drain_is_told_and_ends_the_watch() {
    let node = Node::start("drain: 1h", &[]);
    let address = node.address();
    let (told, heard) = std::sync::mpsc::channel();
    let watcher = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut all = watch(address, "").await;
            assert_eq!(next(&mut all).await, Some(1));
            told.send(()).unwrap();
            (next(&mut all).await, next(&mut all).await)
        })
    });
    heard.recv().unwrap();
    let Node { running, folder: _folder } = node;
    running.drain();
    assert_eq!(watcher.join().unwrap(), (Some(2), None));
}
