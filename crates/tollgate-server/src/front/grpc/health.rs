//! `grpc.health.v1.Health/Check`: whether the node is to be asked.

use super::fault::{NOT_FOUND, Status};
use super::wire::{HealthCheckRequest, HealthCheckResponse};
use crate::Node;

const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;

/// As `/readyz` says it, for the whole server and for its one service.
pub(super) fn check(
    node: &Node,
    request: &HealthCheckRequest,
) -> Result<HealthCheckResponse, Status> {
    match &*request.service {
        "" | super::SERVICE | "ratelimit" => {
            let status = if node.health.is_ready() { SERVING } else { NOT_SERVING };
            Ok(HealthCheckResponse { status })
        }
        _ => Err(Status::new(NOT_FOUND, "there is no such service")),
    }
}
