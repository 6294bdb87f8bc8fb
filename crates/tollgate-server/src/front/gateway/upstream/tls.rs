//! TLS to upstreams, and the check of a gateway's TLS files.

use super::Upstreams;
use crate::tls::{
    self, TlsError, TlsProblem, authorities, certificates, private_key, provider, read_file,
};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tollgate_observe::metrics::Metrics;
use tollgate_policy::settings::{Settings, Tls, UpstreamProtocol};

/// Problems of the TLS files of a gateway with these settings.
pub(crate) fn check(settings: &Settings, folder: &Path, now_us: u64) -> Vec<TlsProblem> {
    let own = settings.gateway.tls.as_ref();
    let mut found = own.map(|files| tls::check(files, folder, now_us)).unwrap_or_default();
    found.extend(
        Upstreams::new(settings, folder, &Metrics::default(), 0).err().map(TlsProblem::Unusable),
    );
    let encrypts = settings.upstream.iter().any(|server| server.tls);
    let shown = settings.gateway.upstream_tls.identity.as_ref().filter(|_| encrypts);
    found.extend(shown.and_then(|(cert, _)| tls::check_expiry(cert, folder, now_us)));
    found
}

/// The configurations with and without HTTP/2. They trust `ca`, else the system's authorities.
pub(crate) fn client(
    tls: &Tls,
    folder: &Path,
    protocol: UpstreamProtocol,
) -> Result<(Arc<ClientConfig>, Arc<ClientConfig>), TlsError> {
    let mut file = PathBuf::from("the system's authorities");
    let mut roots = RootCertStore::empty();
    if let Some(ca) = &tls.ca {
        file = folder.join(&**ca);
        roots = authorities(&file, &read_file(&file)?)?;
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
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
            let chain = certificates(&cert, &read_file(&cert)?)?;
            let key = private_key(&key, &read_file(&key)?)?;
            let unusable = |error| TlsError::Unusable(cert.clone(), error);
            builder.with_client_auth_cert(chain, key).map_err(unusable)?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let http1 = config.clone();
    match protocol {
        UpstreamProtocol::Http2 => config.alpn_protocols = vec![b"h2".to_vec()],
        UpstreamProtocol::Auto => config.alpn_protocols.insert(0, b"h2".to_vec()),
        _ => {}
    }
    Ok((Arc::new(config), Arc::new(http1)))
}
