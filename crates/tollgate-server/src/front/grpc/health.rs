//! `grpc.health.v1.Health` and `/healthcheck`: whether the node is ready, once or from now on.

use super::fault::{NOT_FOUND, Status};
use super::wire::{HealthCheckRequest, HealthCheckResponse};
use super::{json, status};
use crate::Node;
use crate::net::{Body, Response};
use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::Frame;
use hyper::header::CONTENT_TYPE;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::watch;

/// Where the original tells HTTP clients.
pub(super) const PATH: &str = "/healthcheck";

const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;
const SERVICE_UNKNOWN: i32 = 3;

/// As `/readyz` says it, for the whole server and for its one service.
pub(super) fn check(
    node: &Node,
    request: &HealthCheckRequest,
) -> Result<HealthCheckResponse, Status> {
    match is_known(request) {
        true => Ok(HealthCheckResponse { status: shown(node.health.is_ready()) }),
        false => Err(Status::new(NOT_FOUND, "there is no such service")),
    }
}

/// The answer of the original at [`PATH`]: 200 and `OK`, or 500 and nothing.
pub(super) fn http(node: &Node) -> Response {
    if node.health.is_ready() {
        json::plain(StatusCode::OK, "OK")
    } else {
        json::plain(StatusCode::INTERNAL_SERVER_ERROR, "")
    }
}

/// The same now and whenever it changes, for as long as the connection lasts: this keeps none open that is idle otherwise.
pub(super) fn watch(node: &Node, request: &HealthCheckRequest) -> Response {
    let ready = node.health.watch();
    let changes = match is_known(request) {
        true => Changes { said: None, next: next(ready, None) },
        // There is none here and there will not be one, and whoever watches is told so rather than turned away.
        false => {
            Changes { said: None, next: Box::pin(std::future::ready((SERVICE_UNKNOWN, ready))) }
        }
    };
    let mut response = Response::new(Body::stream(changes));
    response.headers_mut().insert(CONTENT_TYPE, status::GRPC);
    response
}

fn is_known(request: &HealthCheckRequest) -> bool {
    ["", super::SERVICE, "ratelimit"].contains(&&*request.service)
}

fn shown(is_ready: bool) -> i32 {
    if is_ready { SERVING } else { NOT_SERVING }
}

type Next = Pin<Box<dyn Future<Output = (i32, watch::Receiver<bool>)> + Send>>;

struct Changes {
    /// What was said last.
    said: Option<i32>,
    next: Next,
}

/// What there is to say that has not been said.
fn next(mut ready: watch::Receiver<bool>, said: Option<i32>) -> Next {
    Box::pin(async move {
        let unsaid = |ready: &bool| said != Some(SERVICE_UNKNOWN) && said != Some(shown(*ready));
        // The node, which tells, outlives its connections; should it not, there is nothing more to say.
        let found = ready.wait_for(unsaid).await.ok().map(|ready| shown(*ready));
        match found {
            Some(status) => (status, ready),
            None => std::future::pending().await,
        }
    })
}

impl hyper::body::Body for Changes {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        let (status, ready) = ready!(this.next.as_mut().poll(context));
        this.said = Some(status);
        this.next = next(ready, this.said);
        let data = status::framed(&HealthCheckResponse { status });
        Poll::Ready(Some(Ok(Frame::data(data))))
    }
}
