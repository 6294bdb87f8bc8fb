//! Settings of the store: memory or Redis.

use super::Secret;
use std::time::Duration;

/// The store of counts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Store {
    /// Counts in this process.
    Memory {
        /// The most memory for counts.
        max_bytes: u64,
    },
    /// Counts in Redis or Valkey.
    Redis(Box<Redis>),
}

/// The address and the settings of Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Redis {
    /// The server.
    pub server: RedisServer,
    /// The user name.
    pub username: Option<Box<str>>,
    /// The password.
    pub password: Option<Secret>,
    /// The secret that hashes keys; by default the password.
    pub secret: Option<Secret>,
    /// TLS, if it is used.
    pub tls: Option<Tls>,
    /// The prefix of every key.
    pub prefix: Box<str>,
    /// Whether the clock of the node counts instead of that of the server.
    pub caller_time: bool,
    /// The deadline of one call.
    pub deadline: Duration,
    /// Connections to each node.
    pub connections: u32,
    /// The most requests in flight.
    pub in_flight: u32,
    /// Whether replicas may answer peeks and inspections.
    pub replica_reads: bool,
    /// Failures in a row that open the circuit breaker.
    pub breaker_errors: u32,
    /// The interval of probes while the circuit breaker is open.
    pub breaker_probe: Duration,
    /// Entries of the deny cache; 0 turns it off.
    pub deny_cache_entries: u32,
    /// The longest time for which a refusal is cached.
    pub deny_cache_max_age: Duration,
}

/// The address of Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisServer {
    /// One server.
    Tcp {
        /// A host name or an address, without brackets.
        host: Box<str>,
        /// The port.
        port: u16,
        /// The database number.
        database: u32,
    },
    /// One server, by Unix socket.
    Unix {
        /// The path of the socket.
        path: Box<str>,
        /// The database number.
        database: u32,
    },
    /// A primary found through Sentinels.
    Sentinel {
        /// The name of the primary.
        master: Box<str>,
        /// Hosts and ports of the Sentinels.
        nodes: Vec<(Box<str>, u16)>,
        /// The user name for the Sentinels.
        username: Option<Box<str>>,
        /// The password for the Sentinels.
        password: Option<Secret>,
    },
    /// A cluster.
    Cluster {
        /// Hosts and ports of some nodes of the cluster.
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

/// Files for TLS; without `ca`, the system's certificate authorities are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The certificate authorities to trust.
    pub ca: Option<Box<str>>,
    /// The client's certificate and its key.
    pub identity: Option<(Box<str>, Box<str>)>,
}
