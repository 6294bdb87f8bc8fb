//! Connects to one server, within a deadline.

use super::connection::Link;
use super::endpoint::{Endpoint, ServerAddress, Tls};
use super::failure::{Failure, FailureAction};
use crate::redis::RedisOptions;
use crate::redis::sentinel::Sentinels;
use crate::{StoreError, StoreErrorKind};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisResult, Value};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// What every connection to the servers has in common.
pub(crate) struct Dialer {
    login: Login,
    tls: Option<TlsConnector>,
    deadline: Duration,
    response_deadline: Duration,
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialer").field("tls", &self.tls.is_some()).finish_non_exhaustive()
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Dialer {
    /// For the servers themselves.
    pub(crate) fn new(endpoint: &Endpoint, options: &RedisOptions) -> Result<Self, StoreError> {
        Ok(Self {
            login: Login::new(&endpoint.username, &endpoint.password, endpoint.database),
            tls: endpoint.tls.as_ref().map(connector).transpose()?,
            deadline: options.connect_deadline(),
            response_deadline: options.deadline,
        })
    }

    /// The same for the sentinels, who have users of their own.
    pub(crate) fn for_sentinels(&self, endpoint: &Endpoint) -> Self {
        let (username, password) = &endpoint.sentinel_credentials;
        Self {
            login: Login::new(username, password, 0),
            tls: self.tls.clone(),
            deadline: self.deadline,
            response_deadline: self.response_deadline,
        }
    }

    pub(crate) async fn dial(&self, address: &ServerAddress) -> Result<Link, Failure> {
        match timeout(self.deadline, self.connect(address)).await {
            Ok(connected) => connected,
            Err(_) => Err(Failure::timeout()),
        }
    }

    async fn connect(&self, address: &ServerAddress) -> Result<Link, Failure> {
        let stream = self.stream(address).await.map_err(redis::RedisError::from)?;
        // Deadlines are kept by whoever makes a call, so that one rule counts for all of them.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        // A user with the least of rights may not name itself, and nobody reads the name.
        let settings = RedisConnectionInfo::default().set_skip_set_lib_name();
        let made = MultiplexedConnection::new_with_config(&settings, stream, config).await;
        let (connection, driver) = made?;
        let link = Link::new(connection.clone(), driver, self.response_deadline);
        self.login.authenticate(connection).await?;
        Ok(link)
    }

    async fn stream(&self, address: &ServerAddress) -> std::io::Result<Box<dyn Stream>> {
        let (host, port) = match address {
            ServerAddress::Unix(path) => return Ok(Box::new(UnixStream::connect(path).await?)),
            ServerAddress::Tcp(host, port) => (host.as_str(), *port),
        };
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        let Some(connector) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
        Ok(Box::new(connector.connect(name, stream).await?))
    }
}

fn connector(tls: &Tls) -> Result<TlsConnector, StoreError> {
    let bad = |what: &str| {
        StoreError::new(
            StoreErrorKind::Rejected,
            format!("{what} cannot be read; it has to be PEM"),
        )
    };
    let mut roots = RootCertStore::empty();
    match &tls.ca {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let added = certificate.ok().map(|certificate| roots.add(certificate));
                added.and_then(Result::ok).ok_or_else(|| bad("the authority"))?;
            }
            if roots.is_empty() {
                return Err(bad("the authority"));
            }
        }
        // What the system has that cannot be read is of no use, and the rest is.
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::new(StoreErrorKind::Rejected, error.to_string()))?
        .with_root_certificates(roots);
    let config = match &tls.client {
        None => config.with_no_client_auth(),
        Some((certificates, key)) => {
            let chain = CertificateDer::pem_slice_iter(certificates).collect::<Result<Vec<_>, _>>();
            let chain = chain.map_err(|_| bad("the client's certificate"))?;
            let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| bad("the client's key"))?;
            config
                .with_client_auth_cert(chain, key)
                .map_err(|_| bad("the client's certificate with its key"))?
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Who connects, and to which database.
pub(crate) struct Login {
    /// The arguments of `AUTH`.
    credentials: Vec<String>,
    database: u32,
}

impl Login {
    pub(crate) fn new(username: &Option<String>, password: &Option<String>, database: u32) -> Self {
        // Nobody logs in without a password: a user of its own has an empty one then, and is not to
        // become the default user.
        let empty = username.as_ref().map(|_| String::new());
        let password = password.clone().or(empty);
        Self { credentials: username.clone().into_iter().chain(password).collect(), database }
    }

    /// Logs in. Said here and not by the client, which keeps why it was refused to itself.
    pub(crate) async fn authenticate(
        &self,
        mut connection: MultiplexedConnection,
    ) -> Result<(), Failure> {
        let mut words = redis::pipe();
        words.ignore_errors();
        if !self.credentials.is_empty() {
            words.cmd("AUTH").arg(&self.credentials);
        }
        if self.database != 0 {
            words.cmd("SELECT").arg(self.database);
        }
        let says_nothing = words.is_empty();
        if says_nothing {
            // A server that is full accepts a connection, and says so only to whoever asks for
            // something.
            words.cmd("PING");
        }
        let answers: Vec<RedisResult<Value>> = words.query_async(&mut connection).await?;
        for failure in answers.into_iter().filter_map(|answer| answer.err().map(Failure::from)) {
            if !says_nothing || failure.action == FailureAction::Reconnect {
                return Err(failure);
            }
        }
        Ok(())
    }
}

/// Where a server is: always at the same address, or where the sentinels say.
#[derive(Debug)]
pub(crate) enum NodeLocation {
    Fixed(ServerAddress),
    Sentinels(Sentinels),
}

impl NodeLocation {
    /// Connects to the server; `cut_off` is whether there is no other connection to it.
    pub(crate) async fn dial(&self, dialer: &Dialer, cut_off: bool) -> Result<Link, Failure> {
        match self {
            Self::Fixed(address) => dialer.dial(address).await,
            Self::Sentinels(sentinels) => sentinels.dial(dialer, cut_off).await,
        }
    }

    /// What it is called in logs.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Fixed(address) => address.to_string(),
            Self::Sentinels(sentinels) => sentinels.master().to_owned(),
        }
    }

    pub(crate) const fn sentinels(&self) -> Option<&Sentinels> {
        match self {
            Self::Fixed(_) => None,
            Self::Sentinels(sentinels) => Some(sentinels),
        }
    }
}
