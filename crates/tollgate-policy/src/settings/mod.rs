//! What a valid file says besides its limits. Nothing here can be out of range.

mod secret;

pub use secret::{Secret, SecretSource};

use crate::limit::OnStoreFailure;
use crate::tier_map::TierMap;
use ipnet::IpNet;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// Everything but the limits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Which front ends listen where, at most one address each.
    pub listeners: Vec<Listener>,
    /// Where the gateway sends requests.
    pub upstream: Vec<Upstream>,
    /// How the gateway listens and sends.
    pub gateway: Gateway,
    /// The certificate of `listen.grpc`, where it speaks TLS.
    pub grpc_tls: Option<ServerTls>,
    /// How the check API and forward-auth listen.
    pub http: Http,
    /// Where counts are kept.
    pub store: Store,
    /// For limits that do not say.
    pub on_store_failure: OnStoreFailure,
    /// Who may name a client's address.
    pub trusted_proxies: Vec<IpNet>,
    /// How a client's address is found.
    pub client_address: ClientAddress,
    /// The names of the header profiles, each of which [`Profile::parse`] knows; no two write one
    /// field.
    ///
    /// [`Profile::parse`]: tollgate_core::header::Profile::parse
    pub headers: Vec<&'static str>,
    /// Where attributes come from on HTTP.
    pub identity: Vec<(Box<str>, AttributeSource)>,
    /// How tokens are verified; present whenever an attribute comes from one.
    pub jwt: Option<Jwt>,
    /// Which tier a request belongs to.
    pub tiers: Tiers,
    /// What clients read when they are refused, where it is not the usual.
    pub refusal: Option<Template>,
    /// Who knows it may use the admin API.
    pub admin_token: Option<Secret>,
    /// The file to record changes in; the log without it.
    pub admin_audit: Option<Box<str>>,
    /// More host names of the admin listener, in lower case: `name`, `*.name` or `*`.
    pub admin_hosts: Vec<Box<str>>,
    /// What a Redis client has to say before anything else.
    pub resp_password: Option<Secret>,
    /// Codes of lints that are accepted.
    pub lint_allow: Vec<Box<str>>,
    /// Files of envoyproxy/ratelimit, and what Envoy is told.
    pub envoy: Envoy,
    /// How long requests in flight may take at shutdown.
    pub drain: Duration,
}

/// One front end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Which one.
    pub front: Front,
    /// Port 0 picks a free one.
    pub address: ListenAddress,
}

/// Where a front end listens, as the file writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An IP address and a port.
    Ip(SocketAddr),
    /// A host name and a port; the name is resolved at the start.
    Name(Box<str>, u16),
}

impl ListenAddress {
    /// The port; 0 picks a free one.
    pub const fn port(&self) -> u16 {
        match self {
            Self::Ip(address) => address.port(),
            Self::Name(_, port) => *port,
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

/// The front ends there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Front {
    /// Reverse proxy.
    Gateway,
    /// Check API and forward-auth.
    Http,
    /// Envoy RLS v3.
    Grpc,
    /// CL.THROTTLE.
    Resp,
    /// Health, metrics, dashboard, admin API.
    Admin,
}

/// Where the gateway sends requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Whether it is https.
    pub tls: bool,
    /// A name or an address, without brackets.
    pub host: Box<str>,
    /// The port.
    pub port: u16,
}

/// How the gateway listens and sends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gateway {
    /// Where the listener speaks TLS.
    pub tls: Option<ServerTls>,
    /// Whether every connection has to begin with a header of the PROXY protocol; none may
    /// otherwise.
    pub proxy_protocol: bool,
    /// Whether clients may ask for their own limits, at `/.well-known/ratelimit`.
    pub status: bool,
    /// How an ambiguous path is treated.
    pub ambiguous_paths: AmbiguousPaths,
    /// How the gateway treats override headers.
    pub override_headers: OverrideHeaders,
    /// Whether servers take turns; otherwise the one with the fewest requests under way is next.
    pub round_robin: bool,
    /// How to find out which servers can be used.
    pub health: Option<HealthCheck>,
    /// Whether servers are asked for their own host instead of the client's.
    pub own_host: bool,
    /// How long connecting may take.
    pub connect: Duration,
    /// From the end of a request to the beginning of its answer.
    pub response: Duration,
    /// Between two pieces of a body.
    pub idle: Duration,
    /// TLS to servers with https://.
    pub upstream_tls: Tls,
    /// Idle connections that a worker keeps to each server.
    pub idle_connections: u32,
    /// What is spoken with servers.
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

/// How a listener treats a path that servers read in more than one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AmbiguousPaths {
    /// Refuses the request.
    #[default]
    Refuse,
    /// Applies the limits of every reading.
    MatchAll,
}

/// How a listener treats headers that replace the path, the method or the host of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverrideHeaders {
    /// The gateway removes them; forward-auth denies a request whose override differs.
    #[default]
    Block,
    /// They reach the service, and are not counted.
    Pass,
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

/// What is spoken with servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamProtocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, over TLS or not.
    Http2,
    /// Over TLS whichever of both the server prefers, HTTP/1.1 otherwise.
    Auto,
}

/// How to find out which servers can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthCheck {
    /// What to ask for.
    pub path: Box<str>,
    /// How often.
    pub interval: Duration,
    /// How long the answer may take.
    pub timeout: Duration,
    /// Bad answers in a row after which a server is not used.
    pub unhealthy_after: u32,
    /// Good answers in a row after which it is used again.
    pub healthy_after: u32,
}

/// Where counts are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Store {
    /// In this process.
    Memory {
        /// The most it may use.
        max_bytes: u64,
    },
    /// In Redis or Valkey.
    Redis(Box<Redis>),
}

