//! Connects to one server, within a deadline.

use super::RedisOptions;
use super::endpoint::{Endpoint, ServerAddress, Tls};
use super::failure::Failure;
use super::link::Link;
use super::login::Login;
use crate::{StoreError, StoreErrorKind};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo};
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
pub(super) struct Dialer {
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
    pub(super) fn new(endpoint: &Endpoint, options: &RedisOptions) -> Result<Self, StoreError> {
        Ok(Self {
            login: Login::new(&endpoint.username, &endpoint.password, endpoint.database),
            tls: endpoint.tls.as_ref().map(connector).transpose()?,
            deadline: options.connect_deadline(),
            response_deadline: options.deadline,
        })
    }

    /// The same for the sentinels, who have users of their own.
    pub(super) fn for_sentinels(&self, endpoint: &Endpoint) -> Self {
        let (username, password) = &endpoint.sentinel_credentials;
        Self {
            login: Login::new(username, password, 0),
            tls: self.tls.clone(),
            deadline: self.deadline,
            response_deadline: self.response_deadline,
        }
    }

    pub(super) async fn dial(&self, address: &ServerAddress) -> Result<Link, Failure> {
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
