//! The listener and the upstreams of the gateway.

use super::decode::item;
use super::{At, Decode, DurationText, OneOrMany, Text, Tls, either, raw, words};
use crate::diagnostic::Report;
use crate::yaml::{Node, Value};

/// `listen.gateway`: an address, or a map with one.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(untagged))]
pub enum GatewayListen {
    /// The address alone.
    Address(At<Text>),
    /// The address with settings.
    Form(Box<GatewayForm>),
}

impl Decode for GatewayListen {
    fn decode(node: &Node, report: &mut Report) -> Option<Self> {
        match node.value {
            Value::Map(_) => GatewayForm::decode(node, report).map(|form| Self::Form(form.into())),
            _ => item(node, report).map(Self::Address),
        }
    }
}

/// `listen.grpc`: an address, or a map with one.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(untagged))]
pub enum GrpcListen {
    /// The address alone.
    Address(At<Text>),
    /// The address with settings.
    Form(Box<GrpcForm>),
}

impl Decode for GrpcListen {
    fn decode(node: &Node, report: &mut Report) -> Option<Self> {
        match node.value {
            Value::Map(_) => GrpcForm::decode(node, report).map(|form| Self::Form(form.into())),
            _ => item(node, report).map(Self::Address),
        }
    }
}

/// `listen.http`: an address, or a map with one.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(untagged))]
pub enum HttpListen {
    /// The address alone.
    Address(At<Text>),
    /// The address with settings.
    Form(Box<HttpForm>),
}

impl Decode for HttpListen {
    fn decode(node: &Node, report: &mut Report) -> Option<Self> {
        match node.value {
            Value::Map(_) => HttpForm::decode(node, report).map(|form| Self::Form(form.into())),
            _ => item(node, report).map(Self::Address),
        }
    }
}

raw! {
    /// The listener of Envoy's rate limit service.
    GrpcForm {
        /// The address and port.
        #[cfg_attr(test, schemars(required))]
        address: Text,
        /// TLS, with this certificate.
        tls: ServerTls,
    }
}

raw! {
    /// The listener of the check API and forward-auth.
    HttpForm {
        /// The address and port.
        #[cfg_attr(test, schemars(required))]
        address: Text,
        /// How the listener treats a path that upstreams read in more than one way.
        ambiguous_paths: AmbiguousPathsWord,
        /// How forward-auth treats override headers such as X-HTTP-Method-Override.
        override_headers: OverrideHeadersWord,
    }
}

words! {
    /// `ambiguous_paths` of a listener.
    AmbiguousPathsWord {
        /// The request is refused; the default.
        Refuse = "refuse",
        /// The limits of every reading apply.
        MatchAll = "match-all",
    }
}

words! {
    /// `override_headers` of a listener.
    OverrideHeadersWord {
        /// The gateway removes them, and forward-auth refuses a request that differs from them; the
        /// default.
        Block = "block",
        /// They reach the upstream, and limits ignore them.
        Pass = "pass",
    }
}

raw! {
    /// The listener of the gateway.
    GatewayForm {
        /// The address and port.
        #[cfg_attr(test, schemars(required))]
        address: Text,
        /// TLS, with this certificate.
        tls: ServerTls,
        /// Whether connections start with a PROXY protocol header.
        proxy_protocol: ProxyProtocol,
        /// How the listener treats a path that upstreams read in more than one way.
        ambiguous_paths: AmbiguousPathsWord,
        /// Whether override headers such as X-HTTP-Method-Override reach the upstream.
        override_headers: OverrideHeadersWord,
        /// Timeouts for clients.
        timeouts: ClientTimeouts,
        /// Whether clients may query their own limits at /.well-known/ratelimit.
        status: bool,
    }
}

raw! {
    /// The certificate of a listener, and the clients that it accepts.
    ServerTls {
        /// The certificate chain, PEM.
        #[cfg_attr(test, schemars(required))]
        cert: Text,
        /// The private key, PEM.
        #[cfg_attr(test, schemars(required))]
        key: Text,
        /// Certificate authorities, PEM. Clients must present a certificate that one of them
        /// signed.
        client_ca: Text,
        /// DNS names or addresses. A client's certificate must name one of them.
        client_names: OneOrMany<Text>,
    }
}

words! {
    /// `listen.gateway.proxy_protocol`.
    ProxyProtocol {
        /// No connection may start with a header; the default.
        Forbidden = "forbidden",
        /// Every connection must start with a header of version 2.
        Required = "required",
    }
}

either! {
    /// `upstream`.
    Upstreams {
        /// A URL or a list of them.
        Servers(OneOrMany<Text>),
        /// Servers with settings.
        Form(UpstreamForm),
    }
}

raw! {
    /// The upstreams of the gateway.
    UpstreamForm {
        /// The URLs of equivalent servers.
        #[cfg_attr(test, schemars(required))]
        servers: OneOrMany<Text>,
        /// How a server is chosen for a request.
        balance: Balance,
        /// The health check of the servers.
        health: HealthCheck,
        /// The Host header that servers receive.
        host: HostPolicy,
        /// Timeouts for servers.
        timeouts: UpstreamTimeouts,
        /// TLS to servers with https://.
        tls: Tls,
        /// The HTTP version for requests to servers.
        protocol: UpstreamProtocol,
        /// Idle connections that each worker keeps to each server.
        idle_connections: u64,
    }
}

raw! {
    /// Timeouts for clients.
    ClientTimeouts {
        /// The time for the head of a request.
        head: DurationText,
        /// The time between two pieces of a request body.
        body: DurationText,
        /// The time between a response and the next request, and for a client to accept a piece of
        /// a response.
        idle: DurationText,
    }
}

words! {
    /// `upstream.protocol`.
    UpstreamProtocol {
        /// HTTP/1.1; the default.
        Http1 = "http1",
        /// HTTP/2: by ALPN with TLS, by prior knowledge without.
        Http2 = "http2",
        /// With TLS, the version that the server prefers; without TLS, HTTP/1.1.
        Auto = "auto",
    }
}

words! {
    /// `upstream.balance`.
    Balance {
        /// The server with the fewest requests in flight; the default.
        LeastRequests = "least-requests",
        /// Each server in turn.
        RoundRobin = "round-robin",
    }
}

words! {
    /// `upstream.host`.
    HostPolicy {
        /// The host that the client sent; the default.
        Preserve = "preserve",
        /// The host of the server's URL.
        Upstream = "upstream",
    }
}

raw! {
    /// The health check of servers.
    HealthCheck {
        /// The path to request. A status from 200 to 399 is a success.
        #[cfg_attr(test, schemars(required))]
        path: Text,
        /// The time between two checks.
        interval: DurationText,
        /// The time for a response.
        timeout: DurationText,
        /// Failures in a row after which a server is not used.
        unhealthy_after: u64,
        /// Successes in a row after which a server is used again.
        healthy_after: u64,
    }
}

raw! {
    /// Timeouts for servers.
    UpstreamTimeouts {
        /// The time to open a connection.
        connect: DurationText,
        /// The time from the end of a request to the start of its response.
        response: DurationText,
        /// The time between two pieces of a body, in either direction.
        idle: DurationText,
    }
}