/// How to reach and use Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Redis {
    /// Where it is.
    pub server: RedisServer,
    /// The user to log in as.
    pub username: Option<Box<str>>,
    /// The password.
    pub password: Option<Secret>,
    /// What keys are hashed with; without it, the password.
    pub secret: Option<Secret>,
    /// TLS, where it is used.
    pub tls: Option<Tls>,
    /// What every key starts with.
    pub prefix: Box<str>,
    /// Whether the caller's clock counts instead of the server's.
    pub caller_time: bool,
    /// How long one call may take.
    pub deadline: Duration,
    /// Connections to each node.
    pub connections: u32,
    /// Requests under way at once.
    pub in_flight: u32,
    /// Whether replicas may answer peeks and inspections.
    pub replica_reads: bool,
    /// Failures in a row that open the breaker.
    pub breaker_errors: u32,
    /// How often an open breaker tries again.
    pub breaker_probe: Duration,
    /// Refusals remembered on this node; 0 is none.
    pub deny_cache_entries: u32,
    /// How long a refusal is remembered at most.
    pub deny_cache_max_age: Duration,
}

/// Where Redis is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisServer {
    /// One server.
    Tcp {
        /// A name or an address, without brackets.
        host: Box<str>,
        /// The port.
        port: u16,
        /// The number of the database.
        database: u32,
    },
    /// One server on this machine.
    Unix {
        /// Its socket.
        path: Box<str>,
        /// The number of the database.
        database: u32,
    },
    /// A primary found through Sentinels.
    Sentinel {
        /// Its name.
        master: Box<str>,
        /// Hosts and ports of the Sentinels.
        nodes: Vec<(Box<str>, u16)>,
        /// The user that they know.
        username: Option<Box<str>>,
        /// Their password.
        password: Option<Secret>,
    },
    /// A cluster.
    Cluster {
        /// Hosts and ports of some of its nodes.
        nodes: Vec<(Box<str>, u16)>,
    },
}

/// A parsed Redis URL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RedisUrl {
    Tcp {
        tls: bool,
        host: Box<str>,
        port: u16,
        database: u32,
        username: Option<Box<str>>,
        password: Option<Secret>,
    },
    Unix {
        path: Box<str>,
        database: u32,
    },
}

/// Files for TLS; the system's authorities without `ca`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Authorities to trust.
    pub ca: Option<Box<str>>,
    /// The client's certificate and its key.
    pub identity: Option<(Box<str>, Box<str>)>,
}

/// How a client's address is found behind trusted proxies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAddress {
    /// What to read.
    pub source: AddressSource,
    /// How many bits of an IPv6 address make one client.
    pub ipv6_prefix: u8,
}

/// Where a trusted proxy says who the client is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressSource {
    /// This header field, in lower case: the rightmost address that is not trusted.
    Header(Box<str>),
    /// X-Forwarded-For: the n-th address from the right.
    Hops(u32),
}

/// Where an attribute comes from on HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttributeSource {
    /// A header field, in lower case.
    Header(Box<str>),
    /// A cookie.
    Cookie(Box<str>),
    /// A query parameter.
    Query(Box<str>),
    /// A claim of a verified token.
    Jwt(Box<str>),
}

/// How tokens are verified.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Jwt {
    /// A file with a JSON Web Key Set.
    pub keys: Box<str>,
    /// The signatures that count.
    pub algorithms: Vec<JwtAlgorithm>,
    /// The `iss` that tokens must carry.
    pub issuer: Option<Box<str>>,
    /// The `aud` that tokens must carry.
    pub audience: Option<Box<str>>,
    /// How far clocks may differ for `exp` and `nbf`.
    pub leeway_us: u64,
}

/// A signature algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of RFC 7518 and RFC 8037")]
pub enum JwtAlgorithm {
    Hs256,
    Rs256,
    Es256,
    EdDsa,
}

/// A refusal's body in the words of whoever runs the service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Template {
    /// The text, in which `{status}`, `{retry_after}` and `{limits}` are replaced.
    pub body: Box<str>,
    /// Its media type.
    pub content_type: Box<str>,
}

/// Which tier a request belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tiers {
    /// The tier of requests without one, or with an unknown one.
    pub default: Option<Box<str>>,
    /// Where a request's tier is found.
    pub source: Option<TierSource>,
}

/// Where a request's tier is found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TierSource {
    /// An attribute names it.
    Attribute(Box<str>),
    /// The policy file itself maps an attribute to it.
    Map(TierMap),
    /// A watched file maps an attribute to it.
    File {
        /// Its path.
        path: Box<str>,
        /// The attribute; the file itself names it where the policy does not.
        by: Option<Box<str>>,
    },
    /// A Redis hash maps an attribute to it.
    Redis {
        /// The hash.
        hash: Box<str>,
        /// The attribute.
        by: Box<str>,
    },
}

/// Files of envoyproxy/ratelimit, and what Envoy is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Envoy {
    /// Paths, with `*`; none where no files are used.
    pub configs: Vec<Box<str>>,
    /// Whether several limits are all-or-nothing, as in the other front ends. Always true without
    /// files.
    pub strict: bool,
    /// The status that Envoy's filter refuses with.
    pub rate_limited_status: u16,
    /// Whether answers have `dynamic_metadata`.
    pub dynamic_metadata: bool,
}

impl Front {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Gateway, Self::Http, Self::Grpc, Self::Resp, Self::Admin];

    /// As `listen` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Http => "http",
            Self::Grpc => "grpc",
            Self::Resp => "resp",
            Self::Admin => "admin",
        }
    }
}
