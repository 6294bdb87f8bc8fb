//! Settings of the gateway and of the HTTP listener.

pub use crate::raw::{
    AmbiguousPathsWord as AmbiguousPaths, OverrideHeadersWord as OverrideHeaders, UpstreamProtocol,
};

use super::Tls;
use std::time::Duration;

/// An upstream of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Whether requests use https.
    pub tls: bool,
    /// A host name or an address, without brackets.
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
    /// Whether clients may query their own limits at `/.well-known/ratelimit`.
    pub status: bool,
    /// How an ambiguous path is treated.
    pub ambiguous_paths: AmbiguousPaths,
    /// How the gateway treats override headers.
    pub override_headers: OverrideHeaders,
    /// Whether upstreams take turns. Otherwise the upstream with the fewest requests in flight is
    /// next.
    pub round_robin: bool,
    /// The health check of upstreams.
    pub health: Option<HealthCheck>,
    /// Whether `Host` is the upstream's instead of the client's.
    pub own_host: bool,
    /// The time to open a connection.
    pub connect: Duration,
    /// The time from the end of a request to the start of its response.
    pub response: Duration,
    /// The time between two pieces of a body.
    pub idle: Duration,
    /// TLS to upstreams with https://.
    pub upstream_tls: Tls,
    /// Idle connections that each worker keeps to each upstream.
    pub idle_connections: u32,
    /// The protocol to upstreams.
    pub protocol: UpstreamProtocol,
    /// The time from the first byte of a request, or from the start of the connection, to the end
    /// of the head.
    pub client_head: Duration,
    /// The time in which a client must send the next piece of a body.
    pub client_body: Duration,
    /// The time from a response to the client's next request, and for a client to accept a piece of
    /// a response.
    pub client_idle: Duration,
}

/// The certificate of a listener, and the clients that it accepts. All files are PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerTls {
    /// The certificate chain.
    pub cert: Box<str>,
    /// The private key.
    pub key: Box<str>,
    /// The certificate authorities. One of them must have signed the client's certificate.
    pub client_ca: Option<Box<str>>,
    /// The names. The client's certificate must have one of them; empty allows any name.
    pub client_names: Vec<Box<str>>,
}

/// The settings of the check API and forward-auth.
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
    /// The time between two checks.
    pub interval: Duration,
    /// The time for a response.
    pub timeout: Duration,
    /// Failures in a row after which an upstream is not used.
    pub unhealthy_after: u32,
    /// Successes in a row after which an upstream is used again.
    pub healthy_after: u32,
}
