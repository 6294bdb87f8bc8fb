//! `grpc.health.v1.Health`: whether the node is ready, once or from now on.

use super::GrpcResponse;
use super::framing;
use super::messages::{HealthCheckRequest, HealthCheckResponse};
use super::status::{NOT_FOUND, Status};
use crate::Node;
use crate::net::{BoxError, ResponseBody};
use bytes::Bytes;
use hyper::body::Frame;
use hyper::header::CONTENT_TYPE;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::watch;

const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;
const SERVICE_UNKNOWN: i32 = 3;

/// As `/readyz` says it, for the whole server and for its one service.
pub(super) fn check(
    node: &Node,
    request: &HealthCheckRequest,
) -> Result<HealthCheckResponse, Status> {
    match is_known(request) {
        true => Ok(HealthCheckResponse { status: serving_status(node.health.is_ready()) }),
        false => Err(Status::new(NOT_FOUND, "there is no such service")),
    }
}

/// The health now and whenever it changes. The watch ends with its connection, and keeps no idle
/// connection open.
pub(super) fn watch(node: &Node, request: &HealthCheckRequest) -> GrpcResponse {
    let ready = node.health.watch();
    let changes = match is_known(request) {
        true => HealthStream { last_sent: None, next: next_status(ready, None) },
        // An unknown service stays unknown. The protocol wants a status for it, not an error.
        false => HealthStream {
            last_sent: None,
            next: Box::pin(std::future::ready((SERVICE_UNKNOWN, ready))),
        },
    };
    let mut response = GrpcResponse::new(ResponseBody::watch(Box::pin(changes)));
    response.headers_mut().insert(CONTENT_TYPE, framing::GRPC);
    response
}

fn is_known(request: &HealthCheckRequest) -> bool {
    ["", super::SERVICE, "ratelimit"].contains(&&*request.service)
}

fn serving_status(is_ready: bool) -> i32 {
    if is_ready { SERVING } else { NOT_SERVING }
}

type NextStatus = Pin<Box<dyn Future<Output = (i32, watch::Receiver<bool>)> + Send>>;

struct HealthStream {
    /// What was said last.
    last_sent: Option<i32>,
    next: NextStatus,
}

/// What there is to say that has not been said.
fn next_status(mut ready: watch::Receiver<bool>, said: Option<i32>) -> NextStatus {
    Box::pin(async move {
        let unsaid =
            |ready: &bool| said != Some(SERVICE_UNKNOWN) && said != Some(serving_status(*ready));
        // The node outlives its connections. Without it no change can come.
        let found = ready.wait_for(unsaid).await.ok().map(|ready| serving_status(*ready));
        match found {
            Some(status) => (status, ready),
            None => std::future::pending().await,
        }
    })
}

impl hyper::body::Body for HealthStream {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let (status, ready) = ready!(this.next.as_mut().poll(context));
        this.last_sent = Some(status);
        this.next = next_status(ready, this.last_sent);
        let data = framing::frame_message(&HealthCheckResponse { status });
        Poll::Ready(Some(Ok(Frame::data(data))))
    }
}
