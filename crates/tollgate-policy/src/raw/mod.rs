//! The file as written: every field optional, every value with its position.
//!
//! The JSON Schema is generated from these types and comments. A new field is added here, in
//! `compile`, as a fixture, and in `docs/reference.md`.

mod cost;
mod decode;
mod forms;
mod gateway;
mod limit;
mod records;
mod settings;
mod shed;
mod store;

use crate::diagnostic::{Position, Report};
use crate::yaml::Node;
use std::ops::Deref;

pub use cost::{Conditions, Cost, CostEntry, CostForm, CostResponse, Match};
pub(crate) use decode::{Decode, either, raw, words};
pub use forms::{
    Decimal, DurationText, Entries, List, MappedTier, OneAttribute, OneOrMany, PercentText,
    RateText, SecretText, SizeText, Text,
};
pub use gateway::{
    AmbiguousPathsWord, Balance, ClientTimeouts, GatewayForm, GatewayListen, GrpcForm, GrpcListen,
    HealthCheck, HostPolicy, HttpForm, HttpListen, OverrideHeadersWord, ProxyProtocol, ServerTls,
    UpstreamForm, UpstreamProtocol, UpstreamTimeouts, Upstreams,
};
pub use limit::{
    Algorithm, CandidateForm, Consistency, ConsistencyForm, ConsistencyWord, FirstOf, KeyChoice,
    Leased, Limit, LimitTier, Mode, OnInvalid, OnMissing, OnResponse, Penalty, PlainKey, TierForm,
};
pub use records::{
    AccessFormat, AccessLog, DecisionLog, Log, LoggedDecisions, Rotate, Usage, UsageRotate,
};
pub use settings::{
    Admin, Audit, ClientAddress, Envoy, EnvoyCompat, Jwt, Lint, Listen, Refusal, Resp, TierMapFile,
    Tiers, TiersFile, TiersFileForm, TiersRedis, TiersRedisForm,
};
pub use shed::{Class, Shed, ShedAdaptive, ShedFleet};
pub use store::{
    Breaker, DenyCache, FailureForm, FailureLocal, FailureWord, Memory, OnStoreFailure, Password,
    Redis, Sentinel, Store, StoreForm, StoreWord, TimeSource, Tls,
};

/// A value and its position.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// The position of the value.
    pub at: Position,
    /// The position of the field's name; that of the value if there is no name.
    pub name_at: Position,
}

/// A field that may be absent.
pub type Field<T> = Option<At<T>>;

raw! {
    /// The file `tollgate.yaml`. Everything has a default; an empty file is valid.
    File {
        /// The front ends that listen, and their addresses; by default http and admin, on this
        /// machine only.
        listen: Listen,
        /// The upstreams of the gateway: a URL, a list of them, or {servers: ...}.
        upstream: Upstreams,
        /// The store of counts: `memory`, {memory: ...} or {redis: ...}.
        store: Store,
        /// What limits do when the store cannot decide, unless they say otherwise.
        on_store_failure: OnStoreFailure,
        /// Peers that may report the client's address: addresses or networks.
        trusted_proxies: List<Text>,
        /// How the client's address is found behind trusted proxies.
        client_address: ClientAddress,
        /// The headers that tell clients about their quota.
        headers: OneOrMany<Text>,
        /// The sources of attributes on HTTP: header.X, cookie.X, query.X or jwt.CLAIM.
        identity: Entries<Text>,
        /// How tokens are verified, for `jwt.` sources.
        jwt: Jwt,
        /// How the tier of a request is found.
        tiers: Tiers,
        /// The body of a refusal.
        refusal: Refusal,
        /// The admin API.
        admin: Admin,
        /// The front end for Redis clients.
        resp: Resp,
        /// The decision log and the access log.
        log: Log,
        /// The usage trail: the units that each key used.
        usage: Usage,
        /// The secret that hashes the keys in logs and lists; the same on all nodes.
        keys_secret: Password,
        /// Accepted lints.
        lint: Lint,
        /// The limits, in the order in which responses list them.
        limits: List<Limit>,
        /// Classes of requests, the most important first. A request belongs to the first class that
        /// matches.
        classes: List<Class>,
        /// Load shedding: the requests that are refused under overload.
        shed: Shed,
        /// Files of envoyproxy/ratelimit, used unchanged.
        envoy: Envoy,
        /// The time for requests in flight at shutdown.
        drain: DurationText,
    }
}

impl File {
    /// Decodes the tree. Invalid values are reported and left out.
    pub(crate) fn read(node: &Node, report: &mut Report) -> Self {
        if decode::is_null(node) {
            return Self::default();
        }
        Self::decode(node, report).unwrap_or_default()
    }
}

impl<T> Deref for At<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
