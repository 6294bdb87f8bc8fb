//! `grpc.health.v1.Health`: the readiness of the node, once or as a stream.

use super::GrpcResponse;
use super::framing;
use super::messages::{HealthCheckRequest, HealthCheckResponse};
use super::status::{NOT_FOUND, Status};
use crate::Node;
use futures_util::stream;
use hyper::body::Frame;
use std::future::pending;

const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;
const SERVICE_UNKNOWN: i32 = 3;

/// Answers like `/readyz`, for the whole server and for its one service.
pub(super) fn check(
    node: &Node,
    request: &HealthCheckRequest,
) -> Result<HealthCheckResponse, Status> {
    if !is_known(request) {
        return Err(Status::new(NOT_FOUND, "there is no such service"));
    }
    Ok(HealthCheckResponse { status: serving_status(node.health.is_ready()) })
}

/// Streams the health now and after every change. The watch ends with its connection, and does not
/// keep an idle connection open.
pub(super) fn watch(node: &Node, request: &HealthCheckRequest) -> GrpcResponse {
    let (ready, is_known) = (node.health.watch(), is_known(request));
    let changes = stream::unfold((ready, None), move |(mut ready, sent)| async move {
        let status = match sent {
            // The protocol requires a status for an unknown service, not an error.
            None if !is_known => Some(SERVICE_UNKNOWN),
            Some(SERVICE_UNKNOWN) => None,
            _ => {
                let is_new = |ready: &bool| sent != Some(serving_status(*ready));
                ready.wait_for(is_new).await.ok().map(|ready| serving_status(*ready))
            }
        };
        // An unknown service stays unknown, and a stopping node changes no more.
        let Some(status) = status else { pending().await };
        let data = framing::frame_message(&HealthCheckResponse { status });
        Some((Ok(Frame::data(data)), (ready, Some(status))))
    });
    framing::stream_response(changes)
}

fn is_known(request: &HealthCheckRequest) -> bool {
    ["", super::SERVICE, "ratelimit"].contains(&&*request.service)
}

fn serving_status(is_ready: bool) -> i32 {
    if is_ready { SERVING } else { NOT_SERVING }
}
