//! Settings of the gateway and of the HTTP listener.

pub use crate::raw::{
    AmbiguousPathsWord as AmbiguousPaths, OverrideHeadersWord as OverrideHeaders, UpstreamProtocol,
};

use super::Tls;
use std::time::Duration;

/// An upstream of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Whether it is https.
    pub tls: bool,
    /// A name or an address, without brackets.
    pub host: Box<str>,
    /// The port.
    pub port: u16,
}

/// The settings of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gateway {
    /// The certificate, if the listener speaks TLS.
    pub tls: Option<ServerTls>,
    /// Whether every connection must begin with a PROXY protocol header; otherwise none may.
    pub proxy_protocol: bool,
    /// Whether clients may ask for their own limits, at `/.well-known/ratelimit`.
    pub status: bool,
    /// How an ambiguous path is treated.
    pub ambiguous_paths: AmbiguousPaths,
    /// How the gateway treats override headers.
    pub override_headers: OverrideHeaders,
    /// Whether upstreams take turns; otherwise the one with the fewest requests in flight is next.
    pub round_robin: bool,
    /// The health check of upstreams.
    pub health: Option<HealthCheck>,
    /// Whether `Host` is the upstream's instead of the client's.
    pub own_host: bool,
    /// How long connecting may take.
    pub connect: Duration,
    /// From the end of a request to the beginning of its answer.
    pub response: Duration,
    /// Between two pieces of a body.
    pub idle: Duration,
    /// TLS to upstreams with https://.
    pub upstream_tls: Tls,
    /// Idle connections that a worker keeps to each upstream.
    pub idle_connections: u32,
    /// The protocol to upstreams.
    pub protocol: UpstreamProtocol,
    /// From the first byte of a client's request, or from its connection's start, to the end of the
    /// head.
    pub client_head: Duration,
    /// How long a client may send nothing of a body.
    pub client_body: Duration,
    /// From an answer to a client's next request, and how long it may take nothing of an answer.
    pub client_idle: Duration,
}

/// A server's certificate, and which clients it takes. All files are PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerTls {
    /// The certificate and those that vouch for it.
    pub cert: Box<str>,
    /// Its key.
    pub key: Box<str>,
    /// The authorities: one must have signed the client's certificate.
    pub client_ca: Option<Box<str>>,
    /// The client's certificate must be for one of these names; any name if empty.
    pub client_names: Vec<Box<str>>,
}

/// How the check API and forward-auth listen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Http {
    /// How an ambiguous path is treated.
    pub ambiguous_paths: AmbiguousPaths,
    /// How forward-auth treats override headers.
    pub override_headers: OverrideHeaders,
}

/// The health check of upstreams.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthCheck {
    /// The path to request.
    pub path: Box<str>,
    /// How often.
    pub interval: Duration,
    /// How long the answer may take.
    pub timeout: Duration,
    /// Failures in a row after which an upstream is not used.
    pub unhealthy_after: u32,
    /// Successes in a row after which it is used again.
    pub healthy_after: u32,
}
