//! The floor of gRPC: a tonic server on one current-thread runtime that reads Envoy's request and
//! answers OK.
//!
//! `grpc_floor [--fields | --limitador]`: with `--fields`, the answer has as much content as
//! Tollgate's, all constant. With `--limitador`, limitador's library decides, as in its own server,
//! which is not available as a package.

use limitador::RateLimiter;
use limitador::limit::{Context as Values, Limit, Namespace};
use prost::Message;
use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

#[derive(Clone, PartialEq, Message)]
struct RateLimitRequest {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(message, repeated, tag = "2")]
    descriptors: Vec<Descriptor>,
    #[prost(uint32, tag = "3")]
    hits_addend: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Descriptor {
    #[prost(message, repeated, tag = "1")]
    entries: Vec<Pair>,
}

/// An entry of a descriptor, or a header.
#[derive(Clone, PartialEq, Message)]
struct Pair {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct RateLimitResponse {
    #[prost(int32, tag = "1")]
    overall_code: i32,
    #[prost(message, repeated, tag = "2")]
    statuses: Vec<DescriptorStatus>,
    #[prost(message, repeated, tag = "3")]
    response_headers_to_add: Vec<Pair>,
}

#[derive(Clone, PartialEq, Message)]
struct DescriptorStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(uint32, tag = "3")]
    limit_remaining: u32,
}

/// The headers of our default profiles.
const FIELDS: [(&str, &str); 6] = [
    ("ratelimit-policy", "\"per-user\";q=100000000;w=60"),
    ("ratelimit", "\"per-user\";r=99999876;t=46"),
    ("x-ratelimit-limit", "100000000"),
    ("x-ratelimit-remaining", "99999876"),
    ("x-ratelimit-reset", "1794744960"),
    ("x-ratelimit-policy", "100000000;w=60"),
];

#[derive(Clone)]
struct Answers {
    fields: bool,
    limitador: Option<Arc<(RateLimiter, Namespace)>>,
}

impl Answers {
    fn admits(&self, request: &RateLimitRequest) -> bool {
        let Some((limiter, namespace)) = self.limitador.as_deref() else { return true };
        let entries = request.descriptors.iter().flat_map(|one| &one.entries);
        let values: HashMap<_, _> =
            entries.map(|entry| (entry.key.clone(), entry.value.clone())).collect();
        let checked = limiter.check_rate_limited_and_update(namespace, &Values::from(values), 1);
        checked.is_ok_and(|checked| !checked.limited)
    }
}

impl NamedService for Answers {
    const NAME: &'static str = "envoy.service.ratelimit.v3.RateLimitService";
}

impl UnaryService<RateLimitRequest> for Answers {
    type Response = RateLimitResponse;
    type Future = Ready<Result<Response<RateLimitResponse>, Status>>;

    fn call(&mut self, request: Request<RateLimitRequest>) -> Self::Future {
        let request = std::hint::black_box(request.into_inner());
        let code = if self.admits(&request) { 1 } else { 2 };
        let pair =
            |(key, value): &(&str, &str)| Pair { key: (*key).into(), value: (*value).into() };
        let status = |_| DescriptorStatus { code, limit_remaining: 99_999_876 };
        ready(Ok(Response::new(RateLimitResponse {
            overall_code: code,
            statuses: match self.fields {
                true => request.descriptors.iter().map(status).collect(),
                false => Vec::new(),
            },
            response_headers_to_add: match self.fields {
                true => FIELDS.iter().map(pair).collect(),
                false => Vec::new(),
            },
        })))
    }
}

impl Service<http::Request<Body>> for Answers {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let own = self.clone();
        Box::pin(async move {
            let codec = ProstCodec::<RateLimitResponse, RateLimitRequest>::default();
            Ok(Grpc::new(codec).unary(own, request).await)
        })
    }
}

/// One limit with a variable, high enough for all users.
fn limitador() -> Result<(RateLimiter, Namespace), Box<dyn Error>> {
    let namespace = Namespace::from("edge");
    let limiter = RateLimiter::new(100_000);
    let variables = vec!["user".try_into().map_err(|_| "a variable's name is an expression")?];
    limiter.add_limit(Limit::new(namespace.clone(), 4_000_000_000, 60, vec![], variables));
    Ok((limiter, namespace))
}

fn main() -> Result<(), Box<dyn Error>> {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    let limitador = has("--limitador").then(limitador).transpose()?.map(Arc::new);
    let service = Answers { fields: has("--fields"), limitador };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        eprintln!("listening grpc {}", listener.local_addr()?);
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        Server::builder().add_service(service).serve_with_incoming(incoming).await?;
        Ok(())
    })
}
