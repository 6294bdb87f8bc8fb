//! Addresses, credentials and TLS of the servers.

use redis::{ConnectionAddr, IntoConnectionInfo};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Addresses, credentials and TLS of the servers. `Debug` shows neither passwords nor keys.
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) topology: Topology,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) sentinel_credentials: (Option<String>, Option<String>),
    pub(crate) database: u32,
    pub(crate) tls: Option<Tls>,
}

/// One server, sentinels, or a cluster.
#[derive(Clone, Debug)]
pub(crate) enum Topology {
    One(ServerAddress),
    Sentinel { master: String, servers: Vec<ServerAddress> },
    Cluster(Vec<ServerAddress>),
}

/// The address of one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ServerAddress {
    Tcp(String, u16),
    Unix(PathBuf),
}

/// TLS settings, in PEM.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Tls {
    /// Certificate authorities to trust instead of the system's.
    pub ca: Option<Vec<u8>>,
    /// The client's certificate chain and key.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

impl Endpoint {
    /// One server.
    pub fn tcp(host: impl Into<String>, port: u16) -> Self {
        Self::new(Topology::One(ServerAddress::Tcp(host.into(), port)))
    }

    /// One server, at a Unix socket.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::new(Topology::One(ServerAddress::Unix(path.into())))
    }

    /// The server that most sentinels name as the primary of `master`. They are asked for every new
    /// connection, and also about three times a second.
    pub fn sentinel(
        master: impl Into<String>,
        servers: impl IntoIterator<Item = (String, u16)>,
    ) -> Self {
        Self::new(Topology::Sentinel { master: master.into(), servers: addresses(servers) })
    }

    /// A cluster, given by some of its servers.
    pub fn cluster(servers: impl IntoIterator<Item = (String, u16)>) -> Self {
        Self::new(Topology::Cluster(addresses(servers)))
    }

    fn new(topology: Topology) -> Self {
        let (username, password, tls) = (None, None, None);
        let sentinel_credentials = (None, None);
        Self { topology, username, password, sentinel_credentials, database: 0, tls }
    }

    /// Logs in as an ACL user; with a password alone, as the default user.
    pub fn credentials(mut self, username: Option<String>, password: Option<String>) -> Self {
        (self.username, self.password) = (username, password);
        self
    }

    /// Credentials for the sentinels; without them, no AUTH is sent to sentinels.
    pub fn sentinel_credentials(mut self, user: Option<String>, password: Option<String>) -> Self {
        self.sentinel_credentials = (user, password);
        self
    }

    /// Selects a database other than 0. A cluster has only database 0.
    pub const fn database(mut self, number: u32) -> Self {
        self.database = number;
        self
    }

    /// Connects over TLS, to sentinels too.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }
}

const IN_ASCII: &str = "write the host in ASCII, such as xn--bcher-kva.example";

/// The reason why a text is not an endpoint. The message does not repeat the text, which may
/// contain a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidEndpoint(Box<str>);

/// One server by its URL: `redis://[user[:password]@]host[:port][/db]`, `rediss://` for TLS, or
/// `unix:///path[?db=db]`.
///
/// ```
/// use tollgate_store::redis::Endpoint;
///
/// assert!("redis://user:password@localhost:6379/1".parse::<Endpoint>().is_ok());
/// assert!("localhost".parse::<Endpoint>().is_err());
/// ```
impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    fn from_str(url: &str) -> Result<Self, InvalidEndpoint> {
        // TLS is configured here, so the parser only sees `redis://`.
        let (is_tls, plain) = match url.strip_prefix("rediss://") {
            Some(rest) => (true, format!("redis://{rest}")),
            None => (false, url.to_owned()),
        };
        let invalid = |why: &dyn fmt::Display| InvalidEndpoint(why.to_string().into());
        let parsed = plain.into_connection_info().map_err(|error| invalid(&error))?;
        let endpoint = match parsed.addr() {
            // The parser escapes other characters, and no name server knows the result.
            ConnectionAddr::Tcp(host, _) if host.contains('%') => return Err(invalid(&IN_ASCII)),
            ConnectionAddr::Tcp(host, port) => Self::tcp(host, *port),
            ConnectionAddr::Unix(path) => Self::unix(path),
            _ => return Err(invalid(&"unknown kind of address")),
        };
        let login = parsed.redis_settings();
        let owned = |text: Option<&str>| text.map(ToOwned::to_owned);
        let database = u32::try_from(login.db()).map_err(|_| invalid(&"no such database"))?;
        let endpoint = endpoint.database(database);
        let endpoint = endpoint.credentials(owned(login.username()), owned(login.password()));
        Ok(if is_tls { endpoint.tls(Tls::default()) } else { endpoint })
    }
}

impl fmt::Display for InvalidEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the text is not a URL such as redis://localhost:6379/0: {}", self.0)
    }
}

impl std::error::Error for InvalidEndpoint {}

fn addresses(servers: impl IntoIterator<Item = (String, u16)>) -> Vec<ServerAddress> {
    servers.into_iter().map(|(host, port)| ServerAddress::Tcp(host, port)).collect()
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("topology", &self.topology)
            .field("username", &self.username)
            .field("database", &self.database)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ca, client) = (self.ca.is_some(), self.client.is_some());
        f.debug_struct("Tls").field("own_ca", &ca).field("client_certificate", &client).finish()
    }
}
