//! The checked settings of a file: everything but the limits.
//!
//! Every value is in range.

mod gateway;
mod identity;
mod records;
mod secret;
mod store;

pub use gateway::{
    AmbiguousPaths, Gateway, HealthCheck, Http, OverrideHeaders, ServerTls, Upstream,
    UpstreamProtocol,
};
pub use identity::{AttributeSource, Jwt, JwtAlgorithm, Template, TierSource, Tiers};
pub use records::{AccessFormat, AccessLog, DecisionLog, LogSink, Logs, Usage};
pub use secret::{Secret, SecretSource};
pub(crate) use store::RedisUrl;
pub use store::{Redis, RedisServer, Store, Tls};

use crate::identity::address::ClientAddressResolver;
use crate::limit::OnStoreFailure;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// Everything but the limits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The front ends that listen, with at most one address each.
    pub listeners: Vec<Listener>,
    /// The upstreams of the gateway.
    pub upstream: Vec<Upstream>,
    /// The settings of the gateway.
    pub gateway: Gateway,
    /// The certificate of `listen.grpc`, if it uses TLS.
    pub grpc_tls: Option<ServerTls>,
    /// The settings of the check API and forward-auth.
    pub http: Http,
    /// The store.
    pub store: Store,
    /// The failure policy of limits without one.
    pub on_store_failure: OnStoreFailure,
    /// How a client's address is found behind trusted proxies.
    pub client_address: ClientAddressResolver,
    /// The names of the header profiles, each known to [`Profile::parse`]. No two profiles write
    /// the same header.
    ///
    /// [`Profile::parse`]: tollgate_core::header::Profile::parse
    pub headers: Vec<&'static str>,
    /// The sources of attributes on HTTP.
    pub identity: Vec<(Box<str>, AttributeSource)>,
    /// How tokens are verified; present if any attribute comes from a token.
    pub jwt: Option<Jwt>,
    /// How the tier of a request is found.
    pub tiers: Tiers,
    /// The body of a refusal, if it is not the default.
    pub refusal: Option<Template>,
    /// The token of the admin API.
    pub admin_token: Option<Secret>,
    /// The audit file; without it, changes go to the log.
    pub admin_audit: Option<Box<str>>,
    /// Further host names of the admin listener, in lower case: `name`, `*.name` or `*`.
    pub admin_hosts: Vec<Box<str>>,
    /// The password of the RESP listener.
    pub resp_password: Option<Secret>,
    /// The decision log and the access log.
    pub logs: Logs,
    /// The usage trail, if there is one.
    pub usage: Option<Usage>,
    /// The secret that hashes keys for operators. Without it, a secret from the shared store is
    /// used, or a random one.
    pub keys_secret: Option<Secret>,
    /// The codes of accepted lints.
    pub lint_allow: Vec<Box<str>>,
    /// Files of envoyproxy/ratelimit, and settings of responses to Envoy.
    pub envoy: Envoy,
    /// The time for requests in flight at shutdown.
    pub drain: Duration,
}

impl Settings {
    /// The treatment of ambiguous paths if the listener of a request is unknown: in a log, in a
    /// file of requests, on a command line. It is `match-all` if one listener has that, since
    /// limits count such requests there.
    pub fn ambiguous_paths(&self) -> AmbiguousPaths {
        match self.gateway.ambiguous_paths {
            AmbiguousPaths::Refuse => self.http.ambiguous_paths,
            match_all => match_all,
        }
    }
}

/// One front end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The front end.
    pub front: Front,
    /// The address; port 0 picks a free port.
    pub address: ListenAddress,
}

/// The address of a front end, as written in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An IP address and a port.
    Ip(SocketAddr),
    /// A host name and a port; the name is resolved at start.
    Name(Box<str>, u16),
}

impl ListenAddress {
    /// The port; 0 picks a free port.
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

/// The front ends.
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

/// Files of envoyproxy/ratelimit, and settings of responses to Envoy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Envoy {
    /// The paths of the files, which may contain `*`; empty without files.
    pub configs: Vec<Box<str>>,
    /// Whether several limits are all-or-nothing, as in the other front ends. Always true without
    /// files.
    pub strict: bool,
    /// The status of refusals in Envoy's filter.
    pub rate_limited_status: u16,
    /// Whether responses have `dynamic_metadata`.
    pub dynamic_metadata: bool,
}

impl Front {
    /// All front ends.
    pub const ALL: [Self; 5] = [Self::Gateway, Self::Http, Self::Grpc, Self::Resp, Self::Admin];

    /// The name under `listen`.
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
