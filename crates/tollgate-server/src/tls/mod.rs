//! TLS of listeners: certificates that reload when their files change, and client authorities.

mod client_verifier;
mod validity;

use crate::reload::poll::read_capped;
use arc_swap::ArcSwap;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};
use tollgate_net::Health;
use tollgate_net::lock;
use tollgate_policy::settings::ServerTls;
use validity::Validity;

/// The reason why TLS is unusable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {}", .0.display(), .1)]
    Unreadable(PathBuf, io::Error),
    /// A file lacks a certificate or a key.
    #[error("{} has no {}; write a file in PEM form", .0.display(), .1)]
    NotPem(PathBuf, &'static str),
    /// The certificate and the key do not match, or their kind is not supported.
    #[error("the certificate in {} cannot be used: {}", .0.display(), .1)]
    Unusable(PathBuf, rustls::Error),
    /// An upstream's host is not a name that a certificate can have.
    #[error("`{0}` is not a name that a certificate can have")]
    Name(Box<str>),
    /// One of `client_names` is not a name that a certificate can have.
    #[error("`{0}` is not a name that a certificate can have")]
    ClientName(Box<str>),
}

impl TlsError {
    /// The file to change.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Unreadable(file, _) | Self::NotPem(file, _) | Self::Unusable(file, _) => {
                Some(file)
            }
            Self::Name(_) | Self::ClientName(_) => None,
        }
    }
}

/// A problem with the TLS files of a listener or of upstreams, for `tollgate check`.
pub(crate) enum TlsProblem {
    /// The listener or the upstream could not start.
    Unusable(TlsError),
    /// The certificate in this file has expired or is not valid yet; the text says which.
    OutOfDate(PathBuf, String),
}

/// Problems with the certificate of a listener.
pub(crate) fn check(files: &ServerTls, folder: &Path, now_us: u64) -> Vec<TlsProblem> {
    let made = Certificate::new(files, folder, TlsListener::Gateway);
    let mut found: Vec<_> = made.err().map(TlsProblem::Unusable).into_iter().collect();
    found.extend(check_expiry(&files.cert, folder, now_us));
    found
}

/// Whether the certificate in this file has expired or is not valid yet.
pub(crate) fn check_expiry(cert: &str, folder: &Path, now_us: u64) -> Option<TlsProblem> {
    let file = folder.join(cert);
    let text = expiry_message(&file, &read_file(&file).ok()?, now_us)?;
    Some(TlsProblem::OutOfDate(file, text))
}

/// The problem with the validity period of the first certificate in a file.
fn expiry_message(file: &Path, bytes: &[u8], now_us: u64) -> Option<String> {
    let objection = validity(bytes)?.problem_at(now_us)?;
    Some(format!("the certificate in {} {objection}", file.display()))
}

/// The listener of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsListener {
    Gateway,
    Grpc,
}

impl TlsListener {
    /// The name in `/readyz` for problems with the certificate.
    const fn subject(self) -> &'static str {
        match self {
            Self::Gateway => "certificate",
            Self::Grpc => "grpc-certificate",
        }
    }

    /// The name in the log.
    const fn name(self) -> &'static str {
        match self {
            Self::Gateway => "the gateway's certificate",
            Self::Grpc => "the certificate of listen.grpc",
        }
    }
}

/// A listener's certificate and client authorities, from the current files.
#[derive(Debug)]
pub(crate) struct Certificate {
    listener: TlsListener,
    files: TlsFiles,
    config: ArcSwap<ServerConfig>,
    /// The files as last read, usable or not; `None` if they could not be read.
    last_read: Mutex<Option<TlsFileContents>>,
    /// The validity period of the certificate in use.
    validity: ArcSwap<Option<Validity>>,
    is_logged: AtomicBool,
}

/// The paths of the TLS files.
#[derive(Debug)]
struct TlsFiles {
    cert: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    client_names: Vec<Box<str>>,
}

