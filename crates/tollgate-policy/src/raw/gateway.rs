//! The gateway's listener and what is behind it.

use super::decode::item;
use super::{At, Decode, DurationText, OneOrMany, Text, Tls, either, raw, words};
use crate::diagnostic::Report;
use crate::yaml::{Node, Value};

/// `listen.gateway`: an address, or a map with one.
#[derive(Clone, Debug, schemars::JsonSchema)]
#[schemars(untagged)]
pub enum GatewayListen {
    /// The address alone.
    Address(At<Text>),
    /// The address and more.
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
#[derive(Clone, Debug, schemars::JsonSchema)]
#[schemars(untagged)]
pub enum GrpcListen {
    /// The address alone.
    Address(At<Text>),
    /// The address and more.
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
#[derive(Clone, Debug, schemars::JsonSchema)]
#[schemars(untagged)]
pub enum HttpListen {
    /// The address alone.
    Address(At<Text>),
    /// The address and more.
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
    /// Where Envoy's rate limit service listens, and its TLS settings.
    GrpcForm {
        /// The address and port.
        #[schemars(required)]
        address: Text,
        /// Speaks TLS with this certificate.
        tls: ServerTls,
    }
}

raw! {
    /// Where the check API and forward-auth listen, and what they accept.
    HttpForm {
        /// The address and port.
        #[schemars(required)]
        address: Text,
        /// How the listener treats a path that servers read in more than one way.
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
        /// The gateway removes them, and forward-auth denies those that differ; the default.
        Block = "block",
        /// They reach the service uncounted.
        Pass = "pass",
    }
}

raw! {
    /// Where the gateway listens, and what is spoken there.
    GatewayForm {
        /// The address and port.
        #[schemars(required)]
        address: Text,
        /// Speaks TLS with this certificate.
        tls: ServerTls,
        /// Whether connections begin with who they come from.
        proxy_protocol: ProxyProtocol,
        /// How the listener treats a path that servers read in more than one way.
        ambiguous_paths: AmbiguousPathsWord,
        /// Whether override headers such as X-HTTP-Method-Override reach the upstream.
        override_headers: OverrideHeadersWord,
        /// How long clients may take.
        timeouts: ClientTimeouts,
        /// Whether clients may ask for their own limits, at /.well-known/ratelimit.
        status: bool,
    }
}

raw! {
    /// A server's certificate, and which clients it takes.
    ServerTls {
        /// The certificate and those that vouch for it, PEM.
        #[schemars(required)]
        cert: Text,
        /// Its key, PEM.
        #[schemars(required)]
        key: Text,
        /// Authorities, PEM. Clients must show a certificate of one of them.
        client_ca: Text,
        /// DNS names or addresses. A client's certificate must be for one of them.
        client_names: OneOrMany<Text>,
    }
}

words! {
    /// `listen.gateway.proxy_protocol`.
    ProxyProtocol {
        /// None may; the default.
        Forbidden = "forbidden",
        /// Every one has to, in version 2.
        Required = "required",
    }
}

either! {
    /// `upstream`.
    Upstreams {
        /// A URL or a list of them.
        Servers(OneOrMany<Text>),
        /// With settings.
        Form(UpstreamForm),
    }
}

raw! {
    /// Where the gateway sends requests, and how.
    UpstreamForm {
        /// URLs of servers that do the same.
        #[schemars(required)]
        servers: OneOrMany<Text>,
        /// Which of them gets a request.
        balance: Balance,
        /// How to find out which of them can be used.
        health: HealthCheck,
        /// Which host the servers are asked for.
        host: HostPolicy,
        /// How long they may take.
        timeouts: UpstreamTimeouts,
        /// TLS to servers with https://.
        tls: Tls,
        /// What is spoken with them.
        protocol: UpstreamProtocol,
        /// Idle connections that a worker keeps to each server.
        idle_connections: u64,
    }
}

raw! {
    /// How long a client may take.
    ClientTimeouts {
        /// For the head of a request.
        head: DurationText,
        /// Between two pieces of a request's body.
        body: DurationText,
        /// Between an answer and the next request, and for any piece of an answer.
        idle: DurationText,
    }
}

words! {
    /// `upstream.protocol`.
    UpstreamProtocol {
        /// HTTP/1.1; the default.
        Http1 = "http1",
        /// HTTP/2: by ALPN over TLS, by prior knowledge without.
        Http2 = "http2",
        /// Over TLS what the server prefers, HTTP/1.1 without.
        Auto = "auto",
    }
}

words! {
    /// `upstream.balance`.
    Balance {
        /// The one with the fewest requests under way; the default.
        LeastRequests = "least-requests",
        /// One after the other.
        RoundRobin = "round-robin",
    }
}

words! {
    /// `upstream.host`.
    HostPolicy {
        /// The one that the client asked for; the default.
        Preserve = "preserve",
        /// The server's own, as in its URL.
        Upstream = "upstream",
    }
}

raw! {
    /// How to find out which servers can be used.
    HealthCheck {
        /// What to ask for; an answer from 200 to 399 is good.
        #[schemars(required)]
        path: Text,
        /// How often.
        interval: DurationText,
        /// How long the answer may take.
        timeout: DurationText,
        /// Bad answers in a row after which a server is not used.
        unhealthy_after: u64,
        /// Good answers in a row after which it is used again.
        healthy_after: u64,
    }
}

raw! {
    /// How long a server may take.
    UpstreamTimeouts {
        /// To accept a connection.
        connect: DurationText,
        /// To begin its answer, once it has the request.
        response: DurationText,
        /// Between two pieces of a body, in either direction.
        idle: DurationText,
    }
}
