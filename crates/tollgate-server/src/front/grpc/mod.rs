//! Envoy's rate limit service, version 3, with health and reflection, on HTTP/2. Also serves `POST
//! /json`, this service in JSON, and `/healthcheck`.
//!
//! gRPC needs little of HTTP/2: a message in a frame, a status in trailers. So it runs on the
//! workers of all front ends, under the same caps.

pub mod decode;
mod encode;
mod framing;
mod health;
mod http;
pub mod messages;
mod proto_json;
mod reflection;
mod service;
pub mod status;
mod writer;

pub(crate) use http::{answer as answer_http, is_http_path};
pub use service::{CallContext, RateLimitService};

use crate::Node;
use crate::tls::Certificate;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, StatusCode};
use status::{DEADLINE_EXCEEDED, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, Status, UNIMPLEMENTED};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tollgate_net::{
    BodyError, Handler, HttpResponse, Limits, Request, ResponseBody, Upload, handle_http2,
};
use tollgate_observe::trace;

/// An HTTP/2 response.
type GrpcResponse = hyper::Response<ResponseBody>;

/// The service that Envoy calls.
pub const SERVICE: &str = "envoy.service.ratelimit.v3.RateLimitService";

const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";
const HEALTH_WATCH: &str = "/grpc.health.v1.Health/Watch";
const REFLECTION: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// Limit of a request's message. Envoy accepts 60 KiB of headers from a client by default, and
/// several descriptors may repeat one of them. A connection holds up to a hundred messages.
pub(crate) const BYTES_MAX: usize = 256 * 1024;
/// Limit of a call's head: Envoy passes on the client's `tracestate`.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Answers calls on one worker.
pub struct RlsHandler {
    service: RateLimitService,
    body_within: Duration,
    certificate: Option<Arc<Certificate>>,
}

impl RlsHandler {
    /// Creates a handler for one worker.
    pub fn new(node: Arc<Node>, limits: &Limits) -> Self {
        Self { service: RateLimitService::new(node), body_within: limits.body, certificate: None }
    }

    /// The limits of connections. A message of `BYTES_MAX` fits into one window. If Envoy had to
    /// wait in the middle of a message, its timeout would pass and admit the request.
    pub fn limits(limits: &Limits) -> Limits {
        let window_bytes = 2 * BYTES_MAX as u32;
        Limits { head_bytes_max: HEAD_BYTES_MAX, window_bytes, ..limits.clone() }
    }

    /// Serves TLS with this certificate.
    pub(crate) fn with_tls(self, certificate: Option<Arc<Certificate>>) -> Self {
        Self { certificate, ..self }
    }

    async fn answer(
        &self,
        request: hyper::Request<Incoming>,
        caller: &tollgate_net::ClientConnection,
    ) -> Result<GrpcResponse, Status> {
        let path = request.uri().path();
        if REFLECTION.contains(&path) {
            return Ok(reflection::answer(request.into_body()));
        }
        let method = [SHOULD_RATE_LIMIT, HEALTH_CHECK, HEALTH_WATCH]
            .into_iter()
            .find(|method| *method == path)
            .ok_or(Status::new(UNIMPLEMENTED, "there is no such method"))?;
        let timeout = framing::timeout(request.headers());
        let parent = trace::enabled().then(|| request.headers().get("traceparent").cloned());
        let upload = Upload::http2(request.into_body(), caller);
        let body = upload.collect(BYTES_MAX + framing::FRAME_HEADER_BYTES, self.body_within).await;
        let body = match body {
            Ok(body) => body,
            // Envoy would admit the request after an error.
            Err(BodyError::TooLarge) if method == SHOULD_RATE_LIMIT => {
                self.service.count_invalid();
                return Ok(framing::ok_response(self.service.refuse_large()));
            }
            Err(BodyError::TooLarge) => {
                return Err(Status::new(RESOURCE_EXHAUSTED, "the message is too large"));
            }
            Err(BodyError::TooSlow) => {
                return Err(Status::new(DEADLINE_EXCEEDED, "the message took too long"));
            }
            Err(_) => return Err(Status::new(INVALID_ARGUMENT, "the message broke off")),
        };
        let node = &self.service.node;
        match method {
            HEALTH_CHECK => {
                let request = framing::decode(framing::message(&body)?)?;
                Ok(framing::ok_response(framing::frame_message(&health::check(node, &request)?)))
            }
            HEALTH_WATCH => Ok(health::watch(node, &framing::decode(framing::message(&body)?)?)),
            _ => {
                let traceparent = parent.as_ref().and_then(|parent| parent.as_ref()?.to_str().ok());
                let caller = CallContext { timeout, traceparent };
                Ok(framing::ok_response(self.service.call(framing::message(&body)?, caller).await?))
            }
        }
    }
}

impl Handler for RlsHandler {
    async fn handle(
        &self,
        request: Request<'_>,
        _: &Rc<tollgate_net::ClientConnection>,
        answer: &mut HttpResponse,
    ) {
        if is_http_path(request.head.path()) {
            return Box::pin(answer_http(&self.service, request, self.body_within, answer)).await;
        }
        let text = "this port speaks gRPC, JSON at POST /json, and GET /healthcheck\n";
        http::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, text, answer);
    }

    async fn handle_http2(
        &self,
        request: hyper::Request<Incoming>,
        caller: &Rc<tollgate_net::ClientConnection>,
    ) -> GrpcResponse {
        let is_grpc = request
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(framing::GRPC.as_bytes()));
        if request.method() != Method::POST || !is_grpc || is_http_path(request.uri().path()) {
            return Box::pin(handle_http2(self, request, caller)).await;
        }
        let is_decided = request.uri().path() == SHOULD_RATE_LIMIT;
        match self.answer(request, caller).await {
            Ok(response) => response,
            Err(status) => {
                if is_decided {
                    self.service.count_invalid();
                }
                status.into_response()
            }
        }
    }

    fn tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        self.certificate.as_deref().map(Certificate::config)
    }
}