/// The contents of the TLS files.
#[derive(Debug, PartialEq, Eq)]
struct TlsFileContents {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl TlsFiles {
    fn read(&self) -> Result<TlsFileContents, TlsError> {
        Ok(TlsFileContents {
            cert: read_file(&self.cert)?,
            key: read_file(&self.key)?,
            client_ca: self.client_ca.as_deref().map(read_file).transpose()?,
        })
    }
}

impl Certificate {
    pub(crate) fn new(
        files: &ServerTls,
        folder: &Path,
        listener: TlsListener,
    ) -> Result<Self, TlsError> {
        let files = TlsFiles {
            cert: folder.join(&*files.cert),
            key: folder.join(&*files.key),
            client_ca: files.client_ca.as_deref().map(|file| folder.join(file)),
            client_names: files.client_names.clone(),
        };
        let contents = files.read()?;
        let config = server_config(&files, &contents)?;
        Ok(Self {
            listener,
            files,
            config: ArcSwap::from_pointee(config),
            validity: ArcSwap::from_pointee(validity(&contents.cert)),
            last_read: Mutex::new(Some(contents)),
            is_logged: AtomicBool::new(false),
        })
    }

    /// Loads changed files. Logs a problem once, and shows it in `/readyz` while it lasts.
    pub(crate) fn poll(&self, health: &Health, now_us: u64) {
        let (subject, name) = (self.listener.subject(), self.listener.name());
        match self.reload_if_changed() {
            Ok(true) => {
                health.clear(subject);
                self.is_logged.store(false, Relaxed);
                tracing::info!("{name} reloaded");
            }
            Ok(false) => {}
            Err(error) => {
                health.degrade(subject, error.to_string());
                tracing::warn!(%error, "{name} not reloaded; the last good one stays in use");
            }
        }
        let objection = self.validity.load().and_then(|validity| validity.problem_at(now_us));
        if let Some(objection) = objection
            && !self.is_logged.swap(true, Relaxed)
        {
            let file = self.files.cert.display();
            // `/readyz` changes before the line is logged, so a reader of the line finds the
            // problem there.
            health.degrade(subject, format!("the certificate in {file} {objection}"));
            tracing::warn!(%file, "{name} {objection}");
        }
    }

    /// The settings for new connections.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.config.load_full()
    }

    /// Uses changed files for new connections; returns whether they had changed. While a
    /// certificate is being replaced, its key may not match. Then the last good pair stays until
    /// the files change again.
    fn reload_if_changed(&self) -> Result<bool, TlsError> {
        let mut last = lock(&self.last_read);
        let contents = match self.files.read() {
            Ok(contents) => contents,
            // A problem is returned once.
            Err(error) => return last.take().map_or(Ok(false), |_| Err(error)),
        };
        if last.as_ref() == Some(&contents) {
            return Ok(false);
        }
        let config = server_config(&self.files, &contents);
        let dates = validity(&contents.cert);
        *last = Some(contents);
        self.config.store(Arc::new(config?));
        self.validity.store(Arc::new(dates));
        Ok(true)
    }
}

/// The validity period of the first certificate in a file.
fn validity(bytes: &[u8]) -> Option<Validity> {
    Validity::of(&CertificateDer::pem_slice_iter(bytes).next()?.ok()?)
}

pub(crate) fn read_file(file: &Path) -> Result<Vec<u8>, TlsError> {
    read_capped(file).map_err(|error| TlsError::Unreadable(file.into(), error))
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

pub(crate) fn certificates(
    file: &Path,
    bytes: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    all.ok()
        .filter(|all| !all.is_empty())
        .ok_or_else(|| TlsError::NotPem(file.into(), "certificate"))
}

pub(crate) fn private_key(file: &Path, bytes: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(bytes).map_err(|_| TlsError::NotPem(file.into(), "key"))
}

fn server_config(files: &TlsFiles, contents: &TlsFileContents) -> Result<ServerConfig, TlsError> {
    let unusable = |error| TlsError::Unusable(files.cert.clone(), error);
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let builder =
        match files.client_ca.as_deref().zip(contents.client_ca.as_deref()) {
            None => builder.with_no_client_auth(),
            Some((file, bytes)) => builder.with_client_cert_verifier(
                client_verifier::client_verifier(file, bytes, &files.client_names)?,
            ),
        };
    let mut config = builder
        .with_single_cert(
            certificates(&files.cert, &contents.cert)?,
            private_key(&files.key, &contents.key)?,
        )
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Parses authorities from a file.
pub(crate) fn authorities(file: &Path, bytes: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file, bytes)? {
        roots.add(certificate).map_err(|error| TlsError::Unusable(file.into(), error))?;
    }
    Ok(roots)
}
