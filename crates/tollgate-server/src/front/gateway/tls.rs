//! Certificates: the gateway's own, read again when their files change, and those it asks of servers.

use super::{upstream::Upstreams, validity::Validity};
use crate::{health::Health, watch::read_capped};
use arc_swap::ArcSwap;
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};
use tollgate_policy::settings::{Settings, Tls, UpstreamProtocol};

/// Under this name `/readyz` tells what is wrong with the gateway's own.
const CERTIFICATE: &str = "certificate";

/// Why TLS cannot be spoken.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// A file is not to be had.
    Unreadable(PathBuf, io::Error),
    /// A file has nothing of what it should have.
    NotPem(PathBuf, &'static str),
    /// The certificate and the key do not belong together, or are of a kind that is not used.
    Unusable(PathBuf, rustls::Error),
    /// A server's host is no name that a certificate could have.
    Name(Box<str>),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(file, error) => write!(f, "cannot read {}: {error}", file.display()),
            Self::NotPem(file, what) => {
                write!(f, "{} has no {what}; it is to be a file in PEM form", file.display())
            }
            Self::Unusable(file, error) => {
                write!(f, "the certificate in {} cannot be used: {error}", file.display())
            }
            Self::Name(host) => write!(f, "`{host}` is not a name that a certificate can have"),
        }
    }
}

impl std::error::Error for TlsError {}

impl TlsError {
    /// Which file is to be mended.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Unreadable(file, _) | Self::NotPem(file, _) | Self::Unusable(file, _) => {
                Some(file)
            }
            Self::Name(_) => None,
        }
    }
}

/// What `tollgate check` has to say about the files of a gateway.
pub(crate) enum Trouble {
    /// It could not start.
    Unusable(TlsError),
    /// Nobody would accept what it shows. Which file, and what is to be said.
    OutOfDate(PathBuf, String),
}

/// What is wrong with the files that a gateway needs by these settings.
pub(crate) fn check(settings: &Settings, folder: &Path, now_us: u64) -> Vec<Trouble> {
    let mut found = Vec::new();
    let own = settings.gateway.tls.as_ref();
    let made = own.map(|files| Certificate::new(files, folder)).transpose();
    found.extend(made.err().map(Trouble::Unusable));
    found.extend(Upstreams::new(settings, folder, 0).err().map(Trouble::Unusable));
    let encrypts = settings.upstream.iter().any(|server| server.tls);
    let shown = settings.gateway.upstream_tls.identity.as_ref().filter(|_| encrypts);
    for (cert, _) in own.into_iter().chain(shown) {
        let file = folder.join(&**cert);
        let objection = read(&file).ok().and_then(|bytes| objection(&file, &bytes, now_us));
        found.extend(objection.map(|text| Trouble::OutOfDate(file, text)));
    }
    found
}

/// What is wrong with the time of a certificate, which is the first in its file.
fn objection(file: &Path, bytes: &[u8], now_us: u64) -> Option<String> {
    let objection = validity(bytes)?.objection(now_us)?;
    Some(format!("the certificate in {} {objection}", file.display()))
}

/// The gateway's certificate, as its files are now.
#[derive(Debug)]
pub(super) struct Certificate {
    cert: PathBuf,
    key: PathBuf,
    config: ArcSwap<ServerConfig>,
    /// What was read last, whether or not it could be used; nothing where that was not possible.
    read: Mutex<Option<(Vec<u8>, Vec<u8>)>>,
    /// What is in use, as far as its time is concerned, and whether that has been objected to.
    validity: ArcSwap<Option<Validity>>,
    is_told: AtomicBool,
}

impl Certificate {
    pub(super) fn new((cert, key): &(Box<str>, Box<str>), folder: &Path) -> Result<Self, TlsError> {
        let (cert, key) = (folder.join(&**cert), folder.join(&**key));
        let bytes = (read(&cert)?, read(&key)?);
        let config = server(&cert, &key, &bytes)?;
        Ok(Self {
            cert,
            key,
            config: ArcSwap::from_pointee(config),
            validity: ArcSwap::from_pointee(validity(&bytes.0)),
            read: Mutex::new(Some(bytes)),
            is_told: AtomicBool::new(false),
        })
    }

