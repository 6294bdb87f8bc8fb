//! Connects to one server and logs in, within a deadline.

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

/// The settings that all connections share.
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
    pub(crate) fn new(endpoint: &Endpoint, options: &RedisOptions) -> Result<Self, StoreError> {
        Ok(Self {
            login: Login::new(&endpoint.username, &endpoint.password, endpoint.database),
            tls: endpoint.tls.as_ref().map(connector).transpose()?,
            deadline: options.connect_deadline(),
            response_deadline: options.deadline,
        })
    }

    /// A dialer for sentinels, which have their own credentials.
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
        let connected = timeout(self.deadline, self.connect(address)).await;
        connected.unwrap_or_else(|_| Err(Failure::timeout()))
    }

    async fn connect(&self, address: &ServerAddress) -> Result<Link, Failure> {
        let stream = self.stream(address).await.map_err(redis::RedisError::from)?;
        // `Link` enforces the deadlines.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        // A user with minimal rights may not run CLIENT SETINFO.
        let settings = RedisConnectionInfo::default().set_skip_set_lib_name();
        let (connection, driver) =
            MultiplexedConnection::new_with_config(&settings, stream, config).await?;
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
        let text = format!("cannot read {what}; it must be PEM");
        StoreError::new(StoreErrorKind::Rejected, text)
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
        // System certificates that cannot be parsed are skipped.
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

/// Credentials, and the database to select.
pub(crate) struct Login {
    /// The arguments of `AUTH`.
    credentials: Vec<String>,
    database: u32,
}

impl Login {
    pub(crate) fn new(username: &Option<String>, password: &Option<String>, database: u32) -> Self {
        // AUTH needs a password. Without the empty one, a named user would log in as the default
        // user.
        let empty = username.as_ref().map(|_| String::new());
        let password = password.clone().or(empty);
        Self { credentials: username.clone().into_iter().chain(password).collect(), database }
    }

    /// Logs in. The client library could do so, but would not report why the login failed.
    pub(crate) async fn authenticate(
        &self,
        mut connection: MultiplexedConnection,
    ) -> Result<(), Failure> {
        let mut commands = redis::pipe();
        commands.ignore_errors();
        if !self.credentials.is_empty() {
            commands.cmd("AUTH").arg(&self.credentials);
        }
        if self.database != 0 {
            commands.cmd("SELECT").arg(self.database);
        }
        let only_ping = commands.is_empty();
        if only_ping {
            // A server with too many clients accepts the connection and rejects the first command.
            commands.cmd("PING");
        }
        let answers: Vec<RedisResult<Value>> = commands.query_async(&mut connection).await?;
        for failure in answers.into_iter().filter_map(|answer| answer.err().map(Failure::from)) {
            if !only_ping || failure.action == FailureAction::Reconnect {
                return Err(failure);
            }
        }
        Ok(())
    }
}

/// The location of a server: a fixed address, or the primary named by sentinels.
#[derive(Debug)]
pub(crate) enum ServerLocation {
    Fixed(ServerAddress),
    Sentinels(Sentinels),
}

impl ServerLocation {
    /// Connects to the server. `cut_off`: no other connection to it is up.
    pub(crate) async fn dial(&self, dialer: &Dialer, cut_off: bool) -> Result<Link, Failure> {
        match self {
            Self::Fixed(address) => dialer.dial(address).await,
            Self::Sentinels(sentinels) => sentinels.dial(dialer, cut_off).await,
        }
    }

    /// The server's name in logs.
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
