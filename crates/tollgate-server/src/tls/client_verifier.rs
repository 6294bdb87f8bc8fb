//! Verifier of client certificates, by authority and by name.

use super::{TlsError, authorities, provider};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
    client::{danger::HandshakeSignatureValid, verify_server_name},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::{
        ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use std::{path::Path, sync::Arc};

/// Creates a verifier for the authorities in `file`. Without `names`, it accepts all their
/// certificates.
pub(super) fn client_verifier(
    file: &Path,
    bytes: &[u8],
    names: &[Box<str>],
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let roots = Arc::new(authorities(file, bytes)?);
    let built = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
    let authority = built.map_err(|error| match error {
        VerifierBuilderError::NoRootAnchors => TlsError::NotPem(file.into(), "certificate"),
        error => TlsError::Unusable(file.into(), Error::General(error.to_string())),
    })?;
    if names.is_empty() {
        return Ok(authority);
    }
    let parse = |name: &str| {
        let bad = |_| TlsError::ClientName(name.into());
        ServerName::try_from(name.to_owned()).map_err(bad)
    };
    let names = names.iter().map(|name| parse(name)).collect::<Result<_, _>>()?;
    Ok(Arc::new(NamedClientVerifier { authority, names }))
}

/// Accepts clients whose certificate has one of the names.
#[derive(Debug)]
struct NamedClientVerifier {
    authority: Arc<dyn ClientCertVerifier>,
    names: Vec<ServerName<'static>>,
}

impl ClientCertVerifier for NamedClientVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.authority.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.authority.verify_client_cert(certificate, intermediates, now)?;
        let parsed = ParsedCertificate::try_from(certificate)?;
        if self.names.iter().any(|name| verify_server_name(&parsed, name).is_ok()) {
            Ok(verified)
        } else {
            Err(CertificateError::NotValidForName.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authority.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authority.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authority.supported_verify_schemes()
    }
}
