//! Settings of the store: memory or Redis.

use super::Secret;
use std::time::Duration;

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