    /// Takes up what has changed, and says what is wrong: in the log once, and for as long as it lasts in `/readyz`.
    pub(super) fn look(&self, health: &Health, now_us: u64) {
        match self.renew() {
            Ok(true) => {
                health.heal(CERTIFICATE);
                self.is_told.store(false, Relaxed);
                tracing::info!("the gateway's certificate has been renewed");
            }
            Ok(false) => {}
            Err(error) => {
                health.degrade(CERTIFICATE, error.to_string());
                tracing::warn!(%error, "the gateway's certificate stays as it was");
            }
        }
        let objection = self.validity.load().and_then(|validity| validity.objection(now_us));
        if let Some(objection) = objection
            && !self.is_told.swap(true, Relaxed)
        {
            let text = format!("the certificate in {} {objection}", self.cert.display());
            tracing::warn!(file = %self.cert.display(), "the gateway's certificate {objection}");
            health.degrade(CERTIFICATE, text);
        }
    }

    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.config.load_full()
    }

    /// Uses the files for connections to come if they have changed; whether they had. While a certificate is replaced its key
    /// may be the old one: then the last good pair stays, and the files are looked at again when they change again.
    pub(super) fn renew(&self) -> Result<bool, TlsError> {
        let mut last = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = match (read(&self.cert), read(&self.key)) {
            (Ok(cert), Ok(key)) => (cert, key),
            // It is said once.
            (Err(error), _) | (_, Err(error)) => {
                return last.take().map_or(Ok(false), |_| Err(error));
            }
        };
        if last.as_ref() == Some(&bytes) {
            return Ok(false);
        }
        let config = server(&self.cert, &self.key, &bytes);
        let dates = validity(&bytes.0);
        *last = Some(bytes);
        self.config.store(Arc::new(config?));
        self.validity.store(Arc::new(dates));
        Ok(true)
    }
}

/// Of the certificate, which is the first of its file.
fn validity(bytes: &[u8]) -> Option<Validity> {
    Validity::of(&CertificateDer::pem_slice_iter(bytes).next()?.ok()?)
}

fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    read_capped(file).map_err(|error| TlsError::Unreadable(file.into(), error))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn certificates(file: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    all.ok()
        .filter(|all| !all.is_empty())
        .ok_or_else(|| TlsError::NotPem(file.into(), "certificate"))
}

fn private_key(file: &Path, bytes: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(bytes).map_err(|_| TlsError::NotPem(file.into(), "key"))
}

fn server(cert: &Path, key: &Path, bytes: &(Vec<u8>, Vec<u8>)) -> Result<ServerConfig, TlsError> {
    let unusable = |error| TlsError::Unusable(cert.into(), error);
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(certificates(cert, &bytes.0)?, private_key(key, &bytes.1)?)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// What servers have to show: a certificate of `ca`, or else of one of the system's authorities.
/// The second speaks HTTP/1.1 only.
pub(super) fn client(
    tls: &Tls,
    folder: &Path,
    protocol: UpstreamProtocol,
) -> Result<(Arc<ClientConfig>, Arc<ClientConfig>), TlsError> {
    let mut roots = RootCertStore::empty();
    let mut file = PathBuf::from("the system's authorities");
    match &tls.ca {
        Some(ca) => {
            file = folder.join(&**ca);
            for certificate in certificates(&file, &read(&file)?)? {
                roots.add(certificate).map_err(|error| TlsError::Unusable(file.clone(), error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let unusable = |error| TlsError::Unusable(file.clone(), error);
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_root_certificates(roots);
    let mut config = match &tls.identity {
        None => builder.with_no_client_auth(),
        Some((cert, key)) => {
            let (cert, key) = (folder.join(&**cert), folder.join(&**key));
            let chain = certificates(&cert, &read(&cert)?)?;
            let key = private_key(&key, &read(&key)?)?;
            let unusable = |error| TlsError::Unusable(cert.clone(), error);
            builder.with_client_auth_cert(chain, key).map_err(unusable)?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let only_one = config.clone();
    match protocol {
        UpstreamProtocol::Http2 => config.alpn_protocols = vec![b"h2".to_vec()],
        UpstreamProtocol::Auto => config.alpn_protocols.insert(0, b"h2".to_vec()),
        _ => {}
    }
    Ok((Arc::new(config), Arc::new(only_one)))
}
