//! Calls the service in the process: no sockets, no HTTP/1.1.

use crate::service::router;
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use http_body_util::BodyExt;
use std::error::Error;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tower::Service;

/// A service with one of the layers.
pub struct Calls(Router);

impl Calls {
    /// Creates the service with the layer of this name.
    pub fn new(layer: &str) -> Result<Self, Box<dyn Error>> {
        Ok(Self(router(layer)?))
    }

    /// Sends `count` requests, and reads the answers to their end. Returns the number of 200s.
    pub fn run(&self, count: usize) -> usize {
        let mut router = self.0.clone();
        (0..count).filter(|_| now(answer(&mut router))).count()
    }
}

async fn answer(router: &mut Router) -> bool {
    let builder = Request::builder()
        .uri("/orders/42?page=2")
        .header("host", "api.example.com")
        .header("user-agent", "bench/1.0")
        .header("accept", "application/json")
        .header("accept-encoding", "gzip, br")
        .header("authorization", "Bearer 0123456789abcdef")
        .extension(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 4_711))));
    let Ok(request) = builder.body(Body::empty()) else { return false };
    let Ok(response) = router.call(request).await;
    let (head, mut body) = response.into_parts();
    while let Some(Ok(frame)) = body.frame().await {
        std::hint::black_box(frame);
    }
    head.status == 200
}

/// The output of a future that never waits; no service here waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the service waits for nothing"),
    }
}
